"""The words that an answer may copy, with what finding a value among them takes."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

NUMBER = re.compile(r"[-+]?\d[\d.,'’]*")
DATE = re.compile(r"(\d{1,4})[./-](\d{1,2})[./-](\d{1,4})")
SHAPE = ((re.compile(r"\d+"), "9"), (re.compile(r"[^\W\d_]+"), "a"))
Span = tuple[int, int]
"""First word and the word after the last one."""


class Pages:
    """Texts as one list of words.

    text: all words with single blanks between them; starts: where each begins in it. lowered: the words without case and
    punctuation. numbers: what number each has, as `number` gives it. dated: words with a date in figures.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.words: list[str] = []
        self.lines: list[int] = []  # first word of each line
        for text in texts:
            for line in text.splitlines():
                if words := line.split():
                    self.lines.append(len(self.words))
                    self.words += words
        self.text = " ".join(self.words)
        self.starts: list[int] = []
        end = 0
        for word in self.words:
            self.starts.append(end)
            end += len(word) + 1
        self.lowered = [bare(word) for word in self.words]
        self._where: dict[str, list[int]] = {}
        self._numbers: dict[str, list[int]] = {}
        self._kinds: dict[int, str] = {}
        self.comma = self._decimal_comma()
        self.numbers = [self.number(word) for word in self.words]
        self.dated = [index for index, word in enumerate(self.words) if DATE.search(word)]
        for index, number in enumerate(self.numbers):
            self._where.setdefault(self.lowered[index], []).append(index)
            if number is not None:
                self._numbers.setdefault(_plain(number), []).append(index)

    def number(self, word: str) -> str | None:
        """The number printed in a word as JSON, with the digits as printed: "1.234,50 EUR" gives 1234.50. None without one."""
        found = NUMBER.search(word)
        if found is None:
            return None
        printed = found.group().rstrip(".,'’").lstrip("+").replace("'", "").replace("’", "")
        point, comma = printed.rfind("."), printed.rfind(",")
        if point >= 0 and comma >= 0:
            decimal = max(point, comma)
        else:
            decimal = max(point, comma)
            mark = printed[decimal] if decimal >= 0 else ""
            groups = mark and (printed.count(mark) > 1 or (len(printed) - decimal == 4 and (mark == ",") != self.comma))
            decimal = -1 if groups else decimal
        whole, fraction = (printed[:decimal], printed[decimal + 1 :]) if decimal >= 0 else (printed, "")
        whole = whole.replace(".", "").replace(",", "")
        sign, digits = ("-", whole[1:]) if whole.startswith("-") else ("", whole)
        digits = digits.lstrip("0") or "0"
        return f"{sign}{digits}.{fraction}" if fraction else sign + digits

    def kind(self, word: int) -> str:
        """What kind of word it is: "n" for an amount or number, else its shape."""
        if word not in self._kinds:
            bare = self.words[word].strip("€$£%()") if word < len(self.words) else ""
            self._kinds[word] = "n" if NUMBER.fullmatch(bare) else shape(bare)
        return self._kinds[word]

    def positions(self, lowered: str) -> list[int]:
        """Words that are this one, apart from case and punctuation around it."""
        return self._where.get(lowered, [])

    def find(self, value: str, near: int) -> Span | None:
        """The words that say a value, a string or the text of a number: the first from word `near` on, else the first at all."""
        if value in ("null", "true", "false") or not value:
            return None
        if value.startswith('"'):
            return self._find_text(_unquoted(value), near)
        places = self._numbers.get(_plain(value), [])
        place = next((p for p in places if p >= near), places[0] if places else None)
        return None if place is None else (place, place + 1)

    def find_text(self, sought: str, begin: int) -> int:
        """Where a text stands from an offset on, at the beginning of a word; -1 for nowhere."""
        offset = self.text.find(sought, begin)
        while offset > 0 and self.text[offset - 1].isalnum():
            offset = self.text.find(sought, offset + 1)
        return offset

    def _find_text(self, value: str, near: int) -> Span | None:
        sought = " ".join(value.split())
        if not sought:
            return None
        begin = self.starts[near] if near < len(self.starts) else len(self.text)
        for place in (self.text.find(sought, begin), self.text.find(sought)):
            if place >= 0:
                return self.word_at(place), self.word_at(place + len(sought) - 1) + 1
        return self._find_date(sought, near)

    def _find_date(self, value: str, near: int) -> Span | None:
        """A date that is printed in another way than it is written."""
        if not DATE.fullmatch(value):
            return None
        places = [index for index in self.dated if value in dates(self.words[index])]
        place = next((p for p in places if p >= near), places[0] if places else None)
        return None if place is None else (place, place + 1)

    def word_at(self, offset: int) -> int:
        """The word that the character at `offset` of the text belongs to."""
        return bisect_right(self.starts, offset) - 1

    def line_of(self, word: int) -> int:
        """The first word of its line."""
        return self.lines[max(bisect_right(self.lines, word) - 1, 0)]

    def line_end(self, word: int) -> int:
        """The word after the last one of its line."""
        after = bisect_right(self.lines, word)
        return self.lines[after] if after < len(self.lines) else len(self.words)

    def _decimal_comma(self) -> bool:
        """Whether the texts write 1,50 more often than 1.50."""
        tails = [word.rstrip(".,;:)€$£%") for word in self.words]
        commas = sum(bool(re.search(r"\d,\d{1,2}$", tail)) for tail in tails)
        return commas > sum(bool(re.search(r"\d\.\d{1,2}$", tail)) for tail in tails)


def dates(word: str) -> Iterator[str]:
    """How a date printed in figures may be written as year-month-day, the day before the month first."""
    found = DATE.search(word)
    if found is None:
        return
    first, second, third = found.groups()
    orders = [(first, second, third)] if len(first) == 4 else [(third, second, first), (third, first, second)]
    for year, month, day in orders:
        if len(year) in (2, 4) and int(month) <= 12 and int(day) <= 31:
            yield f"{'20' if len(year) == 2 else ''}{year}-{month.zfill(2)}-{day.zfill(2)}"


def shape(word: str) -> str:
    """What kind of word it is: 9 for digits, a for letters, other characters as they are: "INV-0017" is "a-9"."""
    for pattern, sign in SHAPE:
        word = pattern.sub(sign, word)
    return word


def quoted(text: str) -> str:
    """A JSON string with its characters as they are."""
    return json.dumps(text, ensure_ascii=False)


def _unquoted(value: str) -> str:
    try:
        return str(json.loads(value))
    except ValueError:
        return value.strip('"')


def bare(word: str) -> str:
    """A word without case and punctuation around it."""
    return word.casefold().strip(".,:;!?()[]{}\"'#*")


def _plain(number: str) -> str:
    """A number without the zeros that do not matter."""
    try:
        return repr(float(number))
    except ValueError:
        return number
