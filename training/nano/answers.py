"""The answer a document should get, as text, and which of its characters the model has to choose.

Keys and separators are forced by the grammar, so that nothing is to be learned from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pagelift.core import Json
from pagelift.evals.spelling import Piece, answer_pieces
from pagelift.evals.synthetic import Place

Chunk = Piece


def answer_chunks(value: Json, places: Mapping[str, Place]) -> Iterator[Chunk]:
    """The answer in the grammar's style, numbers with the digits that are printed. places: where values are printed, by JSON Pointer."""
    return answer_pieces(value, {pointer: place.raw for pointer, place in places.items()})
