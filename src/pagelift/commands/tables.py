"""Results as rows of a table, for CSV.

Columns come from the schema: one per scalar, named by its dotted path. Arrays of scalars are one column, joined with "; ".
Arrays of objects become rows: each entry is a row that repeats the values around it; entries of several arrays follow each other.
What has no fixed columns (unions, free keys, a schema that refers to itself) is one column that holds JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from pagelift.core import Json
from pagelift.schema import Array, Node, Object, Scalar

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


class Table:
    """The columns of a schema, and the rows of values that conform to it."""

    def __init__(self, root: Node) -> None:
        self._root = root
        self.columns = list(_columns(root, "", ()))

    def rows(self, data: Json) -> Iterator[list[str]]:
        """The rows of one result, in the order of `columns`; at least one."""
        for cells in _rows(self._root, data, "", ()):
            yield [cells.get(column, "") for column in self.columns]


def safe_cell(value: Json) -> str:
    """A cell's text. Text that a spreadsheet would take for a formula gets an apostrophe in front."""
    if value is None:
        return ""
    if isinstance(value, str):
        return "'" + value if value.startswith(_FORMULA_STARTS) else value
    return json.dumps(value, ensure_ascii=False)


def _is_plain(node: Node, around: tuple[int, ...]) -> bool:
    """Whether an object's properties are columns."""
    return isinstance(node, Object) and node.additional is None and bool(node.properties) and id(node) not in around


def _below(name: str, key: str) -> str:
    """The name of a property's column; keys that are empty or hold a dot are quoted, so that no two columns have one name."""
    step = key if key and "." not in key else json.dumps(key, ensure_ascii=False)
    return f"{name}.{step}" if name else step


def _columns(node: Node, name: str, around: tuple[int, ...]) -> Iterator[str]:
    if isinstance(node, Object) and _is_plain(node, around):
        for key, child in node.properties.items():
            yield from _columns(child, _below(name, key), (*around, id(node)))
    elif isinstance(node, Array) and _is_plain(node.items, around):
        yield from _columns(node.items, name, around)
    else:
        yield name or "value"


def _rows(node: Node, value: Json, name: str, around: tuple[int, ...]) -> list[dict[str, str]]:
    shared, entries = _split(node, value, name, around)
    return [{**shared, **entry} for entry in entries] or [shared]


def _split(node: Node, value: Json, name: str, around: tuple[int, ...]) -> tuple[dict[str, str], list[dict[str, str]]]:
    """The cells that stand in every row of a value, and the rows that its arrays of objects make."""
    if isinstance(node, Object) and _is_plain(node, around):
        given = value if isinstance(value, dict) else {}
        shared: dict[str, str] = {}
        entries: list[dict[str, str]] = []
        for key, child in node.properties.items():
            inner, rows = _split(child, given.get(key), _below(name, key), (*around, id(node)))
            shared |= inner
            entries += rows
        return shared, entries
    if isinstance(node, Array) and _is_plain(node.items, around):
        return {}, [row for entry in value or () for row in _rows(node.items, entry, name, around)]
    if isinstance(node, Array) and isinstance(node.items, Scalar):
        value = "; ".join("" if entry is None else entry if isinstance(entry, str) else json.dumps(entry) for entry in value or ())
    return {name or "value": safe_cell(value)}, []
