"""Scalars from one JSON type to another where nothing is lost, and Python values to JSON values."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from pagelift.core import Json
from pagelift.schema.keywords import join

MAX_DEPTH = 100
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?", re.ASCII)

Lose = Callable[[str, Json, str], None]
"""Told of a value that is given up: pointer, value, reason."""


def coerce(value: Json, types: tuple[str, ...]) -> Json:
    """`value` as one of the JSON types `types`, unchanged when that would lose something or is not needed.

    Text becomes a number only if the number says exactly the same ("12", "12.50", not "007" or "1,5").
    """
    own = type_name(value)
    if own == "number" and "integer" in types and isinstance(value, float) and value.is_integer():
        return int(value)
    if own in types or (own == "integer" and "number" in types):
        return value
    if isinstance(value, str):
        return _from_text(value.strip(), types, value)
    if "string" in types and isinstance(value, bool):
        return "true" if value else "false"
    if "string" in types and isinstance(value, int | float):
        return _digits(value)
    return value


def _from_text(text: str, types: tuple[str, ...], value: str) -> Json:
    if _NUMBER.fullmatch(text) and len(text) < 400 and ("number" in types or "integer" in types):
        exact = Decimal(text)
        if exact == exact.to_integral_value():
            return int(exact)
        if "number" in types and Decimal(repr(float(text))) == exact:
            return float(text)
    if "boolean" in types and text.casefold() in ("true", "false"):
        return text.casefold() == "true"
    return value


def _digits(value: float) -> str:
    """A number as text without an exponent."""
    return format(Decimal(repr(value)), "f")


def type_name(value: Json) -> str:
    """The JSON type as written: 12.0 is a number here."""
    if value is None:
        return "null"
    for kind, name in ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (list, "array")):
        if isinstance(value, kind):
            return name
    return "object"


def as_json(value: object, pointer: str, lose: Lose, depth: int = 0) -> Json:
    """A Python value as JSON: tuples to arrays, dates to ISO 8601, decimals to numbers; what has no JSON form becomes null."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str):
        if is_unicode(value):
            return value if type(value) is str else str.__str__(value)
        lose(pointer, value.encode("utf-8", "replace").decode(), "half of a surrogate pair is not valid Unicode")
        return None
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        lose(pointer, str(value), "not a JSON number")
        return None
    if depth >= MAX_DEPTH:
        lose(pointer, None, f"nested deeper than {MAX_DEPTH} levels")
        return None
    if isinstance(value, Mapping):
        return _object(value, pointer, lose, depth)
    if isinstance(value, list | tuple):
        return [as_json(v, f"{pointer}/{i}", lose, depth + 1) for i, v in enumerate(value)]
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, Decimal) and value.is_finite():
        return int(value) if value == value.to_integral_value() else float(value)
    lose(pointer, repr(value)[:200], f"{type(value).__name__} is not a JSON value")
    return None


def _object(value: Mapping[Any, object], pointer: str, lose: Lose, depth: int) -> dict[str, Json]:
    out: dict[str, Json] = {}
    for key, inner in value.items():
        name = key if type(key) is str else str(key)
        if is_unicode(name):
            out[name] = as_json(inner, join(pointer, name), lose, depth + 1)
        else:
            lose(pointer, name.encode("utf-8", "replace").decode(), "a key with half of a surrogate pair is not valid Unicode")
    return out


def is_unicode(text: str) -> bool:
    """Whether `text` can be written as UTF-8 (no lone surrogates)."""
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)
