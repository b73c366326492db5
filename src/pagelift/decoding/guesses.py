"""Where on the pages the next value of an answer may stand: each source of guesses by itself, and how often each was right."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pagelift.decoding.outline import EACH, Path, Place, Written, path_of, row_of
from pagelift.decoding.pages import Pages, Span, dates, quoted, shape

PRIOR = {"given": 0.8, "row": 0.7, "label": 0.5, "next": 0.3, "repeat": 0.2, "null": 0.2, "begun": 0.7, "ended": 0.6}
"""How often a source is right before anything is known."""
PRIOR_WEIGHT = 3
NOTHING = object()
LONGEST_VALUE = 12
"""Words of a text whose end nothing tells."""
PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class Guess:
    """A value as it may be written in JSON, the words that say so if any, and where the idea comes from."""

    source: str
    text: str
    span: Span | None = None


class Record:
    """How often each source of guesses was right, for each path and in all."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, Path | None], tuple[int, int]] = {}

    def add(self, source: str, path: Path, right: bool) -> None:
        for key in ((source, path), (source, None)):
            hits, count = self._counts.get(key, (0, 0))
            self._counts[key] = hits + right, count + 1

    def rate(self, source: str, path: Path) -> float:
        """The probability that its next guess for this path is right."""
        hits, count = self._counts.get((source, None), (0, 0))
        general = (hits + PRIOR_WEIGHT * PRIOR[source]) / (count + PRIOR_WEIGHT)
        hits, count = self._counts.get((source, path), (0, 0))
        return (hits + PRIOR_WEIGHT * general) / (count + PRIOR_WEIGHT)


@dataclass(slots=True)
class Trail:
    """Where the values so far were found. cells: of the current row by path; above: those of the row before; gap: words between
    the end of a row and the beginning of the next, None before there are two. last: the value written last for each path."""

    cursor: int = 0
    row: int = -1
    cells: dict[Path, Span] = field(default_factory=dict)
    above: dict[Path, Span] = field(default_factory=dict)
    gap: int | None = None
    last: dict[Path, str] = field(default_factory=dict)

    def copy(self) -> Trail:
        return replace(self, cells=dict(self.cells), above=dict(self.above), last=dict(self.last))

    def add(self, written: Written, span: Span | None) -> None:
        """A value has been written, and `span` says it."""
        path, row = path_of(written.place), row_of(written.place)
        self.last[path] = written.text
        if EACH in path:
            self.enter(row)
        if span is None:
            return
        if EACH in path:
            if not self.cells and self.above:
                self.gap = span[0] - max(end for _, end in self.above.values())
            self.cells[path] = span
        self.cursor = span[1]

    def enter(self, row: int) -> None:
        """The values that come belong to this row."""
        if row != self.row:
            self.above = self.cells if row > 0 and self.cells else ({} if row == 0 else self.above)
            self.cells, self.row = {}, row
            if row == 0:
                self.gap = None


