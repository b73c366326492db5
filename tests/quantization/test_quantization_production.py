"""Whole checkpoints: what is written is what was measured, loads everywhere, and does not depend on being killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made import DOCUMENT, Watching, documents, forced
from test_quantization_stream import BACKEND, whole_logits

from pagelift.backends.reference import unpack_matrix
from pagelift.backends.tensors import Packed
from pagelift.core.errors import ConfigError
from pagelift.models import load_config
from pagelift.quantization.card import card
from pagelift.quantization.controls import CONTROLS, make_control
from pagelift.quantization.job import Effort, Job, Result, Sets, finish, quantize
from pagelift.quantization.lockstep import divergence, log_softmax
from pagelift.quantization.picture import draw
from pagelift.quantization.production import Production, Recipe
from pagelift.quantization.stream import Source
from pagelift.quantization.work import Kind, Unwatched, Work
from pagelift.weights import Tokenizer, WeightReader, load_checkpoint
from pagelift.weights.quant.allocations import random
from pagelift.weights.quant.targets import PUBLISHED

SMALL = Effort(calibration=2, sensitivity=1, held_out=2, rounds=1, text=4)


def made_sets(_: Job) -> Sets:
    """In place of generated documents, which take long to draw; test_quantization_calibration looks at those."""
    made = documents()
    return Sets(made.calibration, (forced(20, True),), made.measured)


@pytest.fixture(autouse=True, scope="module")
def quick_documents() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in ("job", "controls"):
            patch.setattr(f"pagelift.quantization.{module}.documents_of", made_sets)
        yield


class Silent(Unwatched):
    """No progress bar. deadly: a stage in which, after so many steps, the process gets the signal that nothing can catch."""

    def __init__(self, deadly: tuple[str, int] = ("", 0)) -> None:
        self.stages: list[str] = []
        self.deadly, self.left = deadly

    def stage(self, name: str, work: Work) -> None:  # noqa: ARG002
        self.stages.append(name)

    def advance(self, kind: Kind, amount: float) -> None:  # noqa: ARG002
        self.left -= self.stages[-1] == self.deadly
        if self.left == 0 and self.stages[-1] == self.deadly:
            os.kill(os.getpid(), signal.SIGKILL)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.fixture(scope="module")
def best(quick_documents: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Job, Result]:  # noqa: ARG001
    job = Job(DOCUMENT, tmp_path_factory.mktemp("best") / "out", "oQ6", effort=SMALL)
    progress = Silent()
    result = quantize(job, BACKEND, progress)
    assert progress.stages[0] == "sensitivities"
    assert progress.stages[-1] == "rounding"
    return job, result


def test_what_was_measured_is_what_was_written(tmp_path: Path) -> None:
    """The divergences on the way are those between the original and the files."""
    source, made = Source.open(DOCUMENT, BACKEND), documents()
    allocation = random(source.sizes, source.sizes.budget(5.0))
    out, watching = tmp_path / "out", Watching()
    found = Production(source, Recipe(allocation), made, (out, tmp_path / "work"), watching).run()
    for document, tokens in zip(made.measured, found, strict=True):
        truth, other = (log_softmax(whole_logits(folder, document)) for folder in (DOCUMENT, out))
        assert np.allclose(divergence(truth, other), tokens, rtol=0.05, atol=1e-3)
    assert watching.told == pytest.approx(Production(source, Recipe(allocation), made, (out, tmp_path / "work")).total_work())


def test_size_and_files(best: tuple[Job, Result]) -> None:
    job, result = best
    target = PUBLISHED["oq6"]
    sizes = result.source.sizes
    written = sum(tensor.array.nbytes for tensor in load_checkpoint(job.out).tensors.values())
    assert written == result.size == sizes.nbytes(result.plan.allocation)
    assert written <= target.limit(sizes)
    assert sizes.bits_of(written) == pytest.approx(target.bits, rel=0.01)
    ends = json.loads((job.out / "generation_config.json").read_text())["eos_token_id"]
    assert set(ends) == Tokenizer.load(DOCUMENT).stop_tokens
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "preprocessor_config.json"):
        assert (job.out / name).read_bytes() == (DOCUMENT / name).read_bytes()
    assert all(np.isfinite(document).all() for document in result.divergences)


def test_every_packed_matrix_reads_as_mlx_reads_it(best: tuple[Job, Result]) -> None:
    mx = pytest.importorskip("mlx.core")
    job, _ = best
    checkpoint, config = load_checkpoint(job.out), load_config(job.out)
    reader = WeightReader(checkpoint, config.quantization)
    modules = [name.removesuffix(".scales") for name in checkpoint.tensors if name.endswith(".scales")]
    assert len(modules) > 20
    for name in modules:
        bits, group_size = reader.packing(name)
        codes, scales = checkpoint.tensors[f"{name}.weight"], checkpoint.tensors[f"{name}.scales"]
        matrix = reader.embedding(name, codes.shape[0], scales.shape[1] * group_size)
        assert isinstance(matrix, Packed)
        with mx.stream(mx.cpu):
            parts = [mx.array(part.to_float32()) for part in (matrix.scales, matrix.offsets)]
            values = mx.dequantize(mx.array(codes.array), *parts, group_size=group_size, bits=bits)
            assert np.array_equal(np.array(values), unpack_matrix(matrix))


KILLED = """
import sys
sys.path[:0] = sys.argv[1].split(":")
from pathlib import Path
import pagelift.quantization.job
from test_quantization_production import *
pagelift.quantization.job.documents_of = made_sets
quantize(killed_job(Path(sys.argv[2])), BACKEND, Silent((sys.argv[3], int(sys.argv[4]))))
"""


def killed_job(folder: Path) -> Job:
    return Job(DOCUMENT, folder, "oQ5", vision=False, effort=Effort(1, 1, 1, 0, 4))


def test_mlx_lm_loads_it(best: tuple[Job, Result]) -> None:
    """Its text model, in float32 as ours: the same logits."""
    mx, mlx_lm, utils = (pytest.importorskip(name) for name in ("mlx.core", "mlx_lm.utils", "mlx.utils"))
    job, _ = best
    document = documents().measured[1]
    with mx.stream(mx.cpu):
        model, _ = mlx_lm.load_model(job.out)
        model.update(utils.tree_map(lambda p: p.astype(mx.float32) if p.dtype == mx.bfloat16 else p, model.parameters()))
        logits = np.array(model(mx.array(document.tokens[None])))[0][document.asked]
    assert np.abs(logits - whole_logits(job.out, document)).max() < 1e-3


def test_work_that_was_killed_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    """Killed among the sensitivities, then twice in the rounding; what goes on writes what an undisturbed run writes."""
    here, out, whole = Path(__file__).parent, tmp_path / "out", tmp_path / "whole"
    for stage, steps in (("sensitivities", 9), ("rounding", 7), ("rounding", 40)):
        command = [sys.executable, "-c", KILLED, f"{here}:{here.parent}", str(out), stage, str(steps)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr
    for folder in (out, whole):
        progress = Silent()
        quantize(killed_job(folder), BACKEND, progress)
        assert progress.stages == (["rounding"] if folder == out else ["sensitivities", "rounding"])
        finish(killed_job(folder))
    assert contents(out) == contents(whole)


def test_parts_that_are_there_are_not_made_again(tmp_path: Path) -> None:
    source, made = Source.open(DOCUMENT, BACKEND), documents()
    allocation = random(source.sizes, source.sizes.budget(4.6))
    whole, out = tmp_path / "whole", tmp_path / "out"
    Production(source, Recipe(allocation), made, (whole, tmp_path / "w1")).run()
    for most in (15, 75, 60):
        with pytest.raises(InterruptedError):
            Production(source, Recipe(allocation), made, (out, tmp_path / "w2"), Watching(most)).run()
    watching, last = Watching(), Production(source, Recipe(allocation), made, (out, tmp_path / "w2"))
    Production(source, Recipe(allocation), made, (out, tmp_path / "w2"), watching).run()
    assert watching.told == pytest.approx(last.total_work())
    assert contents(out) == contents(whole)


def test_a_folder_with_other_work_is_refused(best: tuple[Job, Result], tmp_path: Path) -> None:
    job, _ = best
    with pytest.raises(ConfigError, match="another command"):
        quantize(Job(DOCUMENT, job.out, "oQ5", effort=SMALL), BACKEND, Silent())
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="not an empty folder"):
        quantize(Job(DOCUMENT, tmp_path, "oQ5"), BACKEND, Silent())
    with pytest.raises(ConfigError, match="the checkpoint itself"):
        quantize(Job(DOCUMENT, DOCUMENT, "oQ5"), BACKEND, Silent())
    with pytest.raises(ConfigError, match="quantized already"):
        quantize(Job(job.out, tmp_path / "again", "oQ5"), BACKEND, Silent())


@pytest.mark.parametrize("kind", CONTROLS)
def test_controls_stay_within_their_bytes(kind: str, tmp_path: Path) -> None:
    result = make_control(kind, (DOCUMENT, tmp_path / "out"), 190_000, (BACKEND, Silent()), Effort(1, 1, 1, 0, 2))
    written = sum(tensor.array.nbytes for tensor in load_checkpoint(tmp_path / "out").tensors.values())
    assert 180_000 < written == result.size <= 190_000
    assert not (tmp_path / "out" / ".quantize").exists()


def test_card_and_picture(best: tuple[Job, Result], tmp_path: Path) -> None:
    job, result = best
    text = card(job, result, "pagelift quantize a b")
    assert "pagelift quantize a b" in text
    assert f"{result.size / 1e6:,.1f} MB" in text
    assert "base_model" not in text
    assert "base_model: owner/name\n" in card(replace(job, name="owner/name"), result, "")
    draw(result.source.sizes, result.plan.allocation, tmp_path / "bits.png")
    assert (tmp_path / "bits.png").stat().st_size > 1000
    with pytest.raises(ConfigError, match=r"bits\.nothing"):
        draw(result.source.sizes, result.plan.allocation, tmp_path / "bits.nothing")
