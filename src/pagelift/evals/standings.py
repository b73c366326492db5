"""What a comparison found: a row of measures for every model, differences with intervals for every pair, and fields that flipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
import numpy.typing as npt

from pagelift.backends import Backend, open_backend
from pagelift.core import ConfigError, Json
from pagelift.evals.answers import TokenKind
from pagelift.evals.bootstrap import Interval, Shares, interval
from pagelift.evals.cases import Case
from pagelift.evals.comparison import Contender, Material, Measured, Measurements
from pagelift.evals.divergence import Divergence, compare_rows, join
from pagelift.evals.flips import FLIP_KINDS, Flip, flips, verdicts
from pagelift.evals.measuring import ANSWER_TIMES, Machine, Reading, entry, load_machine, load_reading
from pagelift.evals.report import Summary, summarize
from pagelift.evals.runner import Outcome
from pagelift.evals.traces import Trace, load_trace
from pagelift.models import Head, open_head
from pagelift.weights import find_model

MEASURES = ("kl_mean", "field_accuracy", "document_accuracy")
"""What has intervals."""


@dataclass(frozen=True, slots=True)
class ByDocument:
    """What intervals are drawn from: kl over tokens of values, right fields over all, right documents over all."""

    kl_mean: Shares
    field_accuracy: Shares
    document_accuracy: Shares

    def to_dict(self) -> dict[str, Json]:
        """Totals and counts of each."""
        shares: dict[str, Shares] = {name: getattr(self, name) for name in MEASURES}
        return {name: {"totals": one.totals.tolist(), "counts": one.counts.tolist()} for name, one in shares.items()}

    @classmethod
    def from_dict(cls, values: dict[str, Json]) -> ByDocument:
        return cls(*(Shares(np.array(values[name]["totals"]), np.array(values[name]["counts"])) for name in MEASURES))


@dataclass(frozen=True, slots=True)
class Row:
    """A model. values, punctuation: see `Divergence`. score: of its extractions. flips: against the reference. passes_per_token: of
    answers, the reading of prompts left out."""

    contender: Contender
    machine: Machine
    values: Divergence
    punctuation: Divergence
    by_document: ByDocument
    score: Summary
    flips: tuple[Flip, ...]
    passes_per_token: float | None
    answer_tokens_per_s: float | None

    @property
    def kl_interval(self) -> Interval | None:
        return interval(self.by_document.kl_mean)

    def to_dict(self) -> dict[str, Json]:
        """As in the JSON of `pagelift compare`."""
        kinds = Counter(flip.kind for flip in self.flips)
        control = self.contender.control_of
        return {
            "name": self.contender.name,
            "model": self.contender.model,
            "control_of": control[0] if control else None,
            "control": control[1] if control else None,
            "bytes": self.machine.nbytes,
            "tensor_bytes": self.machine.tensor_bytes,
            "bits_per_weight": self.machine.bits_per_weight,
            **self.values.to_dict(),
            "kl_interval": _listed(self.kl_interval),
            "value_tokens": len(self.values.kl),
            "punctuation": self.punctuation.to_dict() | {"tokens": len(self.punctuation.kl)},
            "field_accuracy": self.score.field_accuracy,
            "field_accuracy_interval": _listed(interval(self.by_document.field_accuracy)),
            "document_accuracy": self.score.document_accuracy,
            "document_accuracy_interval": _listed(interval(self.by_document.document_accuracy)),
            "false_fills": self.score.wrong["false fill"],
            "false_fill_rate": self.score.false_fill_rate,
            "null_fields": self.score.null_fields,
            "fields": self.score.fields,
            "errors": self.score.errors,
            "flips": {kind.replace(" -> ", "_to_"): kinds[kind] for kind in FLIP_KINDS},
            "peak_bytes": self.machine.peak_bytes,
            "prefill_tokens_per_s": self.machine.prefill_tokens_per_s,
            "decode_tokens_per_s": self.machine.decode_tokens_per_s,
            "answer_tokens_per_s": self.answer_tokens_per_s,
            "passes_per_token": self.passes_per_token,
            "by_document": self.by_document.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class Standings:
    """All rows in the order given, the reference first. backends: that read the documents and was timed, and that
    divergence is of. notes: about documents that could not be measured."""

    rows: tuple[Row, ...]
    documents: tuple[str, ...]
    labelled: bool
    backends: tuple[str, str]
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Json]:
        return {
            "documents": list(self.documents),
            "labelled": self.labelled,
            "backend": self.backends[0],
            "divergence_backend": self.backends[1],
            "rows": [row.to_dict() for row in self.rows],
            "pairs": [difference(a, b) for i, a in enumerate(self.rows) for b in self.rows[i + 1 :]],
            "flips": [{"model": row.contender.name, **asdict(flip)} for row in self.rows for flip in row.flips],
            "notes": list(self.notes),
        }


def difference(a: Row, b: Row) -> dict[str, Json]:
    """b less a, with 95% intervals over documents, paired."""
    return {"a": a.contender.name, "b": b.contender.name, **differences(a.by_document, b.by_document)}


def differences(a: ByDocument, b: ByDocument) -> dict[str, Json]:
    """The same by measure."""
    found: dict[str, Json] = {}
    for name in MEASURES:
        one: Shares = getattr(a, name)
        two: Shares = getattr(b, name)
        apart = None if one.mean is None or two.mean is None else two.mean - one.mean
        found[name] = {"difference": apart, "interval": _listed(interval(two, one))}
    return found


def stand(measurements: Measurements) -> Standings:
    """Compare everything that was measured. Raises ConfigError when models were not shown the same."""
    measured, material = measurements
    machine = load_machine(measured[0].folder)
    table = _Table(measured, material, open_backend(machine.traced))
    rows = tuple(table.row(index) for index in range(len(measured)))
    return Standings(
        rows, tuple(case.id for case in material.cases), material.labelled, (machine.backend, machine.traced), tuple(table.notes())
    )


@dataclass(slots=True)
class _Table:
    """The measurements of all models. backend: for the output heads. readings: by model, then by document."""

    measured: Sequence[Measured]
    material: Material
    backend: Backend
    readings: list[list[Reading]] = field(init=False)
    reference: Head = field(init=False)

    def __post_init__(self) -> None:
        documents = range(len(self.material.cases))
        self.readings = [[load_reading(one.folder, index) for index in documents] for one in self.measured]
        self.reference = open_head(find_model(self.measured[0].contender.model), self.backend)

    def notes(self) -> list[str]:
        """What a person should know about documents, each document once."""
        notes = []
        for index, case in enumerate(self.material.cases):
            every = [readings[index] for readings in self.readings]
            by_error: dict[str, list[str]] = {}
            for one, reading in zip(self.measured, every, strict=True):
                if reading.error:
                    by_error.setdefault(reading.error, []).append(one.contender.name)
            notes += [f"{case.id}: {', '.join(names)}: {error}" for error, names in by_error.items()]
            trace = self._trace(0, index)
            if trace.fault:
                notes.append(f"{case.id}: without divergence: {trace.fault}")
            elif trace.cut:
                notes.append(f"{case.id}: the schema does not admit the whole true answer; divergence is that of its beginning")
        return notes

    def row(self, index: int) -> Row:
        """The measures of one model."""
        one, readings = self.measured[index], self.readings[index]
        head = self.reference if index == 0 else open_head(find_model(one.contender.model), self.backend)
        found = [self._divergence(index, document, head) for document in range(len(self.material.cases))]
        values = [divergence.of(kinds == TokenKind.VALUE) for divergence, kinds in found]
        punctuation = [divergence.of(kinds == TokenKind.PUNCTUATION) for divergence, kinds in found]
        outcomes = [self._outcome(case, reading) for case, reading in zip(self.material.cases, readings, strict=True)]
        by_document = ByDocument(
            _shares([part.kl.sum() for part in values], [len(part.kl) for part in values]),
            _shares([len(o.score.right) for o in outcomes], [len(o.score.right) + o.score.wrong for o in outcomes]),
            _shares([not o.score.mistakes for o in outcomes], [1] * len(outcomes)),
        )
        counts: Counter[str] = Counter()
        for reading in readings:
            counts.update(reading.counts)
        flipped = tuple(flip for document in range(len(readings)) for flip in self._flips(index, document))
        return Row(
            one.contender,
            load_machine(one.folder),
            join(values),
            join(punctuation),
            by_document,
            summarize(outcomes),
            flipped,
            _share(counts["passes"] - counts["prefill_passes"], counts["output_tokens"]),
            _share(counts["output_tokens"], sum(counts[name] for name in ANSWER_TIMES)),
        )

    def _divergence(self, index: int, document: int, head: Head) -> tuple[Divergence, npt.NDArray[np.uint8]]:
        """A model on a document beside the reference; nothing where one of the two was not shown it."""
        known, trace = self._trace(0, document), self._trace(index, document)
        if known.fault or trace.fault:
            return join([]), np.empty(0, np.uint8)
        if trace.prompts != known.prompts or not np.array_equal(trace.targets, known.targets):
            raise ConfigError(
                f"{self.measured[index].contender.name} was shown another prompt than {self.measured[0].contender.name} for "
                f"{self.material.cases[document].id}: their chat templates, preprocessors or prompts differ, and so they cannot be "
                "compared token by token"
            )
        return _compared((self.reference, head), known, trace), known.kinds

    def _trace(self, index: int, document: int) -> Trace:
        return load_trace(entry(self.measured[index].folder, document, ".npz"))

    def _outcome(self, case: Case, reading: Reading) -> Outcome:
        if not case.expected.is_file():  # the reference failed on a document of which nobody knows the truth
            return Outcome(case, case.scorer.missing({}), None, 0, reading.seconds, reading.error)
        truth = case.truth()
        score = case.scorer.missing(truth) if reading.error else case.scorer.score(truth, reading.data)
        return Outcome(case, score, reading.data, 0, reading.seconds, reading.error)

    def _flips(self, index: int, document: int) -> list[Flip]:
        case = self.material.cases[document]
        if index == 0 or not case.expected.is_file():
            return []
        truth = case.truth()
        old, new = (verdicts(case.scorer, truth, self.readings[k][document].data) for k in (0, index))
        return list(flips(case.id, old, new))


def _compared(heads: tuple[Head, Head], known: Trace, trace: Trace) -> Divergence:
    return compare_rows(heads, (known.hidden, trace.hidden), known.targets)


def _shares(totals: Sequence[float], counts: Sequence[float]) -> Shares:
    return Shares(np.array(totals, np.float64), np.array(counts, np.float64))


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None


def _listed(found: Interval | None) -> list[float] | None:
    return None if found is None else list(found)
