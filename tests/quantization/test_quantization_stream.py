"""Models run part by part: the same numbers as whole ones, statistics of what their layers get, versions side by side."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from made import DOCUMENT, Watching, documents, forced

from pagelift.backends import Ragged, open_backend
from pagelift.evals.forced import Forced
from pagelift.models import PictureRows, Step, open_model
from pagelift.quantization import rounding
from pagelift.quantization.lockstep import Documents, Lockstep, Variant, divergence, log_softmax
from pagelift.quantization.moments import Moments
from pagelift.quantization.rounding import Rounder
from pagelift.quantization.stream import PartRunner, Source
from pagelift.quantization.work import Rounding
from pagelift.weights.quant.allocations import uniform
from pagelift.weights.quant.formats import Format
from pagelift.weights.quant.targets import base_allocation

BACKEND = open_backend("reference")


@pytest.fixture(scope="module")
def source() -> Source:
    return Source.open(DOCUMENT, BACKEND)


def whole_logits(folder: Path, document: Forced) -> np.ndarray:
    """Logits of the rows whose next token belongs to a value, by the model as it is loaded for use."""
    model = open_model(folder, BACKEND)
    pictures = tuple(PictureRows(p.start, model.encode(p.picture.patches(), [p.picture.grid])) for p in document.pictures)
    step = Step(document.tokens, document.positions, Ragged.of([(model.new_cache(), len(document), False)]), pictures)
    return model.logits(model.forward(step), document.asked)


@pytest.mark.parametrize("pictured", [False, True])
def test_part_by_part_is_the_whole_model(source: Source, pictured: bool) -> None:
    document = forced(3, pictured)
    rows = None
    for part in source.parts:
        runner = PartRunner(source, part, {})
        if part.name != "head":
            rows = runner.rows(document, rows)
    assert rows is not None
    logits = np.concatenate(list(runner.logits(rows[document.asked])))
    assert np.abs(logits - whole_logits(DOCUMENT, document)).max() < 1e-3


def test_moments_are_those_of_the_inputs(source: Source) -> None:
    document = forced(1)
    embeddings, block = (next(part for part in source.parts if part.name == name) for name in ("embeddings", "block 0"))
    x = PartRunner(source, embeddings, {}).rows(document, None)
    mlp = "text.layers.0.mlp"
    moments = Moments(BACKEND, [f"{mlp}.gate_proj", f"{mlp}.up_proj", f"{mlp}.down_proj"])
    heard: list[tuple[list[str], np.ndarray]] = []
    PartRunner(source, block, {}, lambda names, rows: heard.append((list(names), rows.copy()))).rows(document, x)
    PartRunner(source, block, {}, moments.listen).rows(document, x)
    for names, rows in heard:
        for name in names:
            if name.startswith(mlp):
                mean = moments.of(name)
                assert mean is not None
                assert np.allclose(mean, rows.T @ rows / len(rows), rtol=1e-4, atol=1e-5)
    assert moments.key(f"{mlp}.gate_proj") == moments.key(f"{mlp}.up_proj") != moments.key(f"{mlp}.down_proj")
    assert moments.of("text.layers.0.linear_attn.out_proj") is None  # nobody asked for it


def test_versions_side_by_side(source: Source, tmp_path: Path) -> None:
    """Fewer bits are farther from the original; nothing changed is no divergence."""
    made = documents()
    variants = [Variant(base_allocation(source.sizes, bits), rounding) for bits, rounding in ((8, "nearest"), (4, "nearest"), (4, "gptq"))]
    watching = Watching()
    lockstep = Lockstep(source, made, tmp_path, watching)
    findings = lockstep.run([Variant({}), *variants])
    same, eight, four, compensated = findings.means()
    assert same < 1e-9
    assert eight < 0.2 * four
    assert eight < compensated
    assert [len(tokens) for tokens in findings.divergences[0]] == [int(document.values.sum()) for document in made.measured]
    assert watching.told == pytest.approx(lockstep.work_of([Variant({}), *variants]))
    assert not list(tmp_path.glob("*.f32"))


@pytest.mark.parametrize("how", ["nearest", "least_squares"])
def test_large_matrices_are_packed_some_rows_at_a_time(source: Source, how: Rounding, monkeypatch: pytest.MonkeyPatch) -> None:
    choice = ("text.embed_tokens", Format(5, 32), how)
    whole = Rounder(source, Moments(BACKEND, ())).packed(*choice)
    monkeypatch.setattr(rounding, "LARGE", 0)
    monkeypatch.setattr(rounding, "CHUNK", 1000)
    rounder = Rounder(source, Moments(BACKEND, ()))
    large = rounder.packed(*choice)
    assert all(np.array_equal(getattr(large, name).array, getattr(whole, name).array) for name in ("codes", "scales", "offsets"))
    assert rounder.matrix(*choice) is large


def test_a_version_does_not_depend_on_the_others(source: Source, tmp_path: Path) -> None:
    made = Documents(documents().calibration[:2], (forced(11),))
    one, other = (Variant(uniform(source.sizes, source.sizes.budget(bits)), "least_squares") for bits in (5.2, 3.4))
    alone = Lockstep(source, made, tmp_path).run([other]).divergences[0][0]
    together = Lockstep(source, made, tmp_path).run([one, Variant(one.allocation, "nearest"), other]).divergences[2][0]
    assert np.array_equal(alone, together)


def test_a_run_that_was_stopped_goes_on(source: Source, tmp_path: Path) -> None:
    """Stopped anywhere, what is found in the end is the same; finished parts are told as done at once."""
    made = Documents(documents().calibration[:2], (forced(11),))
    variants = [Variant(base_allocation(source.sizes, bits), "least_squares") for bits in (5, 3)]
    whole = Lockstep(source, made, tmp_path / "whole").run(variants, survey=True)
    for steps in (20, 25, 25):
        with pytest.raises(InterruptedError):
            Lockstep(source, made, tmp_path / "out", Watching(steps)).run(variants, survey=True)
    watching = Watching()
    lockstep = Lockstep(source, made, tmp_path / "out", watching)
    found = lockstep.run(variants, survey=True)
    assert watching.told == pytest.approx(lockstep.work_of(variants, survey=True))
    assert found.errors == whole.errors
    assert all(
        np.array_equal(a, b) for one, two in zip(found.divergences, whole.divergences, strict=True) for a, b in zip(one, two, strict=True)
    )
    assert not list((tmp_path / "out").iterdir())


def test_divergence_is_that_of_probabilities() -> None:
    rng = np.random.default_rng(0)
    first, second = (log_softmax(rng.standard_normal((5, 40)).astype(np.float32)) for _ in range(2))
    expected = (np.exp(first) * (first - second)).sum(axis=1)
    assert np.allclose(divergence(first, second), expected)
    assert np.allclose(np.exp(first).sum(axis=1), 1)
    assert divergence(first, first).max() < 1e-12
