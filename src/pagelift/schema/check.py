"""What makes a schema unusable, found before any document is opened."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema_rs

from pagelift.core import Json
from pagelift.schema import keywords as kw
from pagelift.schema.patterns import ecma_pattern, pattern_fault
from pagelift.schema.places import MAX_DEPTH, MAX_PLACES, Place, Refusal, Survey, loops, nesting, survey
from pagelift.schema.references import References

_ORDERED = (
    ("minimum", "maximum"),
    ("exclusiveMinimum", "maximum"),
    ("minimum", "exclusiveMaximum"),
    ("exclusiveMinimum", "exclusiveMaximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
)


def check_document(document: Json, draft: int, address: str) -> tuple[list[Refusal], Survey]:
    """Everything that speaks against the schema document, and the walk through it (empty when it is no JSON Schema)."""
    if document is False:
        return [Refusal("", "the schema is `false`, which no value can satisfy; describe an object, array or value")], Survey()
    if nesting(document) > MAX_DEPTH:
        return [Refusal("", f"the schema is nested deeper than {MAX_DEPTH} levels")], Survey()
    total = _count(document)
    if total > MAX_PLACES:
        return [Refusal("", f"the schema has more than {MAX_PLACES} subschemas")], Survey()
    fault = _meta_fault(document, address)
    if fault:
        return [fault], Survey()
    found = survey(References(document, draft))
    refused = found.refused + [f for place in found.places if not place.tested for f in _contradictions(place)]
    refused += [f for place in found.places for f in _bad_patterns(place)]
    return _unique(refused + (loops(found) if not refused else [])), found


def _count(document: Json) -> int:
    """The number of subschemas, definitions included; stops above MAX_PLACES."""
    pending, total = [document], 0
    while pending and total <= MAX_PLACES:
        schema = pending.pop()
        if isinstance(schema, dict):
            total += 1
            pending += [sub for _, sub in kw.subschemas(schema)]
    return total


def _meta_fault(document: Json, address: str) -> Refusal | None:
    """What the meta-schema complains about; patterns are judged later, where they can be rewritten."""
    if not isinstance(document, dict):
        return None
    try:
        jsonschema_rs.meta.validate({**document, "$schema": address})
    except jsonschema_rs.ValidationError as error:
        path = tuple(error.instance_path)
        value = document
        for token in path:
            value = value[token]
        place = kw.join("", *path)
        names = [token for token in error.schema_path if isinstance(token, str)]
        if names and names[-1] == "format":
            return None
        keyword = next((token for token in reversed(path) if isinstance(token, str)), "")
        return Refusal(
            place, f"{keyword}: {_short(value)} is not allowed by the JSON Schema standard ({error.message[:200]})", invalid=True
        )
    return None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _contradictions(place: Place) -> Iterator[Refusal]:
    """Demands of one subschema that no value can meet."""
    schema = place.schema
    for low, high in _ORDERED:
        a, b = schema.get(low), schema.get(high)
        if isinstance(a, bool) or isinstance(b, bool) or not isinstance(a, int | float) or not isinstance(b, int | float):
            continue
        if a > b or (a == b and "exclusive" in low + high):
            yield Refusal(kw.join(place.pointer, low), f"{low} {a} and {high} {b} leave no value")
    if schema.get("enum") == []:
        yield Refusal(kw.join(place.pointer, "enum"), "an empty enum leaves no value")
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if "type" in schema and isinstance(values, list) and values:
        types = set(kw.type_list(schema["type"])) | ({"null"} if any(schema.get(k) is True for k in kw.NULLABLE) else set())
        types |= {"integer"} if "number" in types else set()
        if not types & set(map(kw.type_of, values)):
            wanted = " or ".join(kw.type_list(schema["type"]))
            yield Refusal(place.pointer, f"type {wanted} and the allowed values {_short(values)} have nothing in common")


def _bad_patterns(place: Place) -> Iterator[Refusal]:
    given: list[tuple[tuple[str, ...], str]] = []
    if isinstance(place.schema.get("pattern"), str):
        given.append((("pattern",), place.schema["pattern"]))
    given += [(("patternProperties", p), p) for p in place.schema.get("patternProperties", {})]
    for path, pattern in given:
        if pattern_fault(ecma_pattern(pattern)):
            yield Refusal(kw.join(place.pointer, *path), f"the pattern {_short(pattern)} is not ECMA-262 and cannot be translated")


def _unique(refused: list[Refusal]) -> list[Refusal]:
    return list(dict.fromkeys(refused))
