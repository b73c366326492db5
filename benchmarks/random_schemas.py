"""Random JSON Schemas with every keyword of draft 2020-12, for tests that must hold for all of them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

NAMES = ("id", "name", "total", "date", "rows", "note", "x y", "größe", "a/b", 'q"')
PATTERNS = ("^[0-9]{5}$", "[a-z]+", "^(?=.*[0-9])[a-z0-9]+$", "^[A-Z]{2}-?[0-9]{1,3}$", r"^\S+$", r"^(\w+)@\1$", "^.{3,400}$", "^$|^[^ ]+$")
FORMATS = (
    "date",
    "date-time",
    "time",
    "email",
    "uuid",
    "ipv4",
    "ipv6",
    "uri",
    "hostname",
    "duration",
    "iri",
    "json-pointer",
    "money",
    "regex",
)
STEPS = (1, 3, 5, 10, 0.01, 0.25, 0.3, 7.5)

Schema = dict[str, Any]


def random_schema(rng: random.Random) -> Schema:
    """A schema with an object at the root, which refers to definitions that may refer to each other and to themselves."""
    schema = _object(rng, 3)
    schema["$defs"] = {"one": _any(rng, 2), "two": _any(rng, 2), "three": _object(rng, 2)}
    return schema


def _any(rng: random.Random, depth: int) -> Schema:
    makers: list[Callable[[random.Random, int], Schema]] = [_text, _text, _number, _number, _listed, _word]
    if depth > 0:
        makers += [_object, _array, _combined, _reference]
    return rng.choice(makers)(rng, depth - 1)


def _sometimes(rng: random.Random, schema: Schema, chance: float, **keywords: Any) -> None:
    """Add each keyword with this chance."""
    schema.update({k: v for k, v in keywords.items() if rng.random() < chance})


def _text(rng: random.Random, _: int) -> Schema:
    schema: Schema = {"type": rng.choice(["string", "string", ["string", "null"], ["string", "integer"]])}
    least = rng.randint(0, 4)
    _sometimes(rng, schema, 0.2, pattern=rng.choice(PATTERNS), format=rng.choice(FORMATS))
    _sometimes(rng, schema, 0.2, minLength=least, maxLength=least + rng.choice([0, 3, 40, 5000]))
    _sometimes(rng, schema, 0.1, **{"not": rng.choice([{"const": "null"}, {"pattern": "x"}, {"minLength": 30}])})
    return schema


def _number(rng: random.Random, _: int) -> Schema:
    schema: Schema = {"type": rng.choice(["integer", "number"])}
    low = rng.choice([-5, 0, 1, 17, 0.5, -1e6])
    _sometimes(rng, schema, 0.25, **{rng.choice(["minimum", "exclusiveMinimum"]): low})
    _sometimes(rng, schema, 0.25, **{rng.choice(["maximum", "exclusiveMaximum"]): low + rng.choice([10, 99.5, 1e9])})
    _sometimes(rng, schema, 0.2, multipleOf=rng.choice(STEPS))
    return schema


def _listed(rng: random.Random, _: int) -> Schema:
    values = ["EUR", "USD", 1, 2.5, None, True, {"a": [1]}, [], "true", "é中"]
    if rng.random() < 0.3:
        return {"const": rng.choice(values)}
    return {"enum": rng.sample(values, rng.randint(1, 5))}


def _word(rng: random.Random, _: int) -> Schema:
    return rng.choice([{"type": "boolean"}, {"type": "null"}, {}, {"type": "string", "nullable": False}, {"title": "anything"}])


def _array(rng: random.Random, depth: int) -> Schema:
    schema: Schema = {"type": "array", "items": _any(rng, depth)}
    least = rng.randint(0, 2)
    _sometimes(rng, schema, 0.25, minItems=least, maxItems=least + rng.randint(0, 5), uniqueItems=True)
    _sometimes(rng, schema, 0.15, contains=_any(rng, 0), prefixItems=[_any(rng, 0), _any(rng, 0)])
    _sometimes(rng, schema, 0.05, maxContains=2, unevaluatedItems=False)
    return schema


def _object(rng: random.Random, depth: int) -> Schema:
    names = rng.sample(NAMES, rng.randint(0, 5))
    schema: Schema = {"type": "object", "properties": {name: _any(rng, depth) for name in names}}
    _sometimes(rng, schema, 0.5, required=[n for n in names if rng.random() < 0.5], additionalProperties=False)
    _sometimes(rng, schema, 0.1, minProperties=rng.randint(0, 3), maxProperties=rng.randint(3, 6), propertyNames={"maxLength": 5})
    _sometimes(rng, schema, 0.1, patternProperties={rng.choice(["^n", "a$", "."]): _any(rng, 0)}, unevaluatedProperties=False)
    if len(names) > 1:
        a, b = names[:2]
        test = {"properties": {a: _any(rng, 0)}, "required": [a]}
        _sometimes(rng, schema, 0.1, dependentRequired={a: [b]}, dependentSchemas={a: {"properties": {b: _any(rng, 0)}}})
        _sometimes(rng, schema, 0.1, **{"not": {"required": [a, b]}})
        if rng.random() < 0.15:
            schema |= {"if": test, "then": {"properties": {b: _any(rng, 0)}}, "else": {"required": [b]}}
    return schema


def _combined(rng: random.Random, depth: int) -> Schema:
    key = rng.choice(["anyOf", "oneOf", "oneOf", "allOf"])
    count = 1 if key == "allOf" and rng.random() < 0.5 else 2
    schema: Schema = {key: [_any(rng, depth) for _ in range(count)]}
    _sometimes(rng, schema, 0.1, title="either", nullable=True)
    return schema


def _reference(rng: random.Random, _: int) -> Schema:
    return {"$ref": rng.choice(["#/$defs/one", "#/$defs/two", "#/$defs/three", "#"])}
