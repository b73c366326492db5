"""A true answer as text: what models are taught, measured on and calibrated with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

from pagelift.core import Json
from pagelift.schema.keywords import join

MOST_DECIMALS = 6


class PieceKind(IntEnum):
    """forced: keys, brackets and separators. entry: where an array goes on or ends, or a first object of one begins. scalar: a value."""

    FORCED = 0
    ENTRY = 1
    SCALAR = 2


class Piece(NamedTuple):
    """A piece of an answer. pointer: JSON Pointer of the scalar, or of the entry that begins there or would."""

    text: str
    kind: PieceKind = PieceKind.FORCED
    pointer: str = ""

    @property
    def chosen(self) -> bool:
        """Whether a model has a choice here, under a grammar that forces the rest."""
        return self.kind != PieceKind.FORCED


def answer_pieces(value: Json, printed: Mapping[str, str], pointer: str = "", first: bool = False) -> Iterator[Piece]:
    """An answer on one line in the style of `JsonStyle()`. printed: scalars as they are printed, by JSON Pointer.

    first: it is the first entry of an array.
    """
    if isinstance(value, dict):
        yield Piece("{", PieceKind.ENTRY, pointer) if first else Piece("{")
        for index, (key, inner) in enumerate(value.items()):
            yield Piece((", " if index else "") + json.dumps(key, ensure_ascii=False) + ": ")
            yield from answer_pieces(inner, printed, join(pointer, key))
        yield Piece("}")
    elif isinstance(value, list):
        yield Piece("[")
        for index, inner in enumerate(value):
            here = join(pointer, index)
            if index:
                yield Piece(",", PieceKind.ENTRY, here)
                yield Piece(" ")
            yield from answer_pieces(inner, printed, here, first=not index)
        yield Piece("]", PieceKind.ENTRY, join(pointer, len(value)))
    else:
        yield Piece(spelled(value, printed.get(pointer, "")), PieceKind.SCALAR, pointer)


def spelled(value: Json, printed: str) -> str:
    """A scalar as JSON; a number with as many decimals as it is printed with, as models copy it digit by digit."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        digits = "".join(filter(str.isdigit, printed))
        for decimals in range(MOST_DECIMALS + 1):
            text = f"{value:.{decimals}f}"
            if text.replace(".", "").lstrip("-") == digits and float(text) == value:
                return text
    return json.dumps(value, ensure_ascii=False)
