"""Checkpoints that another one is compared with at the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pagelift.backends import Backend
from pagelift.quantization.job import Effort, Job, Result, documents_of, finish, make, quantize, work_folder
from pagelift.quantization.production import Recipe
from pagelift.quantization.stream import Source
from pagelift.quantization.work import Progress
from pagelift.weights.quant import allocations
from pagelift.weights.quant.targets import target_of_size

Control = Literal["uniform", "random", "oq"]
CONTROLS: tuple[Control, ...] = ("uniform", "oq", "random")


def make_control(
    kind: Control, folders: tuple[Path, Path], nbytes: int, running: tuple[Backend, Progress], effort: Effort | None = None
) -> Result:
    """Write a checkpoint of at most `nbytes` bytes of tensors; the vision tower stays in 16 bits. folders: source and output.

    uniform: one width for all, rounded to nearest. oq: the plan of oQ, rounded to nearest. random: bits drawn at random, rounded as
    method best does. running: as for `quantize`. Raises WeightsError, ConfigError.
    """
    source_folder, out = folders
    backend, progress = running
    job = Job(source_folder, out, f"control {kind}", nbytes / 1e9, "oq", None, False, effort or Effort())
    if kind == "oq":
        result = quantize(job, backend, progress)
        finish(job)
        return result
    source = Source.open(source_folder, backend)
    target = target_of_size(source.sizes, nbytes)
    choose = allocations.uniform if kind == "uniform" else allocations.random
    allocation = choose(source.sizes, target.limit(source.sizes))
    documents = documents_of(job) if kind == "random" else None
    recipe = Recipe(allocation, "gptq" if kind == "random" else "nearest")
    result = make(source, target, recipe, (job, documents, work_folder(job)), progress)
    finish(job)
    return result
