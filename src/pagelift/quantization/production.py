"""The quantized checkpoint, written part by part: each part sees what the quantized parts before it give.

A part is done when its rows and then its file are there under their names; so work that was killed goes on behind the last file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
from pagelift.quantization.rounding import Choice, Rounder, choices_work
from pagelift.quantization.stream import PartRunner, Source
from pagelift.quantization.work import Kind, Progress, Rounding, Unwatched, together
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
    the divergence is known in the end. progress: told what was done.
    """

    def __init__(
        self, source: Source, recipe: Recipe, documents: Documents, folders: tuple[Path, Path], progress: Progress | None = None
    ) -> None:
        self._source = source
        self._recipe = recipe
        self._documents = documents
        self._out, self._work = folders
        self._progress = progress or Unwatched()
        self._writer = ShardWriter(source.checkpoint, source.parts, self._out)
        self._measures = recipe.rounding != "nearest" or bool(documents.measured)
        self._calibrating = {id(document) for document in documents.calibration}
        self._shown = any(document.pictures for document in documents.calibration)
        self._work.mkdir(parents=True, exist_ok=True)

    def run(self) -> list[list[float]]:
        """Write what is not there yet. Returns the divergences of each measured document. Raises ConfigError."""
        for place, part in enumerate(self._source.parts):
            if self._writer.is_written(place):
                self._progress.skip(self._part_work(part))
                continue
            self._make(place, part)
            for which in ("original", "quantized"):
                self._rows(place - 1, which).path.unlink(missing_ok=True)
            self._source.release(part)
        self._writer.finish(self._recipe.allocation)
        kept = self._work / DIVERGENCES
        return json.loads(kept.read_bytes()) if kept.is_file() else []

    def total_work(self) -> dict[Kind, float]:
        """What `run` will have told in the end."""
        return together(self._part_work(part) for part in self._source.parts)

    def _part_work(self, part: Part) -> dict[Kind, float]:
        source, documents = self._source, self._documents
        run = 0.0
        if self._recipe.rounding != "nearest":
            run += source.loading(part) + source.running(part, documents.calibration, listening=True)
        if self._measures:
            passed_on = documents.measured if part.name == "head" else self._chosen("quantized")
            run += 2 * source.loading(part) + source.running(part, documents.measured) + source.running(part, passed_on)
        return together([{"run": run}, choices_work(source, part, self._choices(part), self._shown)])

    def _choices(self, part: Part) -> list[Choice]:
        recipe = self._recipe
        return [(name, recipe.allocation[name], recipe.rounding) for name in part.modules if name in recipe.allocation]

    def _make(self, place: int, part: Part) -> None:
        """One part: statistics, rounding, its rows, its file."""
        before = {which: self._rows(place - 1, which) if place else None for which in ("original", "quantized")}
        rounder, choices = Rounder(self._source, self._listen(part, before["quantized"]), self._progress), self._choices(part)
        packed: dict[str, Packed] = {choice[0]: rounder.packed(*choice) for choice in choices}
        if self._measures:
            swapped: dict[str, Matrix] = {choice[0]: rounder.matrix(*choice) for choice in choices}
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
            self._progress.advance("run", self._source.loading(part))
            for k, document in enumerate(self._documents.all):
                if id(document) in self._calibrating:
                    runner.rows(document, before[k] if before else None)
                    self._progress.advance("run", self._source.running(part, [document], listening=True))
        return moments

    def _pass_on(self, place: int, runner: PartRunner, which: str, before: Carried | None) -> None:
        part, writer = self._source.parts[place], CarryWriter(self._rows(place, which))
        self._progress.advance("run", self._source.loading(part))
        for k, document in enumerate(self._chosen(which)):
            writer.add(runner.rows(document, before[k] if before else None))
            self._progress.advance("run", self._source.running(part, [document]))
        writer.finish()

    def _compare(self, part: Part, swapped: Mapping[str, Matrix], before: Mapping[str, Carried | None]) -> None:
        """Divergences at the answers of the measured documents, kept in the work folder."""
        if self._source.config.tied_embeddings and TIED in self._recipe.allocation:
            swapped = {**swapped, TIED: self._tied_matrix()}
        original, other = PartRunner(self._source, part, {}), PartRunner(self._source, part, swapped)
        self._progress.advance("run", 2 * self._source.loading(part))
        assert before["original"] is not None
        assert before["quantized"] is not None
        found = []
        for k, document in enumerate(self._documents.measured):
            truths = original.logits(before["original"][k][document.asked])
            values = other.logits(before["quantized"][k][document.asked])
            parts = [divergence(log_softmax(t), log_softmax(v)) for t, v in zip(truths, values, strict=True)]
            found.append(np.concatenate(parts).tolist() if parts else [])
            self._progress.advance("run", 2 * self._source.running(part, [document]))
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
