"""What an answer has shown so far: where its values stand on the pages, and which guesses were right."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pagelift.decoding.outline import EACH, Path, Place, Written, path_of, row_of
from pagelift.decoding.pages import Span

PRIOR = {"given": 0.8, "row": 0.7, "label": 0.5, "next": 0.3, "repeat": 0.2, "null": 0.2, "begun": 0.7, "ended": 0.6}
"""How often a source is right before anything is known."""
PRIOR_WEIGHT = 3


class Record:
    """How often each source of guesses was right, for each path, and in all tables or outside of them."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, Path | bool], tuple[int, int]] = {}

    def add(self, source: str, path: Path, right: bool) -> None:
        """Count a guess."""
        for key in ((source, path), (source, EACH in path)):
            hits, count = self._counts.get(key, (0, 0))
            self._counts[key] = hits + right, count + 1

    def rate(self, source: str, path: Path) -> float:
        """The probability that its next guess for this path is right."""
        hits, count = self._counts.get((source, EACH in path), (0, 0))
        general = (hits + PRIOR_WEIGHT * PRIOR[source]) / (count + PRIOR_WEIGHT)
        hits, count = self._counts.get((source, path), (0, 0))
        return (hits + PRIOR_WEIGHT * general) / (count + PRIOR_WEIGHT)


@dataclass(slots=True)
class Trail:
    """Where the values so far were found. cells: of the current row by path; above: those of the row before; gap: words between
    the end of a row and the beginning of the next, None before there are two. last: the value written last for each path. used:
    first words of values."""

    cursor: int = 0
    row: int = -1
    cells: dict[Path, Span] = field(default_factory=dict)
    above: dict[Path, Span] = field(default_factory=dict)
    gap: int | None = None
    last: dict[Path, str] = field(default_factory=dict)
    used: set[int] = field(default_factory=set)

    def copy(self) -> Trail:
        """An independent trail with the same past."""
        return replace(self, cells=dict(self.cells), above=dict(self.above), last=dict(self.last), used=set(self.used))

    def add(self, written: Written, span: Span | None) -> None:
        """A value has been written, and `span` says it."""
        path = path_of(written.place)
        self.last[path] = written.text
        self.enter(written.place)
        if span is None:
            return
        if EACH in path:
            if not self.cells and self.above:
                self.gap = span[0] - max(end for _, end in self.above.values())
            self.cells[path] = span
        self.cursor = span[1]
        self.used.add(span[0])

    def enter(self, place: Place) -> None:
        """The next value is that of a place."""
        row = row_of(place)
        if row >= 0 and row != self.row:
            self.above = self.cells if row > 0 and self.cells else ({} if row == 0 else self.above)
            self.cells, self.row = {}, row
            if row == 0:
                self.gap = None
