"""The JSON Schema keywords of drafts 4 to 2020-12, by what they do with subschemas."""

from __future__ import annotations

from collections.abc import Iterator

from pagelift.core import Json

VALUE_MAPS = ("properties", "patternProperties")
VALUE_SCHEMAS = ("additionalProperties", "items", "additionalItems", "unevaluatedProperties", "unevaluatedItems")
VALUE_LISTS = ("prefixItems", "items")
SAME_LISTS = ("allOf", "anyOf", "oneOf")
SAME_SCHEMAS = ("then", "else")
SAME_MAPS = ("dependentSchemas", "dependencies")
TEST_SCHEMAS = ("not", "if", "contains", "propertyNames")
DEFINITIONS = ("$defs", "definitions")
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
IDENTIFIERS = ("$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary")
ANNOTATIONS = ("title", "description", "examples", "example", "default", "$comment", "deprecated", "readOnly", "writeOnly")
NULLABLE = ("nullable", "x-nullable")

SCALAR_KEYWORDS = (
    "type",
    "enum",
    "const",
    "format",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
)
OTHER_ENFORCED = (
    "required",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minContains",
    "maxContains",
    "minProperties",
    "maxProperties",
    "dependentRequired",
)
ENFORCED = frozenset(
    SCALAR_KEYWORDS
    + OTHER_ENFORCED
    + VALUE_MAPS
    + VALUE_SCHEMAS
    + VALUE_LISTS
    + SAME_LISTS
    + SAME_SCHEMAS
    + SAME_MAPS
    + TEST_SCHEMAS
    + DEFINITIONS
    + REFERENCES
)

_SINCE = {
    "const": 6,
    "contains": 6,
    "propertyNames": 6,
    "if": 7,
    "then": 7,
    "else": 7,
    "dependentRequired": 2019,
    "dependentSchemas": 2019,
    "unevaluatedProperties": 2019,
    "unevaluatedItems": 2019,
    "minContains": 2019,
    "maxContains": 2019,
    "prefixItems": 2020,
    "$dynamicRef": 2020,
    "$recursiveRef": 2019,
}
_UNTIL = {"additionalItems": 2019, "$recursiveRef": 2019}

FORMATS = frozenset(
    [
        *("date", "date-time", "time", "duration", "email", "idn-email", "hostname", "idn-hostname", "ipv4", "ipv6", "uri", "uuid"),
        *("uri-reference", "iri", "iri-reference", "uri-template", "json-pointer", "relative-json-pointer", "regex"),
    ]
)
"""Formats that the validator checks in every draft (formats it does not know pass)."""

GRAMMAR_FORMATS = frozenset("date time date-time duration email hostname ipv4 ipv6 uuid uri".split())
"""Formats that a grammar can keep to while a model writes; the others are checked at the end."""

ALL_TYPES = frozenset(("null", "boolean", "number", "integer", "string", "array", "object"))
SCALAR_TYPES = frozenset(("boolean", "number", "integer", "string"))


def escape(token: str) -> str:
    """A key as a reference token of a JSON Pointer (RFC 6901)."""
    return token.replace("~", "~0").replace("/", "~1")


def join(pointer: str, *tokens: str | int) -> str:
    return pointer + "".join("/" + escape(str(t)) for t in tokens)


def in_draft(key: str, draft: int) -> bool:
    """Whether a keyword is one of this draft's; a keyword of another draft is ignored by validators."""
    return _SINCE.get(key, 0) <= draft <= _UNTIL.get(key, 9999)


def subschemas(schema: dict[str, Json]) -> Iterator[tuple[tuple[str | int, ...], Json]]:
    """The direct subschemas of a schema object with their path, each once; values that are no schema are left out."""
    for key, value in schema.items():
        if key in VALUE_MAPS or key in SAME_MAPS or key in DEFINITIONS:
            if isinstance(value, dict):
                yield from (((key, name), sub) for name, sub in value.items() if isinstance(sub, dict | bool))
        elif isinstance(value, list):
            if key in SAME_LISTS or key in VALUE_LISTS:
                yield from (((key, i), sub) for i, sub in enumerate(value) if isinstance(sub, dict | bool))
        elif (key in VALUE_SCHEMAS or key in SAME_SCHEMAS or key in TEST_SCHEMAS) and isinstance(value, dict | bool):
            yield (key,), value


def type_of(value: Json) -> str:
    """The JSON type of a value; a float without a fraction is an integer, as in JSON Schema since draft 6."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) or value.is_integer() else "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def type_list(value: Json) -> tuple[str, ...]:
    """The keyword `type` as a tuple, whether it was written as one name or a list."""
    return (value,) if isinstance(value, str) else tuple(value)
