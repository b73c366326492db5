"""The parts that need torch and transformers (training/requirements.txt); skipped where these are missing."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers", minversion="5.12")

from nano.assistants import Shared  # noqa: E402
from nano.export import FILES, export  # noqa: E402
from nano.lessons import LESSONS, batches, make_lot, padded  # noqa: E402
from nano.model import Batch, Nano  # noqa: E402
from nano.optimizers import orthogonal  # noqa: E402
from nano.teacher_forced import tally  # noqa: E402
from nano.train import Run, Settings, train  # noqa: E402


@pytest.fixture(scope="module")
def nano(run_folder: Path) -> Nano:
    torch.manual_seed(0)
    return Nano(json.loads((run_folder / "config.json").read_text()))


@pytest.mark.parametrize("pictures", [0.0, 1.0])
def test_the_forward_pass_is_that_of_transformers(nano: Nano, run_folder: Path, words: object, pictures: float) -> None:
    import dataclasses

    lesson = dataclasses.replace(LESSONS[-1], pictures=pictures, mix=((None, 1.0),))
    image = words.token_to_id("<|image_pad|>")  # type: ignore[attr-defined]
    group = next(batches(make_lot(lesson, 2, run_folder, 3), 10_000))
    batch = Batch.of(padded(group, 0, image), torch.device("cpu"))
    shown = {"pixel_values": batch.patches, "image_grid_thw": batch.grids} if batch.patches is not None else {}
    with torch.no_grad():
        ours = nano.hidden(batch) @ nano.text.embed_tokens.weight.T
        theirs = nano.model(input_ids=batch.tokens, mm_token_type_ids=(batch.tokens == image).int(), **shown).logits
    assert (ours - theirs).abs().max() < 1e-4 * theirs.abs().max()


def test_a_perfect_model_gets_everything_right(nano: Nano, run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = next(batches(make_lot(LESSONS[1], 0, run_folder, 4), 10_000))
    batch = Batch.of(padded(group, 0, -1), torch.device("cpu"))
    before = tally(nano, batch, group, -1, []).shares()
    outcome = nano(batch, 0.0)
    outcome.right = torch.ones_like(outcome.right)
    monkeypatch.setattr(Nano, "forward", lambda *_: outcome)
    assert tally(nano, batch, group, -1, []).shares()["values"] == 1.0
    assert before["values"] < 0.5


def test_muon_makes_steps_orthogonal() -> None:
    step = orthogonal(torch.randn(3, 48, 16))
    singular = torch.linalg.svdvals(step)
    assert (singular > 0.5).all()
    assert (singular < 1.4).all()


def settings(run: Path, **others: Any) -> Settings:
    """A run that ends after so many steps and does nothing by the clock."""
    usual: dict[str, Any] = {"together": 2, "workers": 0, "cooldown": 0, "steps": 0, "minutes": 0.0, "rate": 1.0, "assistants": 0}
    usual |= {"save_s": 1e9, "check_s": 1e9, "checked": 2}
    return Settings(run, "small", 1024, **(usual | others))


def begun(run_folder: Path, folder: Path) -> Path:
    """A run folder with the same files."""
    for name in FILES:
        (folder / name).write_bytes((run_folder / name).read_bytes())
    return folder


def test_a_run_goes_on_where_it_was_left(run_folder: Path, tmp_path: Path) -> None:
    first = Run(settings(begun(run_folder, tmp_path), steps=2))
    first.train()
    assert first.progress.step == 2
    again = Run(settings(tmp_path, steps=3))
    assert again.progress == replace(first.progress, lot=first.progress.lot + 1)
    pairs = zip(first.model.state_dict().values(), again.model.state_dict().values(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    again.train()
    assert again.progress.step == 3
    checks = [line for line in (tmp_path / "curve.jsonl").read_text().splitlines() if "check" in line]
    assert len(checks) == 2
    assert np.isfinite(json.loads(checks[-1])["check"]["values"])


def test_a_run_that_is_terminated_loses_nothing(run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = Run.step

    def last_step(run: Run, *of: Any) -> None:
        step(run, *of)
        signal.raise_signal(signal.SIGTERM)

    endless = settings(begun(run_folder, tmp_path), together=1)
    with monkeypatch.context() as patch:
        patch.setattr(Run, "step", last_step)
        train(Run(endless))
    assert Run(endless).progress.step == 1


def test_a_step_takes_what_assistants_have_done(run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(settings(begun(run_folder, tmp_path), assistants=1))
    assert run.shared
    taken: list[tuple[int, int]] = []
    take = run.shared.take
    monkeypatch.setattr(run.shared, "take", lambda parameters: taken.append(take(parameters)) or taken[-1])
    monkeypatch.setattr(run, "over", lambda: any(done for done, _ in taken))
    run.train()
    done, tokens = taken[-1]
    assert done > 0
    assert 0 < tokens < run.progress.tokens
    assert all(torch.isfinite(parameter).all() for parameter in run.parameters)


def test_gradients_of_assistants_are_added_up() -> None:
    own, theirs = ([torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.zeros(2, 3))] for _ in range(2))
    shared = Shared(own)
    for gradient in (1.0, 2.0):
        shared.fetch(theirs)
        (theirs[0] * gradient).sum().backward()
        shared.add(theirs, 7)
    own[0].grad = torch.ones(2)
    assert shared.take(own) == (2, 14)
    assert own[0].grad.tolist() == [4.0, 4.0]
    assert own[1].grad is None
    assert shared.take(own) == (0, 0)
    assert own[0].grad.tolist() == [4.0, 4.0]
    own[1].data.fill_(5.0)
    shared.give(own)
    shared.fetch(theirs)
    assert theirs[1].sum() == 30


def test_a_run_can_begin_with_an_exported_checkpoint(run_folder: Path, tmp_path: Path) -> None:
    first = Run(settings(run_folder))
    weights = {name.removeprefix("model."): tensor.float().numpy() for name, tensor in first.model.state_dict().items()}
    export(run_folder, weights, tmp_path / "shipped")
    second = Run(settings(tmp_path / "run", checkpoint=tmp_path / "shipped", lesson=3))
    assert second.progress.lesson == 3
    pairs = zip(first.model.state_dict().values(), second.model.state_dict().values(), strict=True)
    assert all(torch.equal(a.bfloat16(), b.bfloat16()) for a, b in pairs)