class Guesser:
    """Guesses for values by all sources. given: answers that somebody else has for the same question, as JSON values."""

    def __init__(self, pages: Pages, given: Sequence[Any]) -> None:
        self.pages = pages
        self.record = Record()
        self._given = given
        self._short_numbers = False  # 12.50 is written 12.5
        self._labels: dict[str, list[Span]] = {}

    def guesses(self, place: Place, trail: Trail) -> list[Guess]:
        """Guesses for the value at a place, the likeliest first."""
        path = path_of(place)
        found = list(self._all(place, path, trail))
        return sorted(found, key=lambda guess: -self.record.rate(guess.source, path))

    def learn(self, written: Written, trail: Trail) -> Span | None:
        """Note which sources would have been right about a value. Returns the words that say it."""
        path, span = path_of(written.place), None
        seen = set()
        for guess in self._all(written.place, path, trail):
            right = guess.text == written.text
            if guess.source not in seen or right:
                self.record.add(guess.source, path, right)
            seen.add(guess.source)
            if right and span is None:
                span = guess.span
        near = self._next_cell(path, trail) if EACH in path else None
        span = span or self.pages.find(written.text, trail.cursor if near is None else near)
        if span and written.text[-1:].isdigit() and "." in (printed := self.pages.number(self.pages.words[span[0]]) or ""):
            self._short_numbers = printed.endswith("0") and not written.text.endswith("0")
        return span

    def more_rows(self, place: Place, trail: Trail) -> bool:
        """Whether an array goes on with the entry at `place`."""
        for answer in self._given:
            array = _at(answer, place[:-1])
            if isinstance(array, list):
                return int(place[-1]) < len(array)
        if place[-1] == 0:
            return True
        trail.enter(int(place[-1]))
        if not trail.above:
            return False
        first = min(trail.above, key=lambda path: trail.above[path])
        start = self._next_cell(first, trail)
        if start is None or start >= len(self.pages.words):
            return False
        return shape(self.pages.words[start]) == shape(self.pages.words[trail.above[first][0]])

    def begun(self, place: Place, partial: str, trail: Trail) -> Iterator[Guess]:
        """Guesses for a value of which the beginning is written."""
        for guess in self.guesses(place, trail):
            if guess.text.startswith(partial):
                yield replace(guess, source="ended")
        if partial.startswith('"'):
            yield from self._begun_text(place, partial, trail)
            return
        for index, word in enumerate(self.pages.words[trail.cursor :], trail.cursor):
            number = self._number(word)
            if number and number.startswith(partial):
                yield Guess("begun", number, (index, index + 1))

    def _begun_text(self, place: Place, partial: str, trail: Trail) -> Iterator[Guess]:
        pages, sought = self.pages, " ".join(partial[1:].split(" "))
        if not sought.strip():
            return
        near = pages.starts[trail.cursor] if trail.cursor < len(pages.starts) else 0
        for begin in (near, 0):
            offset = pages.text.find(sought, begin)
            while offset > 0 and pages.text[offset - 1].isalnum():
                offset = pages.text.find(sought, offset + 1)
            if offset >= 0:
                start, last = pages.word_at(offset), pages.word_at(offset + len(sought) - 1)
                end = max(self._text_end(start, path_of(place), trail), last + 1)
                text = pages.text[offset : pages.starts[end - 1] + len(pages.words[end - 1])]
                yield Guess("begun", quoted(text), (start, end))
                return

    def _all(self, place: Place, path: Path, trail: Trail) -> Iterator[Guess]:
        for answer in self._given:
            value = _at(answer, place)
            if value is None or isinstance(value, str | int | float):
                yield Guess("given", json.dumps(value, ensure_ascii=False))
        start = self._next_cell(path, trail) if EACH in path else None
        if start is not None:
            yield from self._read("row", start, path, trail)
        elif EACH not in path:
            for span in self._label(path[-1] if path else "")[:2]:
                yield from self._read("label", span[1], path, trail)
        yield from self._read("next", trail.cursor, path, trail)
        if path in trail.last:
            yield Guess("repeat", trail.last[path])
        yield Guess("null", "null")

    def _read(self, source: str, start: int, path: Path, trail: Trail) -> Iterator[Guess]:
        """What the words from `start` on may say: a number, a date, a text."""
        words = self.pages.words
        if not 0 <= start < len(words):
            return
        number = self._number(words[start])
        if number is not None:
            yield Guess(source, number, (start, start + 1))
        for date in dates(words[start]):
            yield Guess(source, quoted(date), (start, start + 1))
        end = self._text_end(start, path, trail)
        text = " ".join(words[start:end]).rstrip(",;:")
        yield Guess(source, quoted(text), (start, end))

    def _number(self, word: str) -> str | None:
        number = self.pages.number(word)
        if number and self._short_numbers and "." in number:
            number = number.rstrip("0").rstrip(".") or "0"
        return number

    def _next_cell(self, path: Path, trail: Trail) -> int | None:
        """Where the cell of this path begins in the current row, if it lies as in the row above."""
        above = trail.above.get(path)
        if above is None:
            return None
        known = [other for other in trail.cells if other in trail.above]
        if known:
            anchor = max(known, key=lambda other: trail.cells[other])
            if above[0] >= trail.above[anchor][1]:
                return trail.cells[anchor][1] + above[0] - trail.above[anchor][1]
            return trail.cells[anchor][0] + above[0] - trail.above[anchor][0]
        start = min(start for start, _ in trail.above.values())
        end = max(end for _, end in trail.above.values())
        line = self.pages.line_of(start)
        next_line = self.pages.line_end(end - 1)
        if trail.gap is None and 0 < next_line - line < len(self.pages.words) and len(self.pages.lines) > 1:
            return next_line + above[0] - line
        return end + (trail.gap or 0) + above[0] - start

    def _text_end(self, start: int, path: Path, trail: Trail) -> int:
        """The word after the last one of a text that begins at `start`."""
        pages, above = self.pages, trail.above.get(path)
        most = min(start + LONGEST_VALUE, len(pages.words))
        if above is None:
            last = pages.line_end(start) if len(pages.lines) > 1 else start + 1
            return max(start + 1, min(most, last))
        behind = [span for other, span in trail.above.items() if other != path and span[0] >= above[1]]
        if not behind:
            return max(start + 1, min(start + above[1] - above[0], most))
        after = min(behind)
        kinds = (
            [shape(word) for word in pages.words[above[1] : max(end for _, end in behind if end - above[1] < LONGEST_VALUE)]]
            if (after[1] - above[1] < LONGEST_VALUE)
            else []
        )
        for end in range(start + 1, most):
            if kinds and [shape(word) for word in pages.words[end : end + len(kinds)]] == kinds:
                return end
        numeric = shape(pages.words[after[0]])[:1] == "9"
        gap = after[0] - above[1]
        for end in range(start + 1, most):
            if numeric and end + gap < len(pages.words) and shape(pages.words[end + gap])[:1] == "9":
                return end
        return max(start + 1, min(start + above[1] - above[0], most))

    def _label(self, name: str) -> list[Span]:
        """Words that are the name of a property, in the order of the pages; else those that are its last or first part."""
        if name not in self._labels:
            parts = [part.casefold() for part in PARTS.findall(name)]
            found = self._sequences(parts)
            if not found and len(parts) > 1:
                found = self._sequences(parts[-1:]) or self._sequences(parts[:1])
            self._labels[name] = found
        return self._labels[name]

    def _sequences(self, parts: Sequence[str]) -> list[Span]:
        if not parts:
            return []
        bare, size = self.pages.lowered, len(parts)
        return [(k, k + size) for k in self.pages.positions(parts[0]) if bare[k : k + size] == list(parts)]


def _at(answer: Any, place: Place) -> Any:
    """What an answer has at a place, NOTHING where it has none."""
    value = answer
    for step in place:
        try:
            value = value[step]
        except (LookupError, TypeError):
            return NOTHING
    return value
