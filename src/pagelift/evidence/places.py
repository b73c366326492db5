"""Where on a page a value could be printed: words that say the same, whatever the format.

Texts are compared without white space, case, hyphens, quotes and width of characters, so that a value is found over line ends,
hyphenation and word gaps, also where a script has none. Numbers and dates are compared by what they mean.
"""

from __future__ import annotations

import datetime
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from pagelift.core import Box, Json, PageContent, Word, union
from pagelift.evidence.dates import find_dates, parse_date
from pagelift.evidence.numbers import CURRENCY_CODES, CURRENCY_SYMBOLS, Decimalmark, infer_mark, parse_number

IGNORED = frozenset("-\u2010\u2011\u2012\u2013\u2014\u00ad'\u2018\u2019`\"\u201c\u201d\u201e\u00ab\u00bb")
PUNCTUATION = frozenset(",;:|/.")
EDGES = ".,;:!?()[]{}<>*#|/\\ "
MOST_PLACES = 200
MOST_SCANS = 5000
NUMBER_WORDS = 4
MARKS: tuple[Decimalmark, ...] = (".", ",")


@dataclass(frozen=True)
class Place:
    """Words of one page that say a value. cost: how much had to be overlooked; 0 is the value as it stands."""

    page: int
    words: tuple[Word, ...]
    cost: float = 0.0

    @property
    def raw(self) -> str:
        return " ".join(word.text for word in self.words)

    @cached_property
    def box(self) -> Box:
        return union(word.box for word in self.words)

    @property
    def boxes(self) -> tuple[Box, ...]:
        """One box per printed line, in the order of the words."""
        lines: list[list[Box]] = []
        for word in self.words:
            same = lines and lines[-1][-1].overlap_y(word.box) > 0.4 * min(lines[-1][-1].height, word.box.height)
            if same and word.box.x0 >= lines[-1][-1].x0:
                lines[-1].append(word.box)
            else:
                lines.append([word.box])
        return tuple(union(boxes) for boxes in lines)


class PageIndex:
    """The words of one page, ready to be searched. lines: words that stand beside each other, left to right, top to bottom."""

    def __init__(self, content: PageContent) -> None:
        self.number = content.number
        self.width_pt = content.width_pt
        self.lines = _lines(content.words)
        self._words = content.words
        self._streams = [_Stream(content.words), _Stream([word for line in self.lines for word in line])]
        self._mark = infer_mark(word.text for word in content.words)
        self._numbers = list(self._find_numbers())

    def places(self, value: Json) -> list[Place]:
        """Everywhere on the page where `value` (text or number) may be printed, cheapest first."""
        if isinstance(value, bool) or value is None or isinstance(value, list | dict):
            return []
        found = self._number_places(Decimal(repr(value))) if isinstance(value, int | float) else self._text_places(str(value))
        unique = {tuple(id(word) for word in place.words): place for place in sorted(found, key=lambda p: -p.cost)}
        return sorted(unique.values(), key=lambda p: p.cost)[:MOST_PLACES]

    def _text_places(self, text: str) -> Iterator[Place]:
        found = False
        for stream in self._streams:
            for words, cost in stream.find(text):
                found = True
                yield Place(self.number, words, cost)
        if not found and _is_phrase(text):
            for stream in self._loose_streams:
                yield from (Place(self.number, words, cost + 0.3) for words, cost in stream.find(text))
        if not found and text.upper() in CURRENCY_CODES:
            yield from self._symbol_places(text.upper())
        date = parse_date(text)
        if date is not None and any(c.isdigit() for c in text):
            yield from self._date_places(date)
        number = parse_number(text, self._mark)
        if number is not None and not text.strip().startswith("0"):
            yield from (Place(p.page, p.words, p.cost + 1) for p in self._number_places(number.value))

    @cached_property
    def _loose_streams(self) -> list[_Stream]:
        """The same without punctuation, for texts that join what stands on several lines with commas."""
        return [_Stream(words, PUNCTUATION) for words in (self._words, [word for line in self.lines for word in line])]

    def _symbol_places(self, code: str) -> Iterator[Place]:
        """Words with a sign that stands for a currency code, beside or without an amount."""
        signs = {sign for sign, known in CURRENCY_SYMBOLS.items() if known == code}
        for line in self.lines:
            for word in line:
                rest = word.text.strip("0123456789.,'’-+()")
                if rest in signs:
                    yield Place(self.number, (word,), 0.5 if rest == word.text else 0.7)

    def _number_places(self, value: Decimal) -> Iterator[Place]:
        for number, percent, words in self._numbers:
            if number == value or (percent and number == 100 * value):
                yield Place(self.number, words)
            elif number == -value:
                yield Place(self.number, words, 2.0)
        plain = format(value, "f")
        if len(plain) >= 2:  # a number inside a word, such as the year of a date
            yield from (Place(self.number, words, cost + 3) for stream in self._streams for words, cost in stream.find(plain))

    def _date_places(self, date: datetime.date) -> Iterator[Place]:
        for line in self.lines:
            text, starts = "", []
            for word in line:
                starts.append(len(text))
                text += word.text + " "
            for rank, order in enumerate(("dmy", "mdy")):
                for span in find_dates(text, order):  # type: ignore[arg-type]
                    words = tuple(w for w, start in zip(line, starts, strict=True) if start < span.end and span.start < start + len(w.text))
                    if span.date == date and words:
                        yield Place(self.number, words, 0.5 + 0.1 * rank)

    def _find_numbers(self) -> Iterator[tuple[Decimal, bool, tuple[Word, ...]]]:
        """Every run of words of a line that reads as one number; ambiguous ones in both readings."""
        for line in self.lines:
            for first in range(len(line)):
                seen: set[tuple[Decimal, bool]] = set()
                for last in range(first + 1, min(first + NUMBER_WORDS, len(line)) + 1):
                    words = line[first:last]
                    text = " ".join(word.text for word in words).strip(":;")
                    if len(text) > 40 or not any(c.isdigit() for c in text):
                        continue
                    readings = [parse_number(text, mark) for mark in MARKS]
                    for number in readings:
                        if number is not None and (number.value, number.percent) not in seen:
                            seen.add((number.value, number.percent))
                            yield number.value, number.percent, tuple(words)


