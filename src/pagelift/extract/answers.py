"""A model's answer as JSON: parsed strictly, and every value with the part of the text that says it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, NoReturn

from pagelift.core import InvalidOutput, Json

BLANKS = " \t\n\r"
Span = tuple[int, int]


def parse_answer(text: str) -> Json:
    """The JSON value that `text` is, apart from white space around it. Raises InvalidOutput with the text.

    Refused besides what is not JSON: names that occur twice, NaN and infinities, numbers beyond the range of double precision,
    halves of surrogate pairs.
    """
    try:
        value = json.loads(text.strip(BLANKS), object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise InvalidOutput(f"the model's answer is not JSON ({error}): {_excerpt(text)}", text) from error
    return value


def value_spans(text: str) -> dict[str, Span]:
    """Where each scalar and each empty array of a JSON text stands in it, [start, end), by JSON Pointer. text: valid JSON."""
    spans: dict[str, Span] = {}
    for pointer, start, end in _walk(text, _skip(text, 0), "")[0]:
        spans[pointer] = (start, end)
    return spans


def confidences(spans: dict[str, Span], pieces: Sequence[tuple[str, float]]) -> dict[str, float]:
    """The probability of each value by the tokens that wrote it, as their geometric mean.

    pieces: the text and the log-probability of each token, in order; together they are the text of the spans.
    """
    ends, total = [], 0
    for piece, _ in pieces:
        total += len(piece)
        ends.append(total)
    found, first = {}, 0
    for pointer, (start, end) in sorted(spans.items(), key=lambda item: item[1]):
        while first < len(ends) and ends[first] <= start:
            first += 1
        last = first
        logprobs = []
        while last < len(ends) and (ends[last - 1] if last else 0) < end:
            logprobs.append(pieces[last][1])
            last += 1
        found[pointer] = math.exp(sum(logprobs) / len(logprobs)) if logprobs else 0.0
    return found


def _walk(text: str, at: int, pointer: str) -> tuple[list[tuple[str, int, int]], int]:
    """Spans of the value at `at`, and where it ends."""
    if text[at] not in "{[":
        end = scanstring(text, at + 1, True)[1] if text[at] == '"' else _end_of_word(text, at)
        return [(pointer, at, end)], end
    spans: list[tuple[str, int, int]] = []
    closing, index, start = "}" if text[at] == "{" else "]", 0, at
    at = _skip(text, at + 1)
    while text[at] != closing:
        step = str(index)
        if closing == "}":
            step, at = scanstring(text, at + 1, True)
            at = _skip(text, _skip(text, at) + 1)  # past the colon
        inner, at = _walk(text, at, f"{pointer}/{step.replace('~', '~0').replace('/', '~1')}")
        spans += inner
        at, index = _skip(text, at), index + 1
        at = _skip(text, at + 1) if text[at] == "," else at
    return spans or ([(pointer, start, at + 1)] if closing == "]" else []), at + 1


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in BLANKS:
        at += 1
    return at


def _end_of_word(text: str, at: int) -> int:
    while at < len(text) and text[at] not in ",]}" + BLANKS:
        at += 1
    return at


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a name occurs twice in an object")
    return values


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON value")


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"{text} is out of range")
    return value


def _excerpt(text: str) -> str:
    return repr(text if len(text) <= 120 else f"{text[:70]} ... {text[-40:]}")
