"""Proposes a JSON Schema from example values."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jsonschema_rs

from pagelift.core import ConfigError, Json
from pagelift.schema import keywords as kw

_FORMATS = ("date", "date-time", "uuid", "uri", "email")
ENUM_VALUES = 8
"""At most so many different texts are proposed as an enum."""


def infer_schema(examples: Sequence[Json], title: str = "") -> dict[str, Json]:
    """A schema (2020-12) that admits every example.

    examples: one or more JSON values of the same kind of document. Properties keep the order of their first appearance
    and are required when every example has them; null makes a value nullable; an enum is proposed for texts that repeat
    over several examples. Raises ConfigError when there is no example.
    """
    if not examples:
        raise ConfigError("no example was given; a schema can be inferred from at least one JSON value")
    head: dict[str, Json] = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    if title:
        head["title"] = title
    return head | _merge(list(examples), len(examples))


def _merge(values: list[Json], documents: int) -> dict[str, Json]:
    """The schema of one place from all values seen there. documents: how many examples there are."""
    kinds: dict[str, list[Json]] = {}
    for value in values:
        kinds.setdefault(_kind(value), []).append(value)
    nullable = kinds.pop("null", None) is not None
    options = [_one_kind(kind, found, documents) for kind, found in kinds.items()]
    if not options:
        return {"type": ["string", "null"]} if nullable else {}
    if len(options) == 1:
        return _nullable(options[0]) if nullable else options[0]
    if not {"object", "array"} & set(kinds):
        types: list[str] = [option["type"] for option in options]
        return {"type": [*types, "null"] if nullable else types}
    return {"anyOf": options + ([{"type": "null"}] if nullable else [])}


def _nullable(schema: dict[str, Json]) -> dict[str, Json]:
    out = {**schema, "type": [schema["type"], "null"]}
    if "enum" in out:
        out["enum"] = [*out["enum"], None]
    return out


def _kind(value: Json) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number"
    return kw.type_of(value)


def _one_kind(kind: str, values: list[Any], documents: int) -> dict[str, Json]:
    if kind == "object":
        return _object(values, documents)
    if kind == "array":
        entries = [entry for value in values for entry in value]
        return {"type": "array", "items": _merge(entries, documents)} if entries else {"type": "array"}
    if kind == "number":
        return {"type": "integer" if all(isinstance(v, int) for v in values) else "number"}
    if kind == "string":
        return _string(values, documents)
    return {"type": kind}


def _object(values: list[dict[str, Json]], documents: int) -> dict[str, Json]:
    seen: dict[str, list[Json]] = {}
    for value in values:
        for name, inner in value.items():
            seen.setdefault(name, []).append(inner)
    required = [name for name, found in seen.items() if len(found) == len(values)]
    out: dict[str, Json] = {"type": "object", "properties": {name: _merge(found, documents) for name, found in seen.items()}}
    return out | {"required": required} if required else out


def _string(values: list[str], documents: int) -> dict[str, Json]:
    for name in _FORMATS:
        if all(_checker(name).is_valid(value) for value in values):
            return {"type": "string", "format": name}
    different = list(dict.fromkeys(values))
    repeated = len(values) >= 3 * len(different) or (len(values) >= 4 and len(values) >= 2 * len(different))
    short = all(0 < len(value) <= 40 for value in different)
    if documents > 1 and repeated and short and 2 <= len(different) <= ENUM_VALUES:
        return {"type": "string", "enum": different}
    return {"type": "string"}


@functools.cache
def _checker(name: str) -> Any:
    schema: dict[str, Json] = {"format": name}
    if name == "uri":
        schema["pattern"] = "^[a-zA-Z][a-zA-Z0-9+.-]*://"
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
