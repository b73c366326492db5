"""The effective schema one value at a time: references followed and `allOf` merged into one flat set of keywords."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import unquote

from pagelift.core import Json
from pagelift.schema import keywords as kw

Flat = dict[str, Json]
MAX_WAYS = 4096
"""Combinations of anyOf and oneOf that are looked at for one value; the validator knows them all."""

_REFUSE_ALL: Flat = {"enum": []}

_TIGHTER: dict[str, Callable[[Json, Json], Json]] = {
    "minimum": max,
    "exclusiveMinimum": max,
    "minLength": max,
    "minItems": max,
    "minProperties": max,
    "maximum": min,
    "exclusiveMaximum": min,
    "maxLength": min,
    "maxItems": min,
    "maxProperties": min,
}


@dataclass(slots=True)
class Views:
    """Flat views of the subschemas of one effective schema; views are shared, so they must not be changed.

    In a view there is no `$ref`. What cannot be merged (two patterns, two anyOf) stays behind in `allOf`.
    """

    document: Json
    _flat: dict[int, Flat] = field(default_factory=dict)
    _both: dict[tuple[int, int], Json] = field(default_factory=dict)
    _kept: list[Json] = field(default_factory=list)
    _alternatives: dict[int, list[Flat]] = field(default_factory=dict)

    def target(self, reference: str) -> Json:
        value = self.document
        for token in reference[1:].split("/")[1:]:
            value = value[unquote(token).replace("~1", "/").replace("~0", "~")]
        return value

    def flat(self, schema: Json) -> Flat:
        """The flat view of `schema`; shared objects give the same view, so recursion can be seen by identity."""
        if not isinstance(schema, dict):
            return {} if schema else _REFUSE_ALL
        if id(schema) not in self._flat:
            view = {k: v for k, v in schema.items() if k not in ("$ref", "allOf", "$defs", "definitions", "$schema")}
            if "$ref" in schema:
                view = self.merge(view, self.flat(self.target(schema["$ref"])))
            for part in schema.get("allOf", ()):
                view = self.merge(view, self.flat(part))
            self._kept.append(schema)
            self._flat[id(schema)] = view
        return self._flat[id(schema)]

    def merge(self, a: Flat, b: Flat) -> Flat:
        """Both views at once; on titles and other annotations the first wins."""
        if not a or not b:
            return a or b
        out = dict(a)
        left: Flat = {}
        for key, value in b.items():
            if key not in out:
                out[key] = value
            elif not self._merge_keyword(out, key, value) and out[key] != value and key not in kw.ANNOTATIONS:
                left[key] = value
        if left:
            out["allOf"] = [*out.get("allOf", ()), left]
        return out

    def _merge_keyword(self, out: Flat, key: str, value: Json) -> bool:
        """Merge one keyword that both sides have; False when there is no common form for it."""
        mine = out[key]
        if key in ("properties", "patternProperties"):
            out[key] = {**mine, **{k: self.both(mine[k], v) if k in mine else v for k, v in value.items()}}
        elif key == "required" and isinstance(mine, list) and isinstance(value, list):
            out[key] = [*mine, *(k for k in value if k not in mine)]
        elif key == "type":
            out[key] = common_types(kw.type_list(mine), kw.type_list(value))
        elif key == "enum":
            out[key] = [v for v in mine if any(same(v, w) for w in value)]
        elif key in _TIGHTER and not isinstance(mine, bool) and not isinstance(value, bool):
            out[key] = _TIGHTER[key](mine, value)
        elif key in ("items", "additionalProperties") and not isinstance(mine, list) and not isinstance(value, list):
            out[key] = self.both(mine, value)
        elif key == "allOf":
            out[key] = [*mine, *value]
        elif key == "uniqueItems":
            out[key] = mine or value
        else:
            return False
        return True

    def both(self, a: Json, b: Json) -> Json:
        """A schema that asks for a and b; the same object for the same pair, so that recursion still ends."""
        if a is b or a == b or b is True:
            return a
        if a is True:
            return b
        if a is False or b is False:
            return False
        key = (id(a), id(b))
        if key not in self._both:
            self._kept += [a, b]
            self._both.setdefault(key, {"allOf": [a, b]})
        return self._both[key]

    def alternatives(self, view: Flat) -> list[Flat]:
        """The ways to satisfy a view with anyOf or oneOf, each merged with the rest; [view] when there is one way only."""
        if "anyOf" not in view and "oneOf" not in view:
            return [view]
        if id(view) not in self._alternatives:
            self._kept.append(view)
            key = "anyOf" if "anyOf" in view else "oneOf"
            rest = {k: v for k, v in view.items() if k != key}
            ways = [self.merge(self.flat(option), rest) for option in view[key]]
            found = [way for way in ways if way.get("type") != [] and way.get("enum") != []]
            self._alternatives[id(view)] = [deeper for way in found for deeper in self.alternatives(way)][:MAX_WAYS]
        return self._alternatives[id(view)]


def common_types(a: tuple[str, ...], b: tuple[str, ...]) -> list[str]:
    """Types that both lists admit; an integer is a number."""
    out = [t for t in a if t in b or (t == "integer" and "number" in b)]
    return out + [t for t in b if t == "integer" and "number" in a and t not in out]


def same(a: Json, b: Json) -> bool:
    """Equal as JSON values: unlike in Python, true is not 1."""
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def admitted_types(view: Flat) -> tuple[str, ...] | None:
    """The types of one alternative in the order given, guessed from other keywords where there is no `type`; None: any."""
    if "type" in view:
        types = kw.type_list(view["type"])
        allowed = view.get("enum")
        if allowed is None:
            return types
        found = {kw.type_of(v) for v in allowed}
        return tuple(t for t in types if t in found or (t == "number" and "integer" in found))
    if "const" in view:
        return (kw.type_of(view["const"]),)
    if "enum" in view:
        return tuple(dict.fromkeys(map(kw.type_of, view["enum"])))
    if any(k in view for k in ("properties", "required", "additionalProperties", "patternProperties", "minProperties")):
        return ("object",)
    if any(k in view for k in ("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains")):
        return ("array",)
    if any(k in view for k in ("minLength", "maxLength", "pattern", "format")):
        return ("string", "null")
    if any(k in view for k in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")):
        return ("number", "null")
    return None
