"""Brings a value into the shape that a schema describes: keys, order, types, lengths. Whatever is given up is recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from pagelift.core import ExtractionError, Json
from pagelift.schema import keywords as kw
from pagelift.schema.coercion import coerce, type_name
from pagelift.schema.view import Flat, Views, admitted_types, same

MAX_FILLED = 20_000
"""Values inside objects and entries that were not read; above, missing objects are written only where required."""

MAX_LEVELS = 60
"""Objects inside one another that are written out although nothing was read."""


class TooMuchToFill(ExtractionError):
    """An empty result would be larger than MAX_FILLED."""


class Missing:
    """No value: there is none, and none may be made up."""


MISSING: Final = Missing()


@dataclass(frozen=True, slots=True)
class Dropped:
    """A value that the schema does not admit. pointer: where it stood in the value that was given."""

    pointer: str
    value: Json
    reason: str


@dataclass(slots=True)
class Leaves:
    """Validators of the scalar keywords of alternatives, and of property names. compile: makes a validator of a small schema."""

    compile: Callable[[Json], Any]
    _scalars: dict[int, tuple[Flat, Any]] = field(default_factory=dict)
    _patterns: dict[str, Any] = field(default_factory=dict)

    def scalar(self, way: Flat) -> Any:
        if id(way) not in self._scalars:
            parts = [{k: v for k, v in part.items() if k in kw.SCALAR_KEYWORDS} for part in (way, *way.get("allOf", ()))]
            nothing = any(part.get("type") == [] or part.get("enum") == [] for part in parts)
            self._scalars[id(way)] = way, self.compile({"not": {}} if nothing else parts[0] if len(parts) == 1 else {"allOf": parts})
        return self._scalars[id(way)][1]

    def matches(self, pattern: str, name: str) -> bool:
        if pattern not in self._patterns:
            self._patterns[pattern] = self.compile({"pattern": pattern})
        return bool(self._patterns[pattern].is_valid(name))


@dataclass(slots=True)
class Shaper:
    """Shapes values for one effective schema.

    leaves: validators of scalars. everything: missing optional objects are written out.
    dropped, unfilled: filled while shaping. endless, forbidden: whether something required could not be filled because
    it holds itself, or because nothing but a real value may stand there.
    """

    views: Views
    leaves: Leaves
    everything: bool = True
    dropped: list[Dropped] = field(default_factory=list)
    unfilled: list[str] = field(default_factory=list)
    endless: bool = False
    forbidden: bool = False
    _made: int = 0
    _level: int = 0

    def lose(self, pointer: str, value: Json, reason: str) -> None:
        if has_content(value):
            self.dropped.append(Dropped(pointer, value, reason))

    def shape(self, value: Json | Missing, schema: Json, pointer: str = "", stack: tuple[int, ...] = (), required: bool = True) -> Any:
        """`value` in the shape of `schema`, or MISSING when there is no value that could stand there.

        stack: the identities of the object views around this value, by which recursion is seen.
        """
        view = self.views.flat(schema)
        if isinstance(value, Missing) or (value is None and not self.admits_null(view)):
            return self._fill(view, stack, pointer, required)
        if value is None:
            return None
        ways = self.views.alternatives(view)
        kind = type_name(value)
        if kind not in ("object", "array"):
            return self._scalar(value, view, ways, pointer, stack, required)
        fitting = [way for way in ways if kind in (admitted_types(way) or kw.ALL_TYPES)]
        if fitting:
            way = self.best(fitting, value)
            if kind == "object":
                return self._object(value, way, pointer, (*stack, id(way)), required)
            return self._array(value, way, pointer, stack)
        if kind == "array" and len(value) == 1:
            return self.shape(value[0], schema, pointer, stack, required)
        rows = self._rows_of(ways, frozenset(("object",))) if kind == "object" else None
        if rows is not None:
            return self._array([value], rows, pointer, stack)
        self.lose(pointer, value, f"{kind} where the schema wants {_wanted(ways)}")
        return self._fill(view, stack, pointer, required)

    def _rows_of(self, ways: list[Flat], types: frozenset[str]) -> Flat | None:
        """The first alternative that is an array whose entries are of one of `types`."""
        for way in ways:
            if "array" in (admitted_types(way) or ()):
                entries = self.views.alternatives(self.views.flat(entry_schema(way, 0)))
                if any(types & set(admitted_types(entry) or ()) for entry in entries):
                    return way
        return None

    def admits_null(self, view: Flat) -> bool:
        return any("null" in (admitted_types(way) or ("null",)) for way in self.views.alternatives(view))

    def _scalar(self, value: Json, view: Flat, ways: list[Flat], pointer: str, stack: tuple[int, ...], required: bool) -> Any:
        reason = ""
        for way in ways:
            types = admitted_types(way) or tuple(kw.ALL_TYPES)
            fitted = coerce(value, types) if type_name(value) == "number" and "integer" in types else value
            if self.leaves.scalar(way).is_valid(fitted):
                return fitted
        for way in ways:
            fitted = coerce(value, admitted_types(way) or tuple(kw.ALL_TYPES))
            if self.leaves.scalar(way).is_valid(fitted):
                return fitted
            reason = reason or next(e.message for e in self.leaves.scalar(way).iter_errors(fitted))
        rows = self._rows_of(ways, kw.SCALAR_TYPES)
        if rows is not None and id(rows) not in stack:
            return self._array([value], rows, pointer, (*stack, id(rows)))
        self.lose(pointer, value, reason or f"the schema admits {_wanted(ways)}")
        return self._fill(view, stack, pointer, required)

    def best(self, ways: list[Flat], value: Json) -> Flat:
        """The alternative that fits an object or array best, judged by its keys and fixed values."""
        if len(ways) == 1 or not isinstance(value, dict):
            return ways[0]
        return max(ways, key=lambda way: self._fit(way, value))

    def _fit(self, way: Flat, value: dict[str, Json]) -> int:
        properties = way.get("properties", {})
        score = -sum(name not in value for name in way.get("required", ()))
        for name, own in value.items():
            if name not in properties:
                score -= own is not None and way.get("additionalProperties") is False
                continue
            if own is None:
                score -= not self.admits_null(self.views.flat(properties[name]))
                continue
            inner = self.views.alternatives(self.views.flat(properties[name]))
            kinds = [admitted_types(w) or tuple(kw.ALL_TYPES) for w in inner]
            fits = any(kw.type_of(own) in k or (kw.type_of(own) == "integer" and "number" in k) for k in kinds)
            score += 1 if fits else -2
            fixed = [v for w in inner for v in ([w["const"]] if "const" in w else w.get("enum", []))]
            if all("const" in w or "enum" in w or w.get("type") == "null" for w in inner):
                score += 20 if any(same(own, v) for v in fixed) else -100
        return score

    def _object(self, value: dict[str, Json], way: Flat, pointer: str, stack: tuple[int, ...], required: bool) -> Any:
        needed = set(way.get("required", ()))
        properties = way.get("properties", {})
        before = len(self.unfilled)
        out: dict[str, Json] = {}
        for name in (*properties, *(n for n in way.get("required", ()) if n not in properties and n not in value)):
            schema = self.member(way, name)
            at = kw.join(pointer, name)
            if schema is False:
                self.lose(at, value.get(name), "the schema forbids this property")
                if name in needed:
                    self.unfilled.append(at)
                continue
            fitted = self.shape(value.get(name, MISSING), schema, at, stack, name in needed)
            if not isinstance(fitted, Missing):
                out[name] = fitted
            elif name in needed:
                self.unfilled.append(at)
        for name, own in value.items():
            if name not in properties:
                self._extra(out, name, own, self.member(way, name), kw.join(pointer, name), stack)
        if len(self.unfilled) > before and not required and not has_content(value):
            del self.unfilled[before:]
            return MISSING
        return out

    def _extra(self, out: dict[str, Json], name: str, value: Json, schema: Json, pointer: str, stack: tuple[int, ...]) -> None:
        if schema is False:
            self.lose(pointer, value, "the schema has no such property")
            return
        fitted = value if schema is True else self.shape(value, schema, pointer, stack, False)
        if not isinstance(fitted, Missing):
            out[name] = fitted

    def member(self, way: Flat, name: str) -> Json:
        """The schema of the property `name`: listed, by pattern, or additional; True when anything may stand there."""
        found = way["properties"][name] if name in way.get("properties", {}) else None
        for pattern, schema in way.get("patternProperties", {}).items():
            if self.leaves.matches(pattern, name):
                found = schema if found is None else self.views.both(found, schema)
        return way.get("additionalProperties", True) if found is None else found

    def _array(self, value: list[Json], way: Flat, pointer: str, stack: tuple[int, ...]) -> list[Json]:
        limit = way.get("maxItems")
        if limit is not None and len(value) > limit:
            for i in range(int(limit), len(value)):
                self.lose(kw.join(pointer, i), value[i], f"the schema admits at most {limit} entries")
            value = value[: int(limit)]
        out = []
        for i, entry in enumerate(value):
            schema = entry_schema(way, i)
            if schema is False:
                self.lose(kw.join(pointer, i), entry, "the schema admits no entry here")
                continue
            fitted = self.shape(entry, schema, kw.join(pointer, i), stack, True)
            if not isinstance(fitted, Missing):
                out.append(fitted)
        return self._pad(out, way, pointer, stack)

    def _pad(self, out: list[Json], way: Flat, pointer: str, stack: tuple[int, ...]) -> list[Json]:
        while len(out) < way.get("minItems", 0):
            at = kw.join(pointer, len(out))
            self._count(at)
            entry = self.shape(MISSING, entry_schema(way, len(out)), at, (*stack, id(way)), True)
            if isinstance(entry, Missing):
                self.unfilled.append(at)
                break
            self.dropped.append(Dropped(at, None, f"no entry was read, and the schema wants at least {way['minItems']}"))
            out.append(entry)
        return out

    def _fill(self, view: Flat, stack: tuple[int, ...], pointer: str, required: bool) -> Any:
        """The value of a place where nothing was read: null, [], an object of such values, the only value possible, or MISSING."""
        if self._level:
            self._count(pointer)
        if self.admits_null(view):
            return None
        ways = self.views.alternatives(view)
        before = len(self.unfilled), len(self.dropped)
        for way in ways:
            filled = self._fill_way(way, stack, pointer, required)
            if not isinstance(filled, Missing) and len(self.unfilled) == before[0]:
                return filled
            del self.unfilled[before[0] :], self.dropped[before[1] :]
        return MISSING

    def _fill_way(self, way: Flat, stack: tuple[int, ...], pointer: str, required: bool) -> Any:
        types = admitted_types(way) or ("null",)
        fixed = [way["const"]] if "const" in way else way.get("enum", [])
        if len(fixed) == 1:
            return fixed[0] if required else MISSING
        if "array" in types and not fixed:
            if id(way) in stack and way.get("minItems"):
                self.endless |= required
                return MISSING
            return self._pad([], way, pointer, stack)
        if "object" in types and not fixed:
            if id(way) in stack:
                self.endless |= required
                return MISSING
            if not required and not self.everything:
                return MISSING
            return self._empty_object(way, pointer, stack)
        self.forbidden |= required
        return MISSING

    def _empty_object(self, way: Flat, pointer: str, stack: tuple[int, ...]) -> Any:
        if self._level >= MAX_LEVELS:
            raise TooMuchToFill(f"the schema wants more than {MAX_LEVELS} objects inside one another that were not read, at {pointer}")
        self._level += 1
        filled = self._object({}, way, pointer, (*stack, id(way)), True)
        self._level -= 1
        return filled

    def _count(self, pointer: str) -> None:
        self._made += 1
        if self._made > MAX_FILLED:
            raise TooMuchToFill(
                f"the schema wants more than {MAX_FILLED} objects and entries that were not read, the next one at {pointer}"
            )


def entry_schema(way: Flat, index: int) -> Json:
    """The schema of entry `index` of an array."""
    rest = way.get("items", True)
    prefix = way.get("prefixItems", rest if isinstance(rest, list) else [])
    if index < len(prefix):
        return prefix[index]
    return way.get("additionalItems", True) if isinstance(rest, list) else rest


def has_content(value: Json) -> bool:
    """Whether a value holds anything besides null and empty containers."""
    if isinstance(value, dict):
        return any(map(has_content, value.values()))
    if isinstance(value, list):
        return any(map(has_content, value))
    return value is not None


def _wanted(ways: list[Flat]) -> str:
    return " or ".join(dict.fromkeys(t for way in ways for t in admitted_types(way) or ("anything",))) or "nothing"
