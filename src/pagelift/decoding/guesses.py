"""Where on the pages the next value of an answer may stand: each source of guesses by itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pagelift.decoding.outline import EACH, Path, Place, Written, path_of
from pagelift.decoding.pages import Pages, Span, dates, quoted
from pagelift.decoding.trail import Record, Trail

NOTHING = object()
LONGEST_VALUE = 12
"""Words of a text whose end nothing tells."""
LABELS = 2
"""Labels of a property that are looked at."""
NUMBER_AHEAD = 5
"""Words behind a label among which its number may stand."""
LABEL_WORDS = frozenset(("", "no", "nr", "number", "id", "code", "date", "amount", "due", "due date"))
BEGUN_DATE = re.compile(r"\d{1,4}|\d{4}-\d{0,2}|\d{4}-\d\d-\d{0,2}")
PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class Guess:
    """A value as it may be written in JSON, the words that say so if any, and where the idea comes from."""

    source: str
    text: str
    span: Span | None = None


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
        trail.enter(place)
        found = list(self._all(place, path, trail))
        return sorted(found, key=lambda guess: -self.record.rate(guess.source, path))

    def learn(self, written: Written, trail: Trail) -> Span | None:
        """Note which sources would have been right about a value. Returns the words that say it."""
        path, span = path_of(written.place), None
        trail.enter(written.place)
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
        if span and written.text[-1:].isdigit():
            printed = self.pages.numbers[span[0]] or ""
            if "." in printed and printed.endswith("0"):
                self._short_numbers = not written.text.endswith("0")
        return span

    def more_rows(self, place: Place, trail: Trail) -> bool:
        """Whether an array goes on with the entry at `place`."""
        for answer in self._given:
            array = _at(answer, place[:-1])
            if isinstance(array, list):
                return int(place[-1]) < len(array)
        if place[-1] == 0:
            return True
        trail.enter(place)
        if not trail.above:
            return False
        first = min(trail.above, key=lambda path: trail.above[path])
        start = self._next_cell(first, trail)
        if start is None or start >= len(self.pages.words):
            return False
        return self.pages.kind(start) == self.pages.kind(trail.above[first][0])

    def begun(self, place: Place, partial: str, trail: Trail) -> Iterator[Guess]:
        """Guesses for a value of which the beginning is written."""
        for guess in self.guesses(place, trail):
            if guess.text.startswith(partial):
                yield replace(guess, source="ended")
        if partial.startswith('"'):
            yield from self._begun_text(place, partial, trail)
            return
        words = self.pages.words
        for index in (*range(trail.cursor, len(words)), *range(min(trail.cursor, len(words)))):
            number = self._number(index)
            if number and number.startswith(partial):
                yield Guess("begun", number, (index, index + 1))

    def _begun_text(self, place: Place, partial: str, trail: Trail) -> Iterator[Guess]:
        pages, sought = self.pages, " ".join(partial[1:].split(" "))
        if not sought.strip():
            return
        for index in pages.dated if BEGUN_DATE.fullmatch(sought) else ():
            for date in dates(pages.words[index]):
                if date.startswith(sought):
                    yield Guess("begun", quoted(date), (index, index + 1))
        in_table = EACH in path_of(place) and trail.cursor < len(pages.starts)
        for begin in (pages.starts[trail.cursor] if in_table else 0, 0):
            offset = pages.find_text(sought, begin)
            if offset >= 0:
                start, last = pages.word_at(offset), pages.word_at(offset + len(sought) - 1)
                end = max(self._text_end(start, path_of(place), trail), last + 1)
                text = pages.text[offset : pages.starts[end - 1] + len(pages.words[end - 1])]
                yield Guess("begun", quoted(text), (start, end))
                return
        yield from self._next_line(sought)

    def _next_line(self, sought: str) -> Iterator[Guess]:
        """For a text of several lines that are joined by commas: the line below the last one that is complete."""
        pages = self.pages
        head, comma, tail = sought.rpartition(",")
        last_line = head.rpartition(", ")[2]
        offset = pages.find_text(last_line, 0) if comma and last_line else -1
        if offset < 0:
            return
        start = pages.word_at(offset + len(last_line) - 1) + 1
        end = min(pages.line_end(start), len(pages.words)) if start < len(pages.words) else start
        line = " ".join(pages.words[start:end])
        if line.startswith(tail.strip()) and start in pages.lines:
            yield Guess("begun", quoted(f"{head}, {line}"), (start, end))

    def _all(self, place: Place, path: Path, trail: Trail) -> Iterator[Guess]:
        for answer in self._given:
            value = _at(answer, place)
            if value is None or isinstance(value, str | int | float):
                yield Guess("given", json.dumps(value, ensure_ascii=False))
        start = self._next_cell(path, trail) if EACH in path else None
        if start is not None:
            yield from self._read("row", start, path, trail)
        elif not trail.above:
            for start in self._labelled(path, trail):
                yield from self._read("label", start, path, trail)
        yield from self._read("next", trail.cursor, path, trail)
        if path in trail.last:
            yield Guess("repeat", trail.last[path])
        yield Guess("null", "null")

    def _read(self, source: str, start: int, path: Path, trail: Trail) -> Iterator[Guess]:
        """What the words from `start` on may say: a number, a date, a text."""
        words = self.pages.words
        if not 0 <= start < len(words):
            return
        ahead = range(start, min(start + NUMBER_AHEAD, self.pages.line_end(start))) if source == "label" else (start,)
        for index in ahead:
            number = self._number(index)
            if number is not None:
                yield Guess(source, number, (index, index + 1))
                break
        for date in dates(words[start]):
            yield Guess(source, quoted(date), (start, start + 1))
        end = self._text_end(start, path, trail)
        text = " ".join(words[start:end]).rstrip(",;:")
        yield Guess(source, quoted(text), (start, end))

    def _number(self, word: int) -> str | None:
        number = self.pages.numbers[word]
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
        line_end = pages.line_end(start) if len(pages.lines) > 1 else start + 1
        most = min(start + LONGEST_VALUE, len(pages.words))
        if above is None:
            end = min(line_end, most)
            while EACH in path and end > start + 1 and pages.kind(end - 1) in ("n", ""):
                end -= 1
            mark = next((k for k in range(start + 1, end) if not pages.lowered[k]), end)
            return max(start + 1, mark)
        behind = [span for other, span in trail.above.items() if other != path and above[1] <= span[0] < above[1] + LONGEST_VALUE]
        last = max((end for _, end in behind), default=above[1])
        kinds = [pages.kind(word) for word in range(above[1], last)]
        for end in range(start + 1, most):
            if kinds and [pages.kind(word) for word in range(end, end + len(kinds))] == kinds:
                return end
        end = min(start + above[1] - above[0], most)
        return max(start + 1, end if behind else min(line_end, most))

    def _labelled(self, path: Path, trail: Trail) -> list[int]:
        """Where the values of a property with a label may begin, those first whose words are not taken yet."""
        pages = self.pages
        starts = []
        for first, end in self._label(path[-1] if path else ""):
            if EACH in path:  # a label at the head of a column
                starts.append(pages.line_end(first) + first - pages.line_of(first))
                continue
            behind = range(end, len(pages.words))
            starts.append(next((word for word in behind if pages.lowered[word] not in LABEL_WORDS), len(pages.words)))
        return sorted(starts, key=lambda start: start in trail.used)[:LABELS]

    def _label(self, name: str) -> list[Span]:
        """Words that are the name of a property, in the order of the pages; else those that are a part of it, the rarest first."""
        if name not in self._labels:
            parts = [part.casefold() for part in PARTS.findall(name)]
            found = self._sequences(parts)
            if not found:
                rarest = sorted((part for part in parts if self.pages.positions(part)), key=lambda part: len(self.pages.positions(part)))
                found = [span for part in rarest for span in self._sequences([part])]
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
