"""From the effective schema to the graph of values. What a grammar cannot say is left wider, and the validator decides later."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from pagelift.core import Json
from pagelift.decoding.scalar_values import excluding, fixed_values, number_values, plain_string, string_values
from pagelift.decoding.values import Anything, ArrayValue, ByGuidance, Choice, Fixed, Member, ObjectValue, Option, Pattern, Scalar
from pagelift.schema import keywords as kw
from pagelift.schema.coercion import is_unicode
from pagelift.schema.shaping import Leaves, Shaper, entry_schema
from pagelift.schema.view import Flat, Views, admitted_types

MAX_WAYS = 200
"""Alternatives of one place; where there are more, what they have in common is written."""
ANY_DEPTH = 3
_TESTS = ("not", "if", "then", "else")
MAX_COUNT = 100_000
MAX_LISTED = 1000
"""Keys listed by `propertyNames` that are written as properties."""
MAX_ONE_OF = 20_000
"""Characters of a `oneOf` whose options fixed values are tried against."""
_KEY = plain_string(1, 100)


@dataclass(slots=True)
class ValueBuilder:
    """Builds the choices of one schema, outer ones first.

    max_choices: places of one schema; what lies beyond is written as any JSON value. strings: whether their patterns and formats
    are written. widened: what was left wider for its size.
    """

    views: Views
    leaves: Leaves
    max_choices: int = 20_000
    strings: bool = True
    choices: list[Choice] = field(default_factory=list)
    widened: list[str] = field(default_factory=list)
    _known: dict[int, Choice] = field(default_factory=dict)
    _kept: list[Any] = field(default_factory=list)
    _pending: deque[tuple[Choice, Flat]] = field(default_factory=deque)

    def build(self, schema: Json) -> Choice:
        """The place of the whole answer; without recursion, since schemas may be deep."""
        root = self._choice(schema)
        while self._pending:
            choice, view = self._pending.popleft()
            choice.options = self._options(view)
        return root

    def _choice(self, schema: Json) -> Choice:
        view = self.views.flat(schema)
        if id(view) not in self._known:
            self._kept.append(view)
            choice = self._known[id(view)] = Choice()
            self.choices.append(choice)
            if len(self.choices) > self.max_choices:
                choice.options = [Anything(ANY_DEPTH)]
                self.widened.append(f"more than {self.max_choices} places: inner values may be any JSON")
            else:
                self._pending.append((choice, view))
        return self._known[id(view)]

    def _options(self, view: Flat) -> list[Option]:
        ways = self.views.alternatives(view)
        if len(ways) > MAX_WAYS:
            self.widened.append(f"more than {MAX_WAYS} alternatives of one value: only what they share is written")
            ways = [{k: v for k, v in view.items() if k not in ("anyOf", "oneOf")}]
            self._kept.append(ways)
        fixed: list[Json] = []
        options: list[Option] = []
        for way in ways:
            for option in self._way(way):
                if isinstance(option, Fixed):
                    fixed += [v for v in option.values if not any(_identical(v, known) for known in fixed)]
                elif option not in options:
                    options.append(option)
        kept = self._in_one_option(fixed, view)
        return [*([Fixed(tuple(kept))] if kept else []), *options]

    def _in_one_option(self, values: list[Json], view: Flat) -> list[Json]:
        """Those of the fixed values that match exactly one option of `oneOf`, as far as its options refer to nothing else."""
        text = json.dumps(view.get("oneOf")) if values else ""
        if not values or "oneOf" not in view or '"$ref"' in text or len(text) > MAX_ONE_OF:
            return values
        validator = self.leaves.compile({"oneOf": view["oneOf"]})
        return [value for value in values if validator.is_valid(value)]

    def _way(self, way: Flat) -> list[Option]:
        denied, not_types = _denied(way)
        types = frozenset(self._types(way)) - not_types
        listed = fixed_values(way, types, self.leaves)
        if listed is not None:
            listed = Fixed(tuple(v for v in listed.values if _writable(v)))
            return [self._verified(listed, way)]
        if types >= {"object", "array", "string", "number"} and not _shaped(way):
            return [Anything(ANY_DEPTH)]
        options: list[Option] = []
        if "null" in types:
            options.append(Fixed((None,)))
        if "boolean" in types:
            options.append(Fixed((True, False)))
        if "string" in types:
            options += self._strings(way) if self.strings else [plain_string()]
        if "number" in types or "integer" in types:
            options += number_values(way, whole="number" not in types)
        if "array" in types:
            options.append(self._array(way))
        if "object" in types:
            options += self._object(way)
        if denied:
            options = [excluding(option, denied) if isinstance(option, Fixed | Pattern) else option for option in options]
        return [self._verified(option, way) if isinstance(option, Fixed) else option for option in options]

    def _strings(self, way: Flat) -> list[Scalar]:
        found = list(string_values(way))
        written = any(isinstance(option, ByGuidance) and '"pattern"' in option.schema for option in found)
        if "pattern" in way and not (written and "(?!" not in way["pattern"]):
            self.widened.append(f"the pattern {way['pattern'][:60]} is not written in full")
        return found

    def _verified(self, option: Fixed, way: Flat) -> Fixed:
        """Fixed values without those that `not` or `if` refuse, as far as these refer to nothing else."""
        parts = [found for part in _parts(way) if (found := {k: v for k, v in part.items() if k in _TESTS})]
        if not parts or '"$ref"' in json.dumps(parts):
            return option
        validator = self.leaves.compile({"allOf": parts})
        return Fixed(tuple(v for v in option.values if validator.is_valid(v)))

    def _types(self, way: Flat) -> tuple[str, ...]:
        found = admitted_types(way)
        types = tuple(kw.ALL_TYPES) if found is None else found
        for part in way.get("allOf", ()):
            if isinstance(part, dict) and "type" in part:
                types = tuple(t for t in types if t in kw.type_list(part["type"]) or (t == "integer" and "number" in part["type"]))
        return types

    def _array(self, way: Flat) -> ArrayValue:
        rest = way.get("items", True)
        prefix = way.get("prefixItems", rest if isinstance(rest, list) else [])
        beyond = entry_schema(way, len(prefix))
        among, count = way.get("contains"), int(way.get("minContains", 1))
        held = among is not None and count > 0 and beyond is not False
        most = int(way["maxItems"]) if way.get("maxItems", MAX_COUNT) < MAX_COUNT else None
        return ArrayValue(
            first=[self._choice(sub) for sub in prefix][:most],
            rest=None if beyond is False else self._choice(beyond),
            least=max(min(int(way.get("minItems", 0)), MAX_COUNT), len(prefix) if held else 0),
            most=most if beyond is not False else min(len(prefix), len(prefix) if most is None else most),
            among=self._choice(self.views.both(beyond, among)) if held else None,
            count=count if held else 0,
        )

    def _object(self, way: Flat) -> list[ObjectValue]:
        """The object of a way, none where its demands contradict each other."""
        properties = way.get("properties", {})
        required = set(way.get("required", ()))
        names = [n for n in (*properties, *(n for n in way.get("required", ()) if n not in properties)) if is_unicode(n)]
        most = int(way["maxProperties"]) if way.get("maxProperties", MAX_COUNT) < MAX_COUNT else None
        least = int(way.get("minProperties", 0))
        others = self._others(way, bool(names) and least <= len(names))
        listed = None if others is False else self._listed_keys(way)
        free = [name for name in listed or () if name not in names]
        member = Shaper(self.views, self.leaves).member
        members = [Member(name, self._choice(member(way, name)), name in required, name in free) for name in (*names, *free)]
        extra = [] if listed is not None else self._extra(way, others)
        together = [frozenset(part["not"]["required"]) for part in _parts(way) if _only_required(part.get("not"))]
        if any(names <= required for names in together) or (most is not None and most < len(required)):
            return []
        one = ObjectValue(
            members=members,
            extra=extra,
            min_extra=max(0, least - len(members)) if extra else 0,
            max_extra=None if most is None else max(0, most - len(members)),
            least=least,
            most=most,
            apart=together,
        )
        return [one]

    def _others(self, way: Flat, named: bool) -> Json:
        """The schema of what no property is listed for, or false. Where properties are listed and others merely not forbidden,
        there are none."""
        others = way.get("additionalProperties", not named and "patternProperties" not in way)
        return False if others is True and named else others

    def _extra(self, way: Flat, others: Json) -> list[tuple[Scalar, Choice]]:
        """Keys besides the listed ones."""
        found = [(next(string_values({"pattern": p}), _KEY), self._choice(sub)) for p, sub in way.get("patternProperties", {}).items()]
        if others is not False:
            names = way.get("propertyNames")
            key = next(string_values(self.views.flat(names)), _KEY) if isinstance(names, dict) else _KEY
            found.append((key, self._choice(others)))
        return found

    def _listed_keys(self, way: Flat) -> list[str] | None:
        """The keys that `propertyNames` lists, None where it lists none or too many."""
        names = way.get("propertyNames")
        listed = fixed_values(self.views.flat(names), frozenset(("string",)), self.leaves) if isinstance(names, dict) else None
        if listed is None or len(listed.values) > MAX_LISTED:
            return None
        return [name for name in listed.values if isinstance(name, str) and is_unicode(name)]


def _parts(way: Flat) -> list[Flat]:
    """The keywords of a way, and those that could not be merged into it."""
    return [way, *(part for part in way.get("allOf", ()) if isinstance(part, dict))]


def _only_required(schema: Json) -> bool:
    return isinstance(schema, dict) and set(schema) == {"required"} and bool(schema["required"])


def _denied(way: Flat) -> tuple[list[Json], frozenset[str]]:
    """The values and types that `not` takes away, where it says no more than that."""
    values: list[Json] = []
    types: frozenset[str] = frozenset()
    for part in _parts(way):
        inner = part.get("not")
        if isinstance(inner, dict) and len(inner) == 1:
            values += inner.get("enum", [inner["const"]] if "const" in inner else [])
            types |= frozenset(kw.type_list(inner["type"])) if "type" in inner else frozenset()
    return values, types | (frozenset(("integer",)) if "number" in types else frozenset())


def _shaped(way: Flat) -> bool:
    """Whether a way that admits every type says more than that."""
    return bool(set(way) & set(kw.ENFORCED) - {"type", "not", "if", "then", "else"})


def _writable(value: Json) -> bool:
    if isinstance(value, dict):
        return all(is_unicode(k) and _writable(v) for k, v in value.items())
    if isinstance(value, list):
        return all(map(_writable, value))
    return not isinstance(value, str) or is_unicode(value)


def _identical(a: Json, b: Json) -> bool:
    return type(a) is type(b) and bool(a == b)
