"""Many quantized versions of a model side by side, one part in memory at a time, and how far their predictions are from the original's.

All versions pass through a part before the next one is loaded. Versions that have been the same so far share their activations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pagelift.backends import Matrix
from pagelift.backends.tensors import Floats
from pagelift.evals.forced import Forced
from pagelift.quantization.carry import Carried, CarryWriter
from pagelift.quantization.moments import Moments
from pagelift.quantization.rounding import Rounder, Rounding
from pagelift.quantization.stream import PartRunner, Source
from pagelift.weights.quant.formats import Allocation, Format
from pagelift.weights.quant.layout import Part

Doubles = npt.NDArray[np.float64]
Key = tuple[tuple[str, Format, Rounding], ...]
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

    errors: for each module, the output error of each format. head: second moments of the head's input over answers.
    """

    divergences: list[list[Doubles]] = field(default_factory=list)
    errors: dict[str, dict[Format, float]] = field(default_factory=dict)
    head: Floats | None = None

    def means(self) -> Doubles:
        """Mean divergence of each variant over all tokens."""
        return np.array([float(np.concatenate(documents).mean()) for documents in self.divergences])


class Lockstep:
    """Runs variants over documents. work: a folder for activations. advance: told how much was done, in parameters times tokens."""

    def __init__(self, source: Source, documents: Documents, work: Path, advance: Callable[[float], None] = lambda _: None) -> None:
        self._source = source
        self._documents = documents
        self._work = work
        self._advance = advance
        self._calibrating = {id(document) for document in documents.calibration}
        self._shown = any(document.pictures for document in documents.all)
        work.mkdir(parents=True, exist_ok=True)

    def run(self, variants: Sequence[Variant], survey: bool = False, known: Mapping[str, Floats] | None = None) -> Findings:
        """All variants through all parts. known: moments of modules from an earlier run.

        survey: measure the error of every format, and compare with the first variant instead of the original.
        """
        findings = Findings()
        states = [REFERENCE] * len(variants)
        carried: dict[int, Carried] = {}
        for place, part in enumerate(self._source.parts):
            if part.name == "vision" and not self._shown:
                continue
            moments = self._moments(part, known or {})
            reference = self._reference(part, moments, carried.get(REFERENCE), place)
            rounder = Rounder(self._source, moments)
            if survey:
                findings.errors |= {module.name: rounder.errors(module) for module in self._source.modules(part)}
            children = self._children(part, variants, states)
            if part.name == "head":
                findings.head = moments.of("lm_head")
                findings.divergences = self._compare(part, variants, (states, carried, rounder), survey)
            after = {} if reference is None else {REFERENCE: reference}
            for (parent, key), child in children.items():
                if child != REFERENCE and part.name != "head":
                    after[child] = self._advance_state(part, carried.get(parent), (child, place), self._swapped(key, rounder))
            states = [children[states[k], variant.key(part)] for k, variant in enumerate(variants)]
            for old in carried.values():
                old.path.unlink(missing_ok=True)
            carried = after
            self._source.release(part)
        return findings

    def work_of(self, variants: Sequence[Variant]) -> float:
        """What `run` will have told `advance` in the end."""
        total, states = 0.0, [REFERENCE] * len(variants)
        measured, everything = (sum(map(len, documents)) for documents in (self._documents.measured, self._documents.all))
        for part in self._source.parts:
            children = self._children(part, variants, states)
            runs = sum(child != REFERENCE for child in children.values()) if part.name != "head" else 0
            total += self._source.size(part) * (everything + runs * measured) if part.name != "vision" or self._shown else 0
            states = [children[states[k], variant.key(part)] for k, variant in enumerate(variants)]
        return total

    def _moments(self, part: Part, known: Mapping[str, Floats]) -> Moments:
        wanted = [module.name for module in self._source.modules(part)]
        moments = Moments(self._source.backend, [*wanted, "lm_head"] if part.name == "head" else wanted)
        for name in wanted:
            if name in known:
                moments.put(name, known[name])
        return moments

    @staticmethod
    def _children(part: Part, variants: Sequence[Variant], states: Sequence[int]) -> dict[tuple[int, Key], int]:
        """The state that follows each state and key; the original stays what it is without a key."""
        pairs = dict.fromkeys((states[k], variant.key(part)) for k, variant in enumerate(variants))
        changed = [pair for pair in pairs if pair != (REFERENCE, ())]
        return {(REFERENCE, ()): REFERENCE} | {pair: number for number, pair in enumerate(changed, 1)}

    @staticmethod
    def _swapped(key: Key, rounder: Rounder) -> dict[str, Matrix]:
        return {name: rounder.matrix(name, form, rounding) for name, form, rounding in key}

    def _reference(self, part: Part, moments: Moments, before: Carried | None, place: int) -> Carried | None:
        """The original through a part, with notes of what its layers get."""
        runner = PartRunner(self._source, part, {}, moments.listen)
        documents = self._documents.all
        writer = None if part.name == "head" else CarryWriter(self._carried(part, documents, f"{place}-{REFERENCE}"))
        for k, document in enumerate(documents):
            moments.active = id(document) in self._calibrating
            self._step(part, runner, document, before[k] if before else None, writer)
        return writer.finish() if writer else None

    def _advance_state(self, part: Part, before: Carried | None, number: tuple[int, int], swapped: Mapping[str, Matrix]) -> Carried:
        runner = PartRunner(self._source, part, swapped)
        child, place = number
        writer = CarryWriter(self._carried(part, self._documents.measured, f"{place}-{child}"))
        for k, document in enumerate(self._documents.measured):
            self._step(part, runner, document, before[k] if before else None, writer)
        return writer.finish()

    def _step(self, part: Part, runner: PartRunner, document: Forced, before: Floats | None, writer: CarryWriter | None) -> None:
        """One document through a part. before: its rows after the part before."""
        rows = runner.rows(document, before)
        if writer:
            writer.add(rows)
        self._advance(self._source.size(part) * len(document))

    def _carried(self, part: Part, documents: Sequence[Forced], name: str) -> Carried:
        return self._source.carried(self._work / f"rows-{name}.f32", part, documents)

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
