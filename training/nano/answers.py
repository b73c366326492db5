"""The answer a document should get, as text, and which of its characters the model has to choose.

Keys and separators are forced by the grammar, so that nothing is to be learned from them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pagelift.core import Json
from pagelift.evals.spelling import spelled
from pagelift.evals.synthetic import Place


class Chunk(NamedTuple):
    """A piece of the answer. pointer: of the value that it is, or of the entry of an array that begins with it. chosen: see the module."""

    text: str
    chosen: bool = False
    pointer: str | None = None


def answer_chunks(value: Json, places: Mapping[str, Place], pointer: str = "", first: bool = False) -> Iterator[Chunk]:
    """The answer in the grammar's style: one line, ", " and ": " between, numbers with the digits that are printed.

    first: it is the first entry of an array, where the model chooses that there is one.
    """
    if isinstance(value, dict):
        yield Chunk("{", first, pointer if first else None)
        for index, (key, inner) in enumerate(value.items()):
            yield Chunk((", " if index else "") + json.dumps(key, ensure_ascii=False) + ": ")
            yield from answer_chunks(inner, places, f"{pointer}/{key}")
        yield Chunk("}")
    elif isinstance(value, list):
        yield Chunk("[")
        for index, inner in enumerate(value):
            here = f"{pointer}/{index}"
            if index:
                yield Chunk(",", True, here)
                yield Chunk(" ")
            yield from answer_chunks(inner, places, here, first=not index)
        yield Chunk("]", True, f"{pointer}/{len(value)}")
    else:
        yield Chunk(spelled(value, places[pointer].raw if pointer in places else ""), True, pointer)
