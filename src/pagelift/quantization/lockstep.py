"""Many quantized versions of a model side by side, one part in memory at a time, and how far their predictions are from the original's.

All versions pass through a part before the next one is loaded. Versions that have been the same so far share their activations.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pagelift.backends import Matrix
from pagelift.backends.tensors import Floats
from pagelift.core.files import write_atomic
from pagelift.evals.forced import Forced
from pagelift.quantization.carry import Carried, CarryWriter
from pagelift.quantization.moments import Moments
from pagelift.quantization.rounding import Choice, Rounder, choices_work, error_work
from pagelift.quantization.stream import PartRunner, Source
from pagelift.quantization.work import Kind, Progress, Rounding, Unwatched, together
from pagelift.weights.quant.formats import Allocation, Format, Module
from pagelift.weights.quant.layout import Part

Doubles = npt.NDArray[np.float64]
Key = tuple[Choice, ...]
KEPT = "lockstep.json"
REFERENCE = 0
"""The state of the original."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A version of the model."""

    allocation: Allocation
    rounding: Rounding = "gptq"

    def key(self, part: Part) -> Key:
        """What makes it differ from others in a part; a head without a matrix of its own is that of the embeddings."""
        names = part.modules if part.name != "head" or "lm_head" in part.modules else (*part.modules, "text.embed_tokens")
        return tuple((name, self.allocation[name], self.rounding) for name in names if name in self.allocation)


@dataclass(frozen=True, slots=True)
class Documents:
    """calibration: whose inputs the statistics are of. measured: whose answers are compared. The same document may be in both."""

    calibration: tuple[Forced, ...]
    measured: tuple[Forced, ...]

    @property
    def all(self) -> tuple[Forced, ...]:
        """Those that are measured first."""
        known = {id(document) for document in self.measured}
        return (*self.measured, *(document for document in self.calibration if id(document) not in known))


@dataclass(slots=True)
class Findings:
    """divergences: for each variant and measured document, KL(truth || variant) of each token of a value, in nats; the truth is the
    original, or the first variant.

    errors: for each module, the output error of each format.
    """

    divergences: list[list[Doubles]] = field(default_factory=list)
    errors: dict[str, dict[Format, float]] = field(default_factory=dict)

    def means(self) -> Doubles:
        """Mean divergence of each variant over all tokens."""
        return np.array([float(np.concatenate(documents).mean()) for documents in self.divergences])


