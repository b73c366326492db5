"""Wide schemas in parts: groups of properties that are asked for on their own, and the schema of each group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pagelift.core import Json
from pagelift.schema import Schema
from pagelift.schema import keywords as kw
from pagelift.schema.nodes import Array, Node, Object, Scalar, Union

Path = tuple[str, ...]
Group = tuple[Path, ...]
LIST_WEIGHT = 3
"""A list counts as so many of its entries."""

_SEPARABLE = frozenset(("type", "properties", "required", "additionalProperties", *kw.ANNOTATIONS, *kw.IDENTIFIERS, *kw.DEFINITIONS))
"""Keywords of objects whose properties do not depend on each other."""


def field_groups(schema: Schema, most: int) -> list[Group]:
    """Neighbouring properties in groups of at most `most` scalars, in schema order; what cannot be divided stays together.

    One group with the empty path when nothing needs to be divided.
    """
    if weight(schema.root) <= most or not _is_separable(schema.original):
        return [((),)]
    groups: list[list[Path]] = []
    room = 0
    for path, size in _units(schema.original, schema.root, (), most):
        if size > room or not groups:
            groups.append([])
            room = most
        groups[-1].append(path)
        room -= size
    return [tuple(group) for group in groups] if len(groups) > 1 else [((),)]


def restrict(schema: Schema, group: Sequence[Path]) -> Schema:
    """The schema of some of the properties, each with everything below it."""
    if () in group:
        return schema
    return Schema.load(_restricted(schema.original, group), nulls=schema.nulls)


def weight(node: Node, around: tuple[int, ...] = ()) -> int:
    """How much there is to answer: scalars, those of lists several times."""
    if id(node) in around:
        return 1
    inner = (*around, id(node))
    if isinstance(node, Object):
        return sum(weight(child, inner) for child in node.properties.values()) + (node.additional is not None)
    if isinstance(node, Array):
        return LIST_WEIGHT * weight(node.items, inner)
    if isinstance(node, Union):
        return max((weight(option, inner) for option in node.options), default=1)
    return 1


def missing(schema: Schema, data: Json, cut: Sequence[str]) -> Group:
    """The properties that an answer which was cut off does not give, or only in part.

    cut: the names that lead to the property which was being written. ((),) when the schema cannot be divided.
    """
    if not _is_separable(schema.original):
        return ((),)
    return tuple(_missing(schema.original, data, cut, ()))


def empty_pointers(node: Node, pointer: str = "", around: tuple[int, ...] = ()) -> Iterator[tuple[str, bool]]:
    """JSON Pointers of the scalars and lists below a node of which nothing is known, and whether each is a list."""
    if isinstance(node, Object) and id(node) not in around:
        for name, child in node.properties.items():
            yield from empty_pointers(child, kw.join(pointer, name), (*around, id(node)))
    elif isinstance(node, Scalar | Array):
        yield pointer, isinstance(node, Array)


def _units(original: Json, node: Node, path: Path, most: int) -> Iterator[tuple[Path, int]]:
    """What can be asked for on its own, with its weight: properties, divided further where they are too large."""
    assert isinstance(node, Object)
    for name, child in node.properties.items():
        size, sub = weight(child), original["properties"].get(name)
        if size > most and isinstance(child, Object) and not child.nullable and _is_separable(sub):
            yield from _units(sub, child, (*path, name), most)
        else:
            yield (*path, name), size


def _missing(original: Json, data: Json, cut: Sequence[str], path: Path) -> Iterator[Path]:
    for name, sub in original["properties"].items():
        if not isinstance(data, dict) or name not in data:
            yield (*path, name)
        elif cut and cut[0] == name:
            if isinstance(data[name], dict) and _is_separable(sub):
                yield from _missing(sub, data[name], cut[1:], (*path, name))
            else:
                yield (*path, name)


def _is_separable(schema: Json) -> bool:
    """Whether an object's properties can be asked for separately."""
    return (
        isinstance(schema, dict)
        and isinstance(schema.get("properties"), dict)
        and schema.get("type", "object") == "object"
        and not schema.get("additionalProperties")
        and not schema.keys() - _SEPARABLE
    )


def _restricted(schema: Json, group: Sequence[Path]) -> Json:
    if () in group:
        return schema
    properties = {}
    for name, sub in schema["properties"].items():
        inner = [path[1:] for path in group if path[0] == name]
        if inner:
            properties[name] = _restricted(sub, inner)
    out = {**schema, "properties": properties}
    if "required" in schema:
        out["required"] = [name for name in schema["required"] if name in properties]
        if not out["required"]:
            del out["required"]  # draft 4 admits no empty list
    return out
