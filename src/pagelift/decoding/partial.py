"""What is in JSON text that was cut off: the data so far, what is complete, and what was never reached."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

from pagelift.core import Json
from pagelift.schema.keywords import join

MAX_DEPTH = 200
"""Containers inside one another; what lies deeper is treated as cut off."""
MAX_DIGITS = 1000
"""Characters of a number; a longer one is treated as cut off."""

_SPACE = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_AFTER_NUMBER = ",]} \t\r\n"
_WORDS: tuple[tuple[str, Json], ...] = (("true", True), ("false", False), ("null", None))

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Partial:
    """The complete part of a JSON text. All places are JSON Pointers.

    data: values that were written to their end, in containers that are closed; None when there is not even a container.
    complete: whether the text was whole. reached: every value written to its end, and every container that was begun.
    open: containers that were begun and not closed, outermost first. unfinished: the value that was being written (its key, at
    least, stands there), None when the cut fell between values. fragment: what stood of it, decoded where it is a string.
    spans: where each complete value stands in the text, [begin, end).
    """

    data: Json
    complete: bool
    reached: frozenset[str] = frozenset()
    open: tuple[str, ...] = ()
    unfinished: str | None = None
    fragment: str = ""
    spans: Mapping[str, Span] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The data as JSON on one line, closed and valid."""
        return json.dumps(self.data, ensure_ascii=False)

    def never_reached(self, whole: Json) -> tuple[str, ...]:
        """The scalars and empty arrays of `whole` (this data completed, as by `Schema.conform`) that the text did not get to."""
        return tuple(pointer for pointer in _leaves(whole, "") if pointer not in self.reached)


def parse_partial(text: str) -> Partial:
    """Read JSON that may end anywhere. A number at the very end inside a container is unfinished: digits may be missing.

    Text that goes wrong is read up to there; text after a complete value is ignored.
    """
    reader = _Reader(text)
    with contextlib.suppress(_CutOff):
        reader.read(reader.root, 0, "", 0)
    return Partial(
        data=reader.root[0] if reader.root else None,
        complete=bool(reader.root) and not reader.open and reader.unfinished is None,
        reached=frozenset(reader.reached),
        open=tuple(reader.open),
        unfinished=reader.unfinished,
        fragment=reader.fragment,
        spans=reader.spans,
    )


class _CutOff(Exception):
    """The text ends, or goes wrong, here."""


class _Reader:
    """Reads values into their containers at once, so that what was read stays when the text ends."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.root: list[Json] = []
        self.reached: list[str] = []
        self.open: list[str] = []
        self.unfinished: str | None = None
        self.fragment = ""
        self.spans: dict[str, Span] = {}

    def read(self, into: Any, key: str | int, pointer: str, depth: int) -> None:
        """Read one value and put it at `key` of `into` (a list grows). Raises _CutOff."""
        self._space()
        begin, start = self.at, self.text[self.at : self.at + 1]
        if start in ("{", "[") and start and depth < MAX_DEPTH:
            self.at += 1
            self.reached.append(pointer)
            self.open.append(pointer)
            container: Any = {} if start == "{" else []
            _put(into, key, container)
            (self._members if start == "{" else self._entries)(container, pointer, depth + 1)
            self.open.pop()
        else:
            _put(into, key, self._scalar(start, pointer, depth))
            self.reached.append(pointer)
        self.spans[pointer] = (begin, self.at)

    def _space(self) -> None:
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def _next(self, *wanted: str) -> str:
        """The next sign, which must be one of `wanted`."""
        self._space()
        sign = self.text[self.at : self.at + 1]
        if sign not in wanted or not sign:
            raise _CutOff
        self.at += 1
        return sign

    def _members(self, container: dict[str, Json], pointer: str, depth: int) -> None:
        self._space()
        if self.text.startswith("}", self.at):
            self.at += 1
            return
        while True:
            self._next('"')
            name = self._string()
            if name is None:
                raise _CutOff
            inner = join(pointer, name)
            self.unfinished = inner
            self._next(":")
            self.unfinished = None
            self.read(container, name, inner, depth)
            if self._next(",", "}") == "}":
                return

    def _entries(self, container: list[Json], pointer: str, depth: int) -> None:
        self._space()
        if self.text.startswith("]", self.at):
            self.at += 1
            return
        while True:
            self._space()
            if self.at == len(self.text):
                raise _CutOff
            self.read(container, len(container), join(pointer, len(container)), depth)
            if self._next(",", "]") == "]":
                return

    def _string(self) -> str | None:
        """The string whose opening quote was passed, None when it has no end."""
        try:
            value, self.at = scanstring(self.text, self.at, False)
        except ValueError:
            return None
        return str(value)

    def _scalar(self, start: str, pointer: str, depth: int) -> Json:
        begin = self.at
        if start == '"':
            self.at += 1
            value = self._string()
            if value is not None:
                return value
            self._stop(pointer, _decoded(self.text[begin + 1 :]))
        for word, meaning in _WORDS:
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return meaning
        match = _NUMBER.match(self.text, self.at)
        after = self.text[match.end() : match.end() + 1] if match else ""
        if match and len(match[0]) <= MAX_DIGITS and (after in _AFTER_NUMBER if after else depth == 0):
            self.at = match.end()
            number: Json = json.loads(match[0])
            return number
        self._stop(pointer, self.text[begin:])
        return None

    def _stop(self, pointer: str, fragment: str) -> None:
        self.unfinished, self.fragment = pointer, fragment
        raise _CutOff


def _put(into: Any, key: str | int, value: Json) -> None:
    if isinstance(into, list):
        into.append(value)
    else:
        into[key] = value


def _decoded(inside: str) -> str:
    """The text of a string without its end; a cut escape is left out."""
    for cut in range(min(6, len(inside)) + 1):
        try:
            return str(scanstring(inside[: len(inside) - cut] + '"', 0, False)[0])
        except ValueError:
            continue
    return inside


def _leaves(value: Json, pointer: str) -> list[str]:
    if isinstance(value, dict) and value:
        return [leaf for name, inner in value.items() for leaf in _leaves(inner, join(pointer, name))]
    if isinstance(value, list) and value:
        return [leaf for i, inner in enumerate(value) for leaf in _leaves(inner, join(pointer, i))]
    return [pointer]
