"""Keys that say nothing.

What a key says leads to its value directly, so that the way over its line of the outline is seldom needed and hardly learned. Here keys
become codes such as `field_7`, and what they said is in the descriptions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from random import Random
from typing import Any

from nano.examples import Question
from pagelift.core import Json

PREFIXES = ("field_", "field", "f", "q", "item_", "value_", "col", "x_", "attr_", "k")
_WORDS = re.compile(r"[^\W\d_]?[^\W\d_A-Z]+|[A-Z]+(?![a-z])|\d+")
Path = tuple[str, ...]


def with_codes(question: Question, rng: Random) -> Question:
    """The question with other keys of scalars and arrays; objects keep theirs."""
    prefix = rng.choice(PREFIXES)
    codes = (f"{prefix}{number}" for number in count(rng.randrange(1, 20)))
    names: dict[Path, str] = {}
    schema = _schema(question.schema, (), codes, names)
    places = {_pointer(pointer, names): place for pointer, place in question.places.items()}
    return question._replace(schema=schema, expected=_value(question.expected, (), names), places=places)


def _schema(schema: dict[str, Any], path: Path, codes: Iterator[str], names: dict[Path, str]) -> dict[str, Any]:
    made = dict(schema)
    if "items" in schema:
        made["items"] = _schema(schema["items"], path, codes, names)
    if "properties" not in schema:
        return made
    properties = {}
    for key, inner in schema["properties"].items():
        below = (*path, key)
        names[below] = key if "properties" in inner else next(codes)
        about = inner.get("description") or " ".join(_WORDS.findall(key)).lower() or key
        described = inner if "properties" in inner else {**inner, "description": about}
        properties[names[below]] = _schema(described, below, codes, names)
    made["properties"] = properties
    if "required" in schema:
        made["required"] = [names[*path, key] for key in schema["required"]]
    return made


def _value(value: Json, path: Path, names: dict[Path, str]) -> Json:
    if isinstance(value, dict):
        return {names[*path, key]: _value(inner, (*path, key), names) for key, inner in value.items()}
    if isinstance(value, list):
        return [_value(inner, path, names) for inner in value]
    return value


def _pointer(pointer: str, names: dict[Path, str]) -> str:
    path: Path = ()
    steps = [""]
    for step in pointer.split("/")[1:]:
        if step.isdigit():
            steps.append(step)
            continue
        path = (*path, step)
        steps.append(names[path])
    return "/".join(steps)
