"""The quantized checkpoint, written part by part: each part sees what the quantized parts before it give.

A part is done when its rows and then its file are there under their names; so work that was killed goes on behind the last file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pagelift.backends import Matrix
from pagelift.backends.tensors import Packed
from pagelift.core.files import write_atomic
from pagelift.evals.forced import Forced
from pagelift.quantization.carry import Carried, CarryWriter
from pagelift.quantization.lockstep import Documents, divergence, log_softmax
from pagelift.quantization.moments import Moments
from pagelift.quantization.rounding import Rounder, Rounding
from pagelift.quantization.stream import PartRunner, Source
from pagelift.weights.quant.formats import Allocation
from pagelift.weights.quant.layout import Part
from pagelift.weights.quant.writer import ShardWriter

DIVERGENCES = "divergences.json"
TIED = "text.embed_tokens"
"""The module that is the head, too, where the two are tied."""


@dataclass(frozen=True)
class Recipe:
    """What is made."""

    allocation: Allocation
    rounding: Rounding = "gptq"


class Production:
    """Writes a checkpoint to `out`. work: a folder for what is carried from part to part; it must be the same one to go on.

    documents: those of calibration for the statistics; the measured ones go along through the original and the quantized model, so that
    the divergence is known in the end. advance: told how much was done, in parameters times tokens.
    """

    def __init__(
        self, source: Source, recipe: Recipe, documents: Documents, folders: tuple[Path, Path], advance: Callable[[float], None]
    ) -> None:
        self._source = source
        self._recipe = recipe
        self._documents = documents
        self._out, self._work = folders
        self._advance = advance
        self._writer = ShardWriter(source.checkpoint, source.parts, self._out)
        self._measures = recipe.rounding != "nearest" or bool(documents.measured)
        self._calibrating = {id(document) for document in documents.calibration}
        self._work.mkdir(parents=True, exist_ok=True)

    def run(self) -> list[list[float]]:
        """Write what is not there yet. Returns the divergences of each measured document. Raises ConfigError."""
        for place, part in enumerate(self._source.parts):
            if self._writer.is_written(place):
                self._advance(self._part_work(part))
                continue
            self._make(place, part)
            for which in ("original", "quantized"):
                self._rows(place - 1, which).path.unlink(missing_ok=True)
            self._source.release(part)
        self._writer.finish(self._recipe.allocation)
        kept = self._work / DIVERGENCES
        return json.loads(kept.read_bytes()) if kept.is_file() else []

    def total_work(self) -> float:
        """What `run` will have told `advance` in the end."""
        return sum(self._part_work(part) for part in self._source.parts)

    def _part_work(self, part: Part) -> float:
        measured, every = (sum(map(len, documents)) for documents in (self._documents.measured, self._documents.all))
        calibration = every if self._recipe.rounding != "nearest" else 0
        return self._source.size(part) * (1 + calibration + every + measured)

    def _make(self, place: int, part: Part) -> None:
        """One part: statistics, rounding, its rows, its file."""
        before = {which: self._rows(place - 1, which) if place else None for which in ("original", "quantized")}
        rounder = Rounder(self._source, self._listen(part, before["quantized"]))
        forms = {name: self._recipe.allocation[name] for name in part.modules if name in self._recipe.allocation}
        packed: dict[str, Packed] = {name: rounder.packed(name, form, self._recipe.rounding) for name, form in forms.items()}
        self._advance(self._source.size(part))
        if self._measures:
            swapped: dict[str, Matrix] = {name: rounder.matrix(name, form, self._recipe.rounding) for name, form in forms.items()}
            del rounder
            if part.name == "head":
                self._compare(part, swapped, before)
            else:
                self._pass_on(place, PartRunner(self._source, part, swapped), "quantized", before["quantized"])
                self._pass_on(place, PartRunner(self._source, part, {}), "original", before["original"])
        self._writer.write(place, packed)

    def _listen(self, part: Part, before: Carried | None) -> Moments:
        """Second moments of the inputs of a part's layers, behind the quantized parts before it."""
        wanted = [module.name for module in self._source.modules(part)]
        moments = Moments(self._source.backend, wanted)
        if self._recipe.rounding != "nearest":
            runner = PartRunner(self._source, part, {}, moments.listen)
            for k, document in enumerate(self._documents.all):
                if id(document) in self._calibrating:
                    runner.rows(document, before[k] if before else None)
                self._advance(self._source.size(part) * len(document))
        return moments

    def _pass_on(self, place: int, runner: PartRunner, which: str, before: Carried | None) -> None:
        writer = CarryWriter(self._rows(place, which))
        for k, document in enumerate(self._chosen(which)):
            writer.add(runner.rows(document, before[k] if before else None))
            self._advance(self._source.size(self._source.parts[place]) * len(document))
        writer.finish()

    def _compare(self, part: Part, swapped: Mapping[str, Matrix], before: Mapping[str, Carried | None]) -> None:
        """Divergences at the answers of the measured documents, kept in the work folder."""
        if self._source.config.tied_embeddings and TIED in self._recipe.allocation:
            swapped = {**swapped, TIED: self._tied_matrix()}
        original, other = PartRunner(self._source, part, {}), PartRunner(self._source, part, swapped)
        assert before["original"] is not None
        assert before["quantized"] is not None
        found = []
        for k, document in enumerate(self._documents.measured):
            truths = original.logits(before["original"][k][document.asked])
            values = other.logits(before["quantized"][k][document.asked])
            parts = [divergence(log_softmax(t), log_softmax(v)) for t, v in zip(truths, values, strict=True)]
            found.append(np.concatenate(parts).tolist() if parts else [])
            self._advance(2 * self._source.size(part) * len(document))
        for document in self._documents.all[len(found) :]:
            self._advance(self._source.size(part) * len(document))
        write_atomic(self._work / DIVERGENCES, json.dumps(found))

    def _tied_matrix(self) -> Matrix:
        """The embeddings as they were written, which are the head, too."""
        rounder = Rounder(self._source, Moments(self._source.backend, ()))
        return rounder.matrix(TIED, self._recipe.allocation[TIED], self._recipe.rounding)

    def _rows(self, place: int, which: str) -> Carried:
        path = self._work / f"{which}-{place}.f32"
        return self._source.carried(path, self._source.parts[max(0, place)], self._chosen(which))

    def _chosen(self, which: str) -> Sequence[Forced]:
        return self._documents.measured if which == "original" else self._documents.all