class _Stream:
    """The characters of words in one order, normalised and without gaps, each with the word and place that it comes from."""

    def __init__(self, words: Sequence[Word], left_out: frozenset[str] = frozenset()) -> None:
        self._words = words
        self._left_out = left_out
        self._origin: list[tuple[int, int]] = []
        characters: list[str] = []
        for index, word in enumerate(words):
            for place, original in enumerate(word.text):
                for c in normalise(original) if _counts(word.text, place, left_out) else "":
                    characters.append(c)
                    self._origin.append((index, place))
        self._text = "".join(characters)

    def find(self, text: str) -> Iterator[tuple[tuple[Word, ...], float]]:
        """Runs of words that say `text`, with a cost: joins of words where the text has no gap count."""
        wanted = text.strip(EDGES) or text.strip()
        pattern = normalise("".join(c for place, c in enumerate(wanted) if _counts(wanted, place, self._left_out)))
        start = self._text.find(pattern) if pattern else -1
        for _ in range(MOST_SCANS):
            if start < 0:
                return
            end = start + len(pattern)
            if self._bounded(start, end):
                first, last = self._origin[start][0], self._origin[end - 1][0]
                joins = max(0, last - first - len(wanted.split()) + 1)
                if not joins or len(pattern) >= 4:
                    yield tuple(self._words[first : last + 1]), 0.2 * joins + (0 if self._exact(first, last, wanted) else 0.1)
            start = self._text.find(pattern, start + 1)

    def _bounded(self, start: int, end: int) -> bool:
        """Whether the match neither begins nor ends inside a run of letters or digits; scripts without gaps have no such runs."""
        (first, at), (last, until) = self._origin[start], self._origin[end - 1]
        head, tail = self._words[first].text[:at], self._words[last].text[until + 1 :]
        return not (_glued(head[-1:], self._words[first].text[at]) or _glued(self._words[last].text[until], tail[:1]))

    def _exact(self, first: int, last: int, wanted: str) -> bool:
        return " ".join(word.text for word in self._words[first : last + 1]) == wanted


def _counts(text: str, place: int, left_out: frozenset[str]) -> bool:
    """Whether a character is to be compared: not if it is left out, except between digits, where it is a part of a number."""
    return text[place] not in left_out or (text[place - 1 : place].isdigit() and text[place + 1 : place + 2].isdigit())


def _is_phrase(text: str) -> bool:
    """Whether a text is more than a word or an amount, so that punctuation says nothing about what it is."""
    return len(text.split()) > 1 and sum(c.isalpha() for c in text) >= 4


def normalise(text: str) -> str:
    """Text for comparison: compatibility forms, no case, no white space, hyphens or quotes."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in folded if c not in IGNORED and not c.isspace())


def _glued(left: str, right: str) -> bool:
    """Whether two neighbouring characters belong to one run of letters or digits."""
    return bool(left and right) and left.isalnum() and right.isalnum() and not (_gapless(left) or _gapless(right))


def _gapless(c: str) -> bool:
    """Characters of scripts that are written without gaps between words: CJK, kana, Thai, Lao, Khmer, Myanmar."""
    code = ord(c)
    return 0x2E80 <= code <= 0x9FFF or 0xF900 <= code <= 0xFAFF or code >= 0x20000 or 0x0E00 <= code <= 0x0EFF or 0x1000 <= code <= 0x17FF


def _lines(words: Sequence[Word]) -> list[list[Word]]:
    """Words in lines by their boxes: a word joins the line whose last word overlaps at least half of its height."""
    lines: list[list[Word]] = []
    for word in sorted(words, key=lambda w: (w.box.center_y, w.box.x0)):
        near = (line for line in reversed(lines[-8:]) if line[-1].box.overlap_y(word.box) > 0.5 * min(line[-1].box.height, word.box.height))
        line = next(near, None)
        if line is None:
            lines.append([word])
        else:
            line.append(word)
    return [sorted(line, key=lambda w: w.box.x0) for line in lines]
