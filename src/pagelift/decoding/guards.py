"""Ends strings and lists that would run on: the choice is narrowed to what closes them, never at the price of an empty choice.

A string or an array is full when it reaches the document's limit, or when it says the same again and again. Keys are not used
twice in one object, rows of a list whose lines are said (`JsonStyle.marks`) go down the pages, and containers are not nested without end.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pagelift.core import Json
from pagelift.decoding.pages import bare
from pagelift.decoding.scanning import Container, Position, advance
from pagelift.decoding.style import GrammarLimits
from pagelift.decoding.vocabulary import Vocabulary

SUFFIX = 32
"""Bytes at the end of a string by which a repetition is found."""
LONGEST_PHRASE = 600
LONGEST_CYCLE = 4
"""Rows of an array that repeat in turn."""
_TO_QUOTE = re.compile(rb'((?:[^"\\]|\\.)*)"', re.DOTALL)
SPARE_REPEATS = 2
"""A value may stand in a row more often than on the page: a heading over several rows is said in each."""
MIN_KEYS = 200
"""Keys that an object may have however small the document is."""

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What must not go on. close: the open string ends. full: depths of containers that take no further entry. deep: no deeper. keys: not
    said again. lines: marks of those on which the next row may begin, None for any."""

    close: bool = False
    full: tuple[int, ...] = ()
    deep: bool = False
    keys: tuple[bytes, ...] = ()
    lines: tuple[int, ...] | None = None

    def __bool__(self) -> bool:
        return self.close or bool(self.full) or self.deep or bool(self.keys) or self.lines is not None


class Guard:
    """Watches one answer, token by token."""

    def __init__(self, vocabulary: Vocabulary, limits: GrammarLimits) -> None:
        self._vocabulary = vocabulary
        self._limits = limits
        self._text = bytearray()
        self._positions = [Position()]
        self._lines = tuple(token for mark in limits.lines for token in vocabulary.tokenizer.encode(mark))

    def copy(self) -> Guard:
        other = copy.copy(self)
        other._text, other._positions = bytearray(self._text), list(self._positions)
        return other

    def accept(self, token: int) -> None:
        added = self._vocabulary.token_bytes[token]
        self._text += added
        position = advance(self._positions[-1], self._text, added)
        if token in self._lines and position.stack and not position.stack[-1].is_object:
            last = _last_line(position.stack[-1])
            position = position.on_line(next((k for k in range(last + 1, len(self._lines)) if self._lines[k] == token), last))
        self._positions.append(position)

    def rollback(self, count: int) -> None:
        if count:
            del self._positions[-count:]
            del self._text[self._positions[-1].length :]

    def narrowing(self) -> Narrowing:
        """What the answer so far forbids next."""
        position = self._positions[-1]
        limits = self._limits
        full = tuple(i for i, container in enumerate(position.stack) if self._full(container))
        deep = len(position.stack) >= limits.max_depth - 2 and position.string < 0
        if position.string < 0:
            return Narrowing(full=full, deep=deep, lines=self._further_lines(position))
        said = bytes(self._text[max(position.string, len(self._text) - 4 * LONGEST_PHRASE) :])
        long = limits.max_characters is not None and position.characters >= limits.max_characters
        keys = position.stack[-1].keys if position.key and position.stack else ()
        taken = tuple(key for key in keys if key.startswith(said)) if keys else ()
        close = not position.escaped and (long or repeats(said, limits.max_repeats))
        return Narrowing(close, full, deep, taken)

    def _full(self, container: Container) -> bool:
        limits = self._limits
        if limits.max_rows is not None:
            most = max(limits.max_rows, MIN_KEYS) if container.is_object else limits.max_rows
            if container.commas + 1 >= most:
                return True
        if container.rows and (self._said_too_often(container) or _last_line(container) == len(self._lines) - 1 >= 0):
            return True
        return cycles(container.recent, (2 if container.rows else 4) * limits.max_repeats)

    def _further_lines(self, position: Position) -> tuple[int, ...] | None:
        """Where a further row is to be marked: the marks of the lines below the last one."""
        rows = position.stack[-1] if position.stack else None
        if rows is None or not rows.rows or not rows.lines or len(rows.lines) != rows.commas:
            return None
        return self._lines[_last_line(rows) + 1 :]

    def _said_too_often(self, container: Container) -> bool:
        """Whether the last row has come more often than the pages print it."""
        again = container.recent.count(container.recent[-1]) if container.recent else 0
        if again <= 1 + SPARE_REPEATS or not self._limits.printed:
            return False
        most = times_printed(bytes(self._text[container.before : container.start - 1]), self._limits.printed)
        return 0 < most < again - SPARE_REPEATS

    def narrow(self, ids: Ids, narrowing: Narrowing) -> Ids:
        """The allowed tokens that remain; all of them where none would."""
        kept = ids
        if narrowing.close:
            kept = _unless_empty(kept, _common(kept, self._vocabulary.by_first_byte[ord('"')]))
        if narrowing.keys:
            kept = _unless_empty(kept, self._without(kept, b'"', lambda token: self._closes_key(token, narrowing.keys)))
        if narrowing.full:
            kept = _unless_empty(kept, self._without(kept, b",", lambda token: self._separates(token, narrowing.full)))
        if narrowing.lines is not None:
            kept = _unless_empty(kept, np.intersect1d(kept, narrowing.lines))
        if narrowing.deep:
            for sign in (b"{", b"[", b'"'):
                kept = _unless_empty(kept, self._without(kept, sign, self._deepens))
        return kept

    def _without(self, ids: Ids, sign: bytes, refused: Callable[[bytes], bool]) -> Ids:
        """`ids` without those tokens with `sign` in them that `refused` says so of."""
        texts = self._vocabulary.token_bytes
        gone = [i for i in _common(ids, self._vocabulary.holding(sign)).tolist() if refused(texts[i])]
        return np.delete(ids, np.searchsorted(ids, gone)) if gone else ids

    def _closes_key(self, token: bytes, keys: tuple[bytes, ...]) -> bool:
        ended = _TO_QUOTE.match(bytes(self._text[self._positions[-1].string :]) + token)
        return ended is not None and ended[1] in keys

    def _separates(self, token: bytes, depths: tuple[int, ...]) -> bool:
        """Whether a token begins another entry of a container that is full."""
        position = self._positions[-1]
        if position.string >= 0 and b'"' not in token:
            return False
        text = self._text + token
        for i in range(len(token)):
            sign = token[i : i + 1]
            if sign == b"," and position.string < 0 and len(position.stack) - 1 in depths:
                return True
            position = advance(position, text, sign)
        return False

    def _deepens(self, token: bytes) -> bool:
        """Whether a token opens a container below the last level, or a key on it."""
        after = advance(self._positions[-1], self._text + token, token)
        depth = len(after.stack)
        return depth > self._limits.max_depth or (depth == self._limits.max_depth and after.key and after.string >= 0)