class Lockstep:
    """Runs variants over documents. work: a folder for activations. progress: told what was done."""

    def __init__(self, source: Source, documents: Documents, work: Path, progress: Progress | None = None) -> None:
        self._source = source
        self._documents = documents
        self._work = work
        self._progress = progress or Unwatched()
        self._calibrating = {id(document) for document in documents.calibration}
        self._shown = any(document.pictures for document in documents.all)
        work.mkdir(parents=True, exist_ok=True)

    def run(self, variants: Sequence[Variant], survey: bool = False) -> Findings:
        """All variants through all parts; the same run again goes on behind the last finished part, if it was killed.

        survey: measure the error of every format, and compare with the first variant instead of the original.
        """
        findings, states, before = Findings(), [REFERENCE] * len(variants), dict[int, Carried]()
        kept = _Kept(self._work / KEPT, self._mark(variants, survey))
        finished = kept.load(findings)
        for place, part in self._walk():
            children = self._children(part, variants, states)
            after = {child: self._rows(part, place, child) for child in children.values() if part.name != "head"}
            if place <= finished:
                self._progress.skip(self._part_work(part, children, survey))
            else:
                rounder = self._reference(part, self._moments(part), (before.get(REFERENCE), after.get(REFERENCE)))
                findings.errors |= {module.name: rounder.errors(module) for module in self._surveyed(part, children, survey)}
                if part.name == "head":
                    findings.divergences = self._compare(part, variants, (states, before, rounder), survey)
                rounder.keep(_often([key for _, key in children]))
                for (parent, key), child in children.items():
                    if child != REFERENCE and part.name != "head":
                        self._pass_on(part, self._swapped(key, rounder), before.get(parent), after[child])
                del rounder  # before the next part is in memory
                if part.name != "head":
                    kept.save(place, findings)
                for old in before.values():
                    old.path.unlink(missing_ok=True)
            states = [children[states[k], variant.key(part)] for k, variant in enumerate(variants)]
            before = after
            self._source.release(part)
        kept.path.unlink(missing_ok=True)
        return findings

    def work_of(self, variants: Sequence[Variant], survey: bool = False) -> dict[Kind, float]:
        """What `run` will have told in the end."""
        works, states = [], [REFERENCE] * len(variants)
        for _, part in self._walk():
            children = self._children(part, variants, states)
            works.append(self._part_work(part, children, survey))
            states = [children[states[k], variant.key(part)] for k, variant in enumerate(variants)]
        return together(works)

    def _walk(self) -> Iterator[tuple[int, Part]]:
        """The parts that are run, each with its place; without pictures, not the vision tower."""
        return ((place, part) for place, part in enumerate(self._source.parts) if part.name != "vision" or self._shown)

    def _part_work(self, part: Part, children: Mapping[tuple[int, Key], int], survey: bool) -> dict[Kind, float]:
        source, runs = self._source, sum(child != REFERENCE for child in children.values()) if part.name != "head" else 0
        every = source.loading(part) + source.running(part, self._documents.all, listening=True)
        run = every + runs * (source.loading(part) + source.running(part, self._documents.measured))
        errors = sum(map(error_work, self._surveyed(part, children, survey)))
        choices = {choice for _, key in children for choice in key}
        return together([{"run": run, "errors": errors}, choices_work(source, part, choices, self._shown)])

    def _surveyed(self, part: Part, children: Mapping[tuple[int, Key], int], survey: bool) -> list[Module]:
        """The modules whose errors are wanted: in a survey, all that some version packs."""
        packed = {name for _, key in children for name, _, _ in key} if survey else set()
        return [module for module in self._source.modules(part) if module.name in packed]

    def _mark(self, variants: Sequence[Variant], survey: bool) -> str:
        """The same for runs of the same work."""
        digest = hashlib.sha256(repr((survey, len(self._documents.measured))).encode())
        for variant in variants:
            digest.update(repr((variant.rounding, sorted(variant.allocation.items()))).encode())
        for document in self._documents.all:
            digest.update(document.tokens.tobytes())
        return digest.hexdigest()

    def _moments(self, part: Part) -> Moments:
        return Moments(self._source.backend, [module.name for module in self._source.modules(part)])

    @staticmethod
    def _children(part: Part, variants: Sequence[Variant], states: Sequence[int]) -> dict[tuple[int, Key], int]:
        """The state that follows each state and key; the original stays what it is without a key."""
        pairs = dict.fromkeys((states[k], variant.key(part)) for k, variant in enumerate(variants))
        changed = [pair for pair in pairs if pair != (REFERENCE, ())]
        return {(REFERENCE, ()): REFERENCE} | {pair: number for number, pair in enumerate(changed, 1)}

    @staticmethod
    def _swapped(key: Key, rounder: Rounder) -> dict[str, Matrix]:
        return {name: rounder.matrix(name, form, rounding) for name, form, rounding in key}

    def _reference(self, part: Part, moments: Moments, rows: tuple[Carried | None, Carried | None]) -> Rounder:
        """The original through a part, with notes of what its layers get. rows: before and after."""
        runner = PartRunner(self._source, part, {}, moments.listen)
        self._progress.advance("run", self._source.loading(part))
        before, after = rows
        writer = CarryWriter(after) if after else None
        for k, document in enumerate(self._documents.all):
            moments.active = id(document) in self._calibrating
            found = runner.rows(document, before[k] if before else None)
            if writer:
                writer.add(found)
            self._progress.advance("run", self._source.running(part, [document], listening=True))
        if writer:
            writer.finish()
        return Rounder(self._source, moments, self._progress)

    def _pass_on(self, part: Part, swapped: Mapping[str, Matrix], before: Carried | None, after: Carried) -> None:
        """The measured documents through a quantized part."""
        runner, writer = PartRunner(self._source, part, swapped), CarryWriter(after)
        self._progress.advance("run", self._source.loading(part))
        for k, document in enumerate(self._documents.measured):
            writer.add(runner.rows(document, before[k] if before else None))
            self._progress.advance("run", self._source.running(part, [document]))
        writer.finish()

    def _rows(self, part: Part, place: int, state: int) -> Carried:
        """Where the rows of a state after a part are kept."""
        documents = self._documents.all if state == REFERENCE else self._documents.measured
        return self._source.carried(self._work / f"rows-{place}-{state}.f32", part, documents)

    def _compare(
        self, part: Part, variants: Sequence[Variant], at: tuple[Sequence[int], Mapping[int, Carried], Rounder], to_first: bool
    ) -> list[list[Doubles]]:
        """Divergences of all variants at the answers of the measured documents. at: the state of each, their rows, matrices of the head."""
        states, carried, rounder = at
        keys = [variant.key(part) for variant in variants]
        runners = {key: PartRunner(self._source, part, self._swapped(key, rounder)) for key in dict.fromkeys(keys)}
        truth, truth_state = (runners[keys[0]], states[0]) if to_first else (PartRunner(self._source, part, {}), REFERENCE)
        found: list[list[Doubles]] = [[] for _ in keys]
        for k, document in enumerate(self._documents.measured):
            rows = document.asked
            truths = [log_softmax(logits) for logits in truth.logits(carried[truth_state][k][rows])]
            for number, key in enumerate(keys):
                logits = runners[key].logits(carried[states[number]][k][rows])
                parts = [divergence(right, log_softmax(values)) for right, values in zip(truths, logits, strict=True)]
                found[number].append(np.concatenate(parts) if parts else np.empty(0))
        return found


