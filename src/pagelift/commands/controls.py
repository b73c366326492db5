"""Checkpoints at the bytes of another one, made from the reference: what a good choice of bits has to beat."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from pagelift.backends import open_backend
from pagelift.commands import say
from pagelift.commands.quantize import StageBar
from pagelift.core import ConfigError
from pagelift.evals.comparison import Contender
from pagelift.models.config import load_config
from pagelift.quantization.controls import CONTROLS, Control, make_control
from pagelift.quantization.job import WORK, Effort
from pagelift.weights import find_model
from pagelift.weights.checkpoint import weight_files
from pagelift.weights.summary import summarise

BACKEND = "cpu-exact"


def add_controls(entered: Sequence[Contender], work: Path, effort: Effort | None = None) -> list[Contender]:
    """The contenders, each but the first with its controls behind it. They are made in `work` unless they are there.

    Raises ConfigError when the reference is quantized itself, WeightsError.
    """
    first, *others = entered
    reference = find_model(first.model)
    if load_config(reference).quantization:
        raise ConfigError(f"controls are made from the first model, and {first.name} is quantized itself; name a 16-bit checkpoint first")
    every = [first]
    for other in others:
        every.append(other)
        folder = find_model(other.model)
        if not load_config(folder).quantization:
            continue  # as large as the reference
        nbytes = summarise(folder, load_config(folder).quantization).size
        for kind in CONTROLS:
            out = control(kind, reference, nbytes, work / "controls", effort)
            every.append(Contender(f"{kind} at {other.name}", str(out), (other.name, kind)))
    return every


def control(kind: Control, reference: Path, nbytes: int, work: Path, effort: Effort | None = None) -> Path:
    """The folder of one control; made unless it is there, or gone on with."""
    files = [(str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in weight_files(reference)]
    out = work / f"{kind}-{nbytes}-{hashlib.sha256(repr(files).encode()).hexdigest()[:8]}"
    if not is_finished(out):
        say(f"control {kind} of {nbytes / 1e6:,.1f} MB")
        with StageBar() as bar:
            make_control(kind, (reference, out), nbytes, (open_backend(BACKEND), bar), effort)
    return out


def is_finished(out: Path) -> bool:
    """Whether a quantized checkpoint is there and complete."""
    return (out / "config.json").is_file() and not (out / WORK).is_dir()
