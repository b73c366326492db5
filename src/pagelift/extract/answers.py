"""A model's answer as JSON: parsed strictly, and every value with the part of the text that says it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, Final, NoReturn

from pagelift.core import InvalidOutput, Json

BLANKS = " \t\n\r"
DIGITS = 15
"""Every decimal number of so many digits survives in double precision."""
Span = tuple[int, int]
_WHOLE_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.S)


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


def confidences(spans: dict[str, Span], pieces: Sequence[tuple[str, float | None]]) -> dict[str, float]:
    """The probability of each value by the tokens that wrote it, as their geometric mean.

    pieces: the text and the log-probability of each token, in order; together they are the text of the spans. Tokens without one
    (None), which the grammar left no choice about, say nothing; a value of such tokens alone is certain.
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
        written = []
        while last < len(ends) and (ends[last - 1] if last else 0) < end:
            written.append(pieces[last][1])
            last += 1
        known = [logprob for logprob in written if logprob is not None]
        found[pointer] = math.exp(sum(known) / len(known)) if known else float(bool(written))
    return found


Step = str | int
MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class Cut:
    """The beginning of an answer.

    value: of what was complete; MISSING when nothing was. path: property names and numbers of entries that lead to the value which
    was being written, None when the answer was complete after all. spans: of the complete values, see `value_spans`.
    """

    value: Any
    path: tuple[Step, ...] | None
    spans: dict[str, Span] = field(default_factory=dict)


def parse_cut(text: str) -> Cut:
    """What an answer that was cut off had said by then. A scalar that was cut is left out: what there is of it may be wrong.

    Raises InvalidOutput when the text is not the beginning of JSON.
    """
    beginning = _Beginning(text)
    try:
        value, at, path = beginning.value(_skip(text, 0), "")
        if path is None and text[at:].strip(BLANKS):
            raise ValueError(f"more behind the end at character {at}")
        json.dumps(None if value is MISSING else value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise InvalidOutput(f"the model's answer is not JSON ({error}): {_excerpt(text)}", text) from error
    return Cut(value, path, beginning.spans)


Part = tuple[Any, int, tuple[Step, ...] | None]
"""A value as far as it goes, its end, and the path inside it to where the text ends, None when it is complete."""


@dataclass(slots=True)
class _Beginning:
    """Reads JSON that may end anywhere."""

    text: str
    spans: dict[str, Span] = field(default_factory=dict)

    def value(self, at: int, pointer: str) -> Part:
        if at >= len(self.text):
            return MISSING, at, ()
        if self.text[at] == "{":
            return self._object(_skip(self.text, at + 1), pointer)
        if self.text[at] == "[":
            value, end, path = self._array(_skip(self.text, at + 1), pointer)
            if path is None and not value:
                self.spans[pointer] = (at, end)
            return value, end, path
        value, end, path = self._scalar(at)
        if path is None:
            self.spans[pointer] = (at, end)
        return value, end, path

    def _scalar(self, at: int) -> Part:
        text = self.text
        if text[at] == '"':
            if _WHOLE_STRING.match(text, at) is None:
                return MISSING, len(text), ()
            value, end = scanstring(text, at + 1, True)
            return value, end, None
        end = _end_of_word(text, at)
        if end == len(text) and text[at:end] not in ("true", "false", "null"):
            return MISSING, end, ()
        return json.loads(text[at:end], parse_constant=_refuse, parse_float=_finite), end, None

    def _object(self, at: int, pointer: str) -> Part:
        found: dict[str, Any] = {}
        while at < len(self.text) and self.text[at] != "}":
            name, at, path = self._scalar(at)
            if path is not None:
                return found, at, ()
            if not isinstance(name, str) or name in found:
                raise ValueError(f"no new name of a property before character {at}")
            at = _skip(self.text, at)
            if at < len(self.text) and self.text[at] != ":":
                raise ValueError(f"no colon at character {at}")
            value, at, path = self.value(_skip(self.text, at + 1), f"{pointer}/{_escaped(name)}")
            if value is not MISSING:
                found[name] = value
            if path is not None:
                return found, at, (name, *path)
            at = self._past_comma(at, "}")
        return found, at + 1, None if at < len(self.text) else ()

    def _array(self, at: int, pointer: str) -> Part:
        found: list[Any] = []
        while at < len(self.text) and self.text[at] != "]":
            number = len(found)
            value, at, path = self.value(at, f"{pointer}/{number}")
            if value is not MISSING:
                found.append(value)
            if path is not None:
                return found, at, (number, *path)
            at = self._past_comma(at, "]")
        return found, at + 1, None if at < len(self.text) else (len(found),)

    def _past_comma(self, at: int, closing: str) -> int:
        at = _skip(self.text, at)
        if at < len(self.text) and self.text[at] not in "," + closing:
            raise ValueError(f"neither comma nor {closing} at character {at}")
        return _skip(self.text, at + 1) if self.text[at : at + 1] == "," else at


def inexact_numbers(text: str, spans: Mapping[str, Span]) -> dict[str, str]:
    """Numbers with more digits than double precision holds, as they are written, by JSON Pointer."""
    written = {pointer: text[start:end] for pointer, (start, end) in spans.items()}
    long = {pointer: word for pointer, word in written.items() if len(word) > DIGITS and word[0] in "-0123456789"}
    return {pointer: word for pointer, word in long.items() if "." in word and Decimal(word) != Decimal(repr(float(word)))}


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
        inner, at = _walk(text, at, f"{pointer}/{_escaped(step)}")
        spans += inner
        at, index = _skip(text, at), index + 1
        at = _skip(text, at + 1) if text[at] == "," else at
    return spans or ([(pointer, start, at + 1)] if closing == "]" else []), at + 1


def _escaped(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")


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