def _often(keys: Sequence[Key]) -> list[Choice]:
    """Choices that occur in several keys, each once."""
    counts = Counter(choice for key in dict.fromkeys(keys) for choice in key)
    return [choice for choice, count in counts.items() if count > 1]


@dataclass(frozen=True, slots=True)
class _Kept:
    """What a run has found so far, in a file. mark: of the run that it belongs to."""

    path: Path
    mark: str

    def load(self, findings: Findings) -> int:
        """Put back what was found; returns the place of the last finished part, -1 if there is none."""
        if not self.path.is_file():
            return -1
        saved = json.loads(self.path.read_bytes())
        if saved["mark"] != self.mark:
            return -1
        findings.errors = {name: {Format(bits, size): error for bits, size, error in rows} for name, rows in saved["errors"].items()}
        return int(saved["place"])

    def save(self, place: int, findings: Findings) -> None:
        errors = {name: [(form.bits, form.group_size, error) for form, error in row.items()] for name, row in findings.errors.items()}
        write_atomic(self.path, json.dumps({"mark": self.mark, "place": place, "errors": errors}))


def log_softmax(logits: Floats) -> Doubles:
    """Log-probabilities (rows, vocabulary) in double precision."""
    values = logits.astype(np.float64)
    values -= values.max(axis=1, keepdims=True)
    values -= np.log(np.exp(values).sum(axis=1, keepdims=True))
    return values


def divergence(truth: Doubles, other: Doubles) -> Doubles:
    """KL(truth || other) of each row of log-probabilities, in nats."""
    result: Doubles = np.einsum("rv,rv->r", np.exp(truth), truth - other)
    return np.maximum(result, 0.0)