def _last_line(container: Container) -> int:
    return container.lines[-1] if container.lines else -1


def times_printed(row: bytes, printed: Mapping[str, int]) -> int:
    """How often a row may stand on pages: as often as the one of its values that is printed most. 0 if none of them is."""
    try:
        values = leaves(json.loads(row))
    except ValueError:
        return 0
    words = ([bare(word) for word in str(value).split()] for value in values)
    return max((min(printed.get(word, 0) for word in said) for said in words if said), default=0)


def leaves(value: Json) -> Iterator[str | float]:
    """The texts and numbers in a value."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from leaves(inner)
    elif value is not None and not isinstance(value, bool):
        yield value


def _common(ids: Ids, some: Ids) -> Ids:
    """Those of `some` that are among `ids`; both are sorted. Made for few against many."""
    if not len(ids):
        return ids
    places = np.minimum(np.searchsorted(ids, some), len(ids) - 1)
    common: Ids = some[ids[places] == some]
    return common


def _unless_empty(before: Ids, after: Ids) -> Ids:
    return after if len(after) else before


def repeats(said: bytes, most: int) -> bool:
    """Whether text ends in the same phrase more than `most` times in a row; single signs may come four times as often."""
    if len(said) < SUFFIX:
        return False
    found = said.rfind(said[-SUFFIX:], 0, len(said) - 1)
    period = len(said) - SUFFIX - found
    if found < 0 or period > LONGEST_PHRASE:
        return False
    count = 4 * most if period == 1 else 2 * most if period < 4 else max(3, most // 3) if period > 60 else most
    length = period * (count + 1)
    tail = said[-length:]
    return len(tail) == length and tail[period:] == tail[:-period]


def cycles(entries: tuple[int, ...], most: int) -> bool:
    """Whether the last entries come round in the same turn more than `most` times."""
    for period in range(1, LONGEST_CYCLE + 1):
        tail = entries[-period * (most + 1) :]
        if len(tail) == period * (most + 1) and tail[period:] == tail[:-period]:
            return True
    return False
