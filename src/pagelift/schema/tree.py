"""From the effective schema to the nodes that engines work with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from pagelift.core import Json
from pagelift.schema import keywords as kw
from pagelift.schema.nodes import Array, Node, Object, Scalar, ScalarType, Union
from pagelift.schema.view import Flat, Views, admitted_types, same

_UNTYPED: tuple[ScalarType, ...] = ("string", "number", "integer", "boolean")


@dataclass(slots=True)
class TreeBuilder:
    """Builds one node per place in the schema; a place that is reached again through `$ref` gives the same node."""

    views: Views
    _nodes: dict[tuple[int, str, bool], Node] = field(default_factory=dict)
    _kept: list[Flat] = field(default_factory=list)
    _pending: list[Callable[[], None]] = field(default_factory=list)

    def root(self, schema: Json) -> Node:
        """The node of the whole schema with everything below it; built without recursion, since schemas may be deep."""
        node = self.node(schema, required=True)
        while self._pending:
            self._pending.pop()()
        return node

    def node(self, schema: Any, name: str = "", required: bool = False) -> Node:
        view = self.views.flat(schema)
        key = (id(view), name, required)
        if key not in self._nodes:
            self._kept.append(view)
            self._nodes[key] = self._place(view, name, required, key)
        return self._nodes[key]

    def _place(self, view: Flat, name: str, required: bool, key: tuple[int, str, bool]) -> Node:
        remaining, nullable = split_null(self.views.alternatives(view))
        ways = _by_kind(remaining, nullable)
        common: dict[str, Any] = {
            "name": name,
            "title": _text(view, ways, "title"),
            "description": _text(view, ways, "description"),
            "nullable": nullable,
            "required": required,
        }
        kinds = {kind for _, kind in ways}
        if kinds == {"object"} and (len(ways) == 1 or "properties" in view):
            one = Object(**common)
            self._nodes[key] = one
            inner = ways[0][0] if len(ways) == 1 else view
            self._pending.append(lambda: self._fill_object(one, inner))
            return one
        if kinds == {"array"} and len(ways) == 1:
            rows = Array(**common, min_items=ways[0][0].get("minItems"), max_items=ways[0][0].get("maxItems"))
            self._nodes[key] = rows
            self._pending.append(lambda: self._fill_array(rows, ways[0][0]))
            return rows
        if kinds == {"scalar"} or not ways:
            return _scalar([way for way, _ in ways], common, view)
        union = Union(**common)
        self._nodes[key] = union
        union.options = tuple(self._place(way, name, required, (id(way), name, required)) for way in self._distinct(ways, view))
        return union

    def _distinct(self, ways: list[tuple[Flat, str]], view: Flat) -> list[Flat]:
        """The alternatives as views that no longer offer a choice, so that a union does not hold itself."""
        out = []
        for way, kind in ways:
            types = [t for t in admitted_types(way) or () if _kind(t) == kind] or ["string"]
            single = {**way, "type": types}
            self._kept.append(single)
            out.append(single)
        return [way for way in out if way is not view]

    def _fill_object(self, node: Object, view: Flat) -> None:
        required = set(view.get("required", ()))
        for name, sub in view.get("properties", {}).items():
            if sub is not False:
                node.properties[name] = self.node(sub, name, name in required)
        extra = view.get("additionalProperties")
        patterns = [sub for sub in view.get("patternProperties", {}).values() if isinstance(sub, dict)]
        chosen = extra if isinstance(extra, dict) else patterns[0] if patterns else None
        node.additional = self.node(chosen) if chosen is not None else None

    def _fill_array(self, node: Array, view: Flat) -> None:
        node.items = self._items(view)

    def _items(self, view: Flat) -> Node:
        rest = view.get("items")
        prefix = view.get("prefixItems", rest if isinstance(rest, list) else [])
        if isinstance(rest, list):
            rest = view.get("additionalItems")
        if isinstance(rest, dict) or not prefix:
            return self.node(rest if isinstance(rest, dict) else True)
        nodes = [self.node(sub) for sub in prefix]
        return nodes[0] if all(n is nodes[0] for n in nodes) else Union(options=tuple(nodes))


def split_null(ways: list[Flat]) -> tuple[list[Flat], bool]:
    """Take null out of the alternatives: those that remain, and whether null was among them."""
    remaining, nullable = [], False
    for way in ways:
        types = admitted_types(way)
        if types is None:
            nullable = True
        elif "null" in types:
            nullable = True
            if len(types) == 1:
                continue
        remaining.append(way)
    return remaining, nullable


def _kind(type_name: str) -> str:
    return type_name if type_name in ("object", "array") else "scalar"


def _by_kind(ways: list[Flat], nullable: bool) -> list[tuple[Flat, str]]:
    out: list[tuple[Flat, str]] = []
    for way in ways:
        types = [t for t in admitted_types(way) or ("string",) if t != "null"]
        out += [(way, kind) for kind in dict.fromkeys(map(_kind, types))]
    return out if out or not nullable else []


def _text(view: Flat, ways: list[tuple[Flat, str]], key: str) -> str:
    found = [view.get(key)] if view.get(key) else [way.get(key) for way, _ in ways]
    return next((v for v in found if isinstance(v, str)), "")


def _scalar(ways: list[Flat], common: dict[str, Any], view: Flat) -> Scalar:
    node = Scalar(**common)
    types = [t for way in ways for t in admitted_types(way) or _UNTYPED]
    node.types = cast(tuple[ScalarType, ...], tuple(t for t in dict.fromkeys(types) if t in kw.SCALAR_TYPES)) or ("null",)
    lists = [_enum(way) for way in ways]
    if lists and all(values is not None for values in lists):
        merged: list[Any] = []
        for value in (v for values in lists for v in values or ()):
            if not any(same(value, seen) for seen in merged):
                merged.append(value)
        node.enum = tuple(merged)
    examples = [view.get("examples", ()), *(way.get("examples", ()) for way in ways)]
    node.examples = tuple(next((e for e in examples if isinstance(e, list) and e), ()))
    if not node.examples and "example" in view:
        node.examples = (view["example"],)
    if len(ways) == 1:
        _constraints(node, ways[0])
    else:
        formats = {way.get("format") for way in ways if "string" in (admitted_types(way) or _UNTYPED)}
        node.format = formats.pop() if len(formats) == 1 else None
    return node


def _enum(way: Flat) -> list[Any] | None:
    values = [way["const"]] if "const" in way else way.get("enum")
    return None if values is None else [v for v in values if v is not None and not isinstance(v, dict | list)]


def _constraints(node: Scalar, way: Flat) -> None:
    node.format = way.get("format")
    node.pattern = way.get("pattern")
    node.min_length, node.max_length = way.get("minLength"), way.get("maxLength")
    node.multiple_of = way.get("multipleOf")
    for open_key, key, attribute in (("exclusiveMinimum", "minimum", "minimum"), ("exclusiveMaximum", "maximum", "maximum")):
        bound, exclusive = way.get(key), way.get(open_key)
        if exclusive is True:  # draft 4 writes a flag beside the bound
            bound, exclusive = None, bound
        setattr(node, attribute, bound)
        setattr(node, f"exclusive_{attribute}", exclusive if not isinstance(exclusive, bool) else None)
