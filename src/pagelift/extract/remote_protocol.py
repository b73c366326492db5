"""What goes to an OpenAI-compatible server and what comes back, in the forms that such servers use."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pagelift.core import Json
from pagelift.schema import Schema
from pagelift.schema import keywords as kw

if TYPE_CHECKING:
    from openai.types.chat.chat_completion import ChoiceLogprobs
    from PIL.Image import Image

CONSTRAINTS = ("json_schema", "structured_outputs", "guided_json", "json_object", "none")
"""Ways to hold a server to the schema, strongest and most widely understood first: OpenAI's response_format, vLLM's own fields (new
and old), any JSON object, nothing."""
_THOUGHTS = re.compile(r"\s*<think>.*?</think>\s*", re.S)
_FENCE = re.compile(r"\s*```[a-zA-Z]*[ \t]*\n?")
_FENCE_END = re.compile(r"\s*```\s*$")


def chat_content(pictures: Sequence[Image], text: str) -> list[Json]:
    """The parts of a user turn: the pages as PNG, without loss, then the text."""
    parts: list[Json] = []
    for picture in pictures:
        file = io.BytesIO()
        picture.save(file, format="PNG", compress_level=1)
        parts.append({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"}})
    return [*parts, {"type": "text", "text": text}]


def constraint_fields(constraint: str, schema: Schema) -> dict[str, Any]:
    """The arguments of a chat request that hold the answer to a schema."""
    if constraint == "json_schema":
        body = {"name": "extraction", "schema": served_schema(schema), "strict": True}
        return {"response_format": {"type": "json_schema", "json_schema": body}}
    if constraint == "structured_outputs":
        return {"extra_body": {"structured_outputs": {"json": served_schema(schema)}}}
    if constraint == "guided_json":
        return {"extra_body": {"guided_json": served_schema(schema)}}
    return {"response_format": {"type": "json_object"}} if constraint == "json_object" else {}


def served_schema(schema: Schema) -> Json:
    """The schema that a server's grammar is made from: null let in, every property written out, in order, and no others.

    Where null may not stand for a value that is not there, properties stay as optional as they are.
    """
    effective = {key: value for key, value in schema.effective.items() if key != "$schema"}
    return _written_out(effective) if schema.nulls == "allowed" else effective


def _written_out(schema: Json) -> Json:
    if not isinstance(schema, dict):
        return schema
    out = dict(schema)
    for key, value in schema.items():
        if (key in kw.VALUE_MAPS or key in kw.DEFINITIONS) and isinstance(value, dict):
            out[key] = {name: _written_out(sub) for name, sub in value.items()}
        elif key in kw.VALUE_SCHEMAS and isinstance(value, dict):
            out[key] = _written_out(value)
    if (
        set(schema) - {*kw.ANNOTATIONS, *kw.DEFINITIONS} <= {"type", "properties", "required", "additionalProperties"}
        and "properties" in schema
    ):
        written = [name for name, sub in schema["properties"].items() if sub is not False and not _refers(sub)]
        out["required"] = list(dict.fromkeys([*schema.get("required", ()), *written]))
        out.setdefault("additionalProperties", False)
    return out


def _refers(schema: Json) -> bool:
    """Whether a schema refers to another, which may hold this one; objects inside themselves must be allowed to end."""
    if isinstance(schema, dict):
        return any(key in kw.REFERENCES or _refers(value) for key, value in schema.items())
    return isinstance(schema, list) and any(map(_refers, schema))


def unwrapped(text: str) -> tuple[str, int]:
    """The answer without what models put around it when nothing holds them back (thoughts, a code fence), and where it begins."""
    begin = 0
    for pattern in (_THOUGHTS, _FENCE):
        if match := pattern.match(text, begin):
            begin = match.end()
    inner = text[begin:]
    return _FENCE_END.sub("", inner) if begin else inner, begin


def reply_pieces(logprobs: ChoiceLogprobs | None, written: str, begin: int, length: int) -> tuple[tuple[str, float | None], ...]:
    """Text and log-probability of each token of [begin, begin + length) of an answer; empty when the tokens do not spell it."""
    if logprobs is None or not logprobs.content:
        return ()
    ends, data = [], b""
    for token in logprobs.content:
        data += bytes(token.bytes) if token.bytes else token.token.encode()
        ends.append(len(data))
    encoded = written.encode()
    if not data.startswith(encoded):
        return ()
    first, last = len(written[:begin].encode()), len(written[: begin + length].encode())
    pieces: list[tuple[str, float | None]] = []
    at, given = first, 0
    for token, end in zip(logprobs.content, ends, strict=True):
        stop = min(end, last)
        if stop > at:
            text = encoded[first:stop].decode(errors="ignore")  # characters come with the token that completes them
            pieces.append((text[given:], float(token.logprob)))
            given, at = len(text), stop
    return tuple(pieces)
