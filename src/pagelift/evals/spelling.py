"""A true answer as text: what models are taught, measured on and calibrated with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, Protocol

from pagelift.core import Json, PageContent
from pagelift.extract.words_prompt import PAGE, Located, line_marks
from pagelift.schema.keywords import join

MOST_DECIMALS = 6


class PieceKind(IntEnum):
    """forced: keys, brackets and separators. entry: where an array goes on or ends, or a first object of one begins. scalar: a value.
    mark: the line on which what follows is printed, see `JsonStyle.marks`."""

    FORCED = 0
    ENTRY = 1
    SCALAR = 2
    MARK = 3


class Piece(NamedTuple):
    """A piece of an answer. pointer: JSON Pointer of the scalar, or of the entry that begins there or would, or of what is marked."""

    text: str
    kind: PieceKind = PieceKind.FORCED
    pointer: str = ""

    @property
    def chosen(self) -> bool:
        """Whether a model has a choice here, under a grammar that forces the rest."""
        return self.kind != PieceKind.FORCED


class Shown(Located, Protocol):
    """A place on a page, and the words that are printed there."""

    @property
    def raw(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Printed:
    """What pages say of an answer, by JSON Pointer. raw: scalars as they are printed. marks: of lines, None for a model that does not
    say them."""

    raw: Mapping[str, str] = field(default_factory=dict)
    marks: Mapping[str, str] | None = None

    @classmethod
    def at(cls, places: Mapping[str, Shown], marked: Sequence[PageContent] | None = None, first_line: int = 0) -> Printed:
        """What is printed at these places, by JSON Pointer. marked, first_line: pages and line of `line_marks`, None to say no lines."""
        raw = {pointer: place.raw for pointer, place in places.items()}
        return cls(raw, None if marked is None else line_marks(marked, places, first_line))

    def mark(self, pointer: str) -> Iterator[Piece]:
        """What stands before a value that is marked."""
        if self.marks is not None:
            yield Piece(self.marks.get(pointer, PAGE), PieceKind.MARK, pointer)


def answer_pieces(value: Json, printed: Printed) -> Iterator[Piece]:
    """An answer on one line in the style of `JsonStyle()`, with marks where they are given."""
    return _pieces(value, printed, "", in_array=False)


def _pieces(value: Json, printed: Printed, pointer: str, in_array: bool, first: bool = False) -> Iterator[Piece]:
    """first: it is the first entry of an array."""
    if isinstance(value, dict):
        yield Piece("{", PieceKind.ENTRY, pointer) if first else Piece("{")
        for index, (key, inner) in enumerate(value.items()):
            yield Piece((", " if index else "") + json.dumps(key, ensure_ascii=False) + ": ")
            yield from _pieces(inner, printed, join(pointer, key), in_array)
        yield Piece("}")
    elif isinstance(value, list):
        yield Piece("[")
        for index, inner in enumerate(value):
            here = join(pointer, index)
            if index:
                yield Piece(",", PieceKind.ENTRY, here)
                yield Piece(" ")
            if not in_array:
                yield from printed.mark(here)
            yield from _pieces(inner, printed, here, in_array=True, first=not index)
        yield Piece("]", PieceKind.ENTRY, join(pointer, len(value)))
    else:
        if not in_array:
            yield from printed.mark(pointer)
        yield Piece(spelled(value, printed.raw.get(pointer, "")), PieceKind.SCALAR, pointer)


def spelled(value: Json, printed: str) -> str:
    """A scalar as JSON; a number with as many decimals as it is printed with, as models copy it digit by digit."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        digits = "".join(filter(str.isdigit, printed))
        for decimals in range(MOST_DECIMALS + 1):
            text = f"{value:.{decimals}f}"
            if text.replace(".", "").lstrip("-") == digits and float(text) == value:
                return text
    return json.dumps(value, ensure_ascii=False)
