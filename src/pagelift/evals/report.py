"""Tables and numbers of an evaluation."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pagelift.core import Json
from pagelift.evals.runner import Outcome
from pagelift.evals.scoring import KINDS


@dataclass(frozen=True, slots=True)
class Summary:
    """The counts of some documents. wrong: fields by kind of mistake; the rest are numbers of documents, pages and fields."""

    documents: int
    errors: int
    complete: int
    pages: int
    fields: int
    right: int
    null_fields: int
    wrong: dict[str, int]

    @property
    def field_accuracy(self) -> float:
        return self.right / self.fields if self.fields else 0.0

    @property
    def document_accuracy(self) -> float:
        return self.complete / self.documents if self.documents else 0.0

    @property
    def false_fill_rate(self) -> float:
        """Wrongly filled fields per field whose true value is null."""
        return self.wrong["false fill"] / self.null_fields if self.null_fields else 0.0

    def to_dict(self) -> dict[str, Json]:
        counts = {"documents": self.documents, "errors": self.errors, "complete": self.complete, "pages": self.pages}
        counts |= {"fields": self.fields, "right": self.right, "null_fields": self.null_fields}
        rates = {
            "field_accuracy": self.field_accuracy,
            "document_accuracy": self.document_accuracy,
            "false_fill_rate": self.false_fill_rate,
        }
        return {**counts, **{kind.replace(" ", "_"): n for kind, n in self.wrong.items()}, **{k: round(v, 6) for k, v in rates.items()}}


def summarize(outcomes: Sequence[Outcome]) -> Summary:
    """Add up the scores of some documents."""
    wrong: Counter[str] = Counter()
    for outcome in outcomes:
        for mistake in outcome.score.mistakes:
            wrong[mistake.kind] += mistake.count
    right = sum(len(outcome.score.right) for outcome in outcomes)
    return Summary(
        documents=len(outcomes),
        errors=sum(bool(outcome.error) for outcome in outcomes),
        complete=sum(not outcome.score.mistakes for outcome in outcomes),
        pages=sum(outcome.pages for outcome in outcomes),
        fields=right + wrong.total(),
        right=right,
        null_fields=sum(outcome.score.null_fields for outcome in outcomes),
        wrong={kind: wrong[kind] for kind in KINDS},
    )


def by_collection(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.case.collection, []).append(outcome)
    return groups


def macro_average(outcomes: Sequence[Outcome]) -> tuple[float, float]:
    """Field accuracy and document accuracy, averaged over the collections."""
    sums = [summarize(group) for group in by_collection(outcomes).values()]
    return statistics.fmean(s.field_accuracy for s in sums), statistics.fmean(s.document_accuracy for s in sums)


def page_seconds(outcomes: Sequence[Outcome]) -> tuple[float, float]:
    """Median and 95th percentile of the seconds per page, over all pages of documents without an error."""
    times = sorted(outcome.seconds / outcome.pages for outcome in outcomes for _ in range(outcome.pages))
    if not times:
        return 0.0, 0.0
    return statistics.median(times), times[min(len(times) - 1, int(0.95 * len(times)))]


def to_dict(outcomes: Sequence[Outcome], wall_s: float) -> dict[str, Json]:
    """All numbers of an evaluation as JSON."""
    fields, documents = macro_average(outcomes)
    median, p95 = page_seconds(outcomes)
    return {
        "collections": {name: summarize(group).to_dict() for name, group in by_collection(outcomes).items()},
        "all": summarize(outcomes).to_dict(),
        "macro": {"field_accuracy": round(fields, 6), "document_accuracy": round(documents, 6)},
        "fields": {name: {path: list(n) for path, n in count_paths(group).items()} for name, group in by_collection(outcomes).items()},
        "seconds": {"wall": round(wall_s, 3), "page_median": round(median, 5), "page_p95": round(p95, 5)},
        "errors": {outcome.case.id: outcome.error for outcome in outcomes if outcome.error},
    }


def count_paths(outcomes: Sequence[Outcome]) -> dict[str, tuple[int, int]]:
    """Right and wrong fields by path; rows that are missing or surplus count under the array's path."""
    right: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for outcome in outcomes:
        right.update(outcome.score.right)
        for mistake in outcome.score.mistakes:
            wrong[mistake.path or "(no prediction)"] += mistake.count
    return {path: (right[path], wrong[path]) for path in sorted(right | wrong)}


_COLUMNS = (
    "collection",
    "docs",
    "errors",
    "pages",
    "fields",
    "field acc",
    "doc acc",
    "wrong",
    "unfilled",
    "rows -",
    "rows +",
    "false fills",
)
_ROW = "{:<18} {:>5} {:>6} {:>6} {:>7} {:>10} {:>9} {:>6} {:>9} {:>7} {:>7} {:>18}"


def table(outcomes: Sequence[Outcome]) -> str:
    """The counts per collection and in all, and the macro average, as text."""
    groups = by_collection(outcomes)
    lines = [_ROW.format(*_COLUMNS), *(_line(name, summarize(group)) for name, group in groups.items())]
    lines.append(_line("all", summarize(outcomes)))
    fields, documents = macro_average(outcomes)
    lines.append(f"macro average over {len(groups)} collections: field accuracy {fields:.2%}, document accuracy {documents:.2%}")
    return "\n".join(lines)


def _line(name: str, s: Summary) -> str:
    fills = f"{s.wrong['false fill']} of {s.null_fields} ({s.false_fill_rate:.1%})"
    rates = f"{s.field_accuracy:.2%}", f"{s.document_accuracy:.2%}"
    mistakes = [s.wrong[kind] for kind in ("wrong value", "not filled", "missing row", "extra row")]
    return _ROW.format(name[:18], s.documents, s.errors, s.pages, s.fields, *rates, *mistakes, fills)


def fields_table(outcomes: Sequence[Outcome]) -> str:
    """Accuracy per field path of every collection, as text."""
    lines = []
    for name, group in by_collection(outcomes).items():
        lines.append(f"\n{name}")
        for path, (right, wrong) in count_paths(group).items():
            lines.append(f"  {path:<44} {right:>5} right {wrong:>5} wrong {right / (right + wrong):>8.2%}")
    return "\n".join(lines).lstrip("\n")


def mistakes_list(outcomes: Sequence[Outcome], most: int) -> str:
    """The first mistakes, one a line, as text."""
    found = ((outcome, mistake) for outcome in outcomes for mistake in outcome.score.mistakes)
    lines = []
    for outcome, mistake in (pair for pair, _ in zip(found, range(most), strict=False)):
        what = outcome.error or f"expected {_short(mistake.expected)} got {_short(mistake.predicted)}"
        lines.append(f"{outcome.case.id} {mistake.path} [{mistake.kind}] {what}")
    return "\n".join(lines)


def _short(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 120 else text[:117] + "..."
