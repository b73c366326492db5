"""A model's answer as JSON: parsed strictly, and every value with the part of the text that says it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NoReturn

from pagelift.core import InvalidOutput, Json
from pagelift.decoding import parse_partial

BLANKS = " \t\n\r"
UNKNOWN = 0.5
"""The confidence where nothing tells how sure a model was."""
STARTS = '{["-0123456789tfn'
"""What JSON begins with."""
DIGITS = 15
"""Every decimal number of so many digits survives in double precision."""
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
    """Where each complete scalar and each empty array of a JSON text, or of its beginning, stands in it: [start, end), by JSON Pointer."""
    return _leaf_spans(text, parse_partial(text).spans)


def _leaf_spans(text: str, spans: Mapping[str, Span]) -> dict[str, Span]:
    """Those of scalars and empty arrays."""
    return {
        pointer: (start, end)
        for pointer, (start, end) in spans.items()
        if text[start] not in "[{" or (text[start] == "[" and f"{pointer}/0" not in spans)
    }


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


@dataclass(frozen=True, slots=True)
class Cut:
    """An answer as far as it goes.

    value: of what was complete, None when nothing was. path: property names and numbers of entries that lead to what was being
    written, None when the answer is complete. spans: of the complete values, see `value_spans`.
    """

    value: Json
    path: tuple[Step, ...] | None
    spans: dict[str, Span] = field(default_factory=dict)


def parse_cut(text: str) -> Cut:
    """What an answer that was cut off had said by then. A scalar that was cut is left out: what there is of it may be wrong.

    Raises InvalidOutput when the text is not the beginning of JSON.
    """
    partial = parse_partial(text)
    if text.strip(BLANKS)[:1] not in STARTS:
        raise InvalidOutput(f"the model's answer was cut off and is not the beginning of JSON: {_excerpt(text)}", text)
    spans = _leaf_spans(text, partial.spans)
    if partial.complete:
        digits_may_follow = isinstance(partial.data, int | float) and not isinstance(partial.data, bool)
        return Cut(None, ()) if digits_may_follow else Cut(partial.data, None, spans)
    steps: list[Step] = []
    here, pointer = partial.data, partial.unfinished or (partial.open[-1] if partial.open else "")
    for step in pointer.split("/")[1:]:
        if isinstance(here, list):
            steps.append(int(step))
            here = here[int(step)] if int(step) < len(here) else None
        else:
            steps.append(step.replace("~1", "/").replace("~0", "~"))
            here = here.get(steps[-1]) if isinstance(here, dict) else None
    if partial.unfinished is None and isinstance(here, list):
        steps.append(len(here))  # cut between entries
    return Cut(partial.data, tuple(steps), spans)


def inexact_numbers(text: str, spans: Mapping[str, Span]) -> dict[str, str]:
    """Numbers with more digits than double precision holds, as they are written, by JSON Pointer."""
    written = {pointer: text[start:end] for pointer, (start, end) in spans.items()}
    long = {pointer: word for pointer, word in written.items() if len(word) > DIGITS and word[0] in "-0123456789"}
    return {pointer: word for pointer, word in long.items() if "." in word and Decimal(word) != Decimal(repr(float(word)))}


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
