"""Data and its evidence in one tree, so that parts of an extraction can be cut, joined and merged without keeping pointers in step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from pagelift.core import Field, Json
from pagelift.schema.keywords import join


@dataclass(slots=True)
class Rows:
    """The entries of an array. empty: evidence that there are none."""

    entries: list[Tree] = field(default_factory=list)
    empty: Field | None = None


Tree: TypeAlias = "Field | Rows | dict[str, Tree]"
"""A scalar as its evidence, an array, or an object."""


def grow(data: Json, fields: Mapping[str, Field], pointer: str = "") -> Tree:
    """The tree of a JSON value. fields: evidence by JSON Pointer; a value without any is one that was not attempted."""
    if isinstance(data, dict):
        return {name: grow(value, fields, join(pointer, name)) for name, value in data.items()}
    if isinstance(data, list):
        return Rows([grow(entry, fields, join(pointer, k)) for k, entry in enumerate(data)], fields.get(pointer))
    return fields.get(pointer) or Field(pointer, data, "not_attempted")


def unfold(tree: Tree) -> tuple[Json, dict[str, Field]]:
    """Data and evidence, with the pointers that the values have now."""
    fields: dict[str, Field] = {}
    return _unfold(tree, "", fields), fields


def _unfold(tree: Tree, pointer: str, fields: dict[str, Field]) -> Json:
    if isinstance(tree, dict):
        return {name: _unfold(value, join(pointer, name), fields) for name, value in tree.items()}
    if isinstance(tree, Rows):
        if not tree.entries and tree.empty is not None:
            fields[pointer] = replace(tree.empty, pointer=pointer)
        return [_unfold(entry, join(pointer, k), fields) for k, entry in enumerate(tree.entries)]
    fields[pointer] = replace(tree, pointer=pointer)
    return tree.value


def scalars(tree: Tree, path: str = "") -> Iterator[tuple[str, Field]]:
    """The scalars of a row with their place in it; not those of arrays inside."""
    if isinstance(tree, Field):
        yield path, tree
    elif isinstance(tree, dict):
        for name, value in tree.items():
            yield from scalars(value, join(path, name))


def pages_of(tree: Tree) -> frozenset[int]:
    """The pages that values of a tree were found on."""
    if isinstance(tree, Field):
        return frozenset() if tree.page is None else frozenset((tree.page,))
    inner = tree.values() if isinstance(tree, dict) else tree.entries
    return frozenset().union(*map(pages_of, inner))


def position(tree: Tree) -> tuple[int, float] | None:
    """Page and top of the first value of a row that was found, None when none was."""
    places = [(f.page, f.box.top) for _, f in scalars(tree) if f.page is not None and f.box is not None]
    return min(places, default=None)
