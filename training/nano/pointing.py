"""Where on the page each token of a value stands.

A head of the model is taught to attend there, which makes copying learnable in thousands of pages instead of millions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pagelift.core import Json

Tokens = npt.NDArray[np.int32]
_REACH = 8
"""So many tokens of the print may be skipped between two that are copied."""
_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_NUMBER = re.compile(r"\d+")


class Target(NamedTuple):
    """A value and how it is printed. tokens: of the prompt that show it, in reading order; none if it is not printed. digits: among them.
    space: the id of a space."""

    value: Json
    raw: str
    tokens: list[int]
    digits: list[int]
    space: int


def point(tokens: Tokens, span: tuple[int, int], target: Target, page_mark: int) -> Tokens:
    """The sources of the tokens from span[0] to span[1], the one after the value included; -1 for none.

    tokens: of the whole sequence. page_mark: the token that stands for "not on the page".
    """
    first, last = span
    sources = np.full(last - first + 1, -1, np.int32)
    if not target.tokens:
        sources[0] = page_mark
        return sources
    sources[0] = target.tokens[0]
    text = isinstance(target.value, str)
    if isinstance(target.value, bool) or (target.value is None):
        return sources
    date = _ISO.fullmatch(target.value) if isinstance(target.value, str) else None
    if date:
        sources[1:-2] = _date(target, date)
        sources[0] = sources[1] if sources[1] >= 0 else sources[0]
        return sources
    inner = range(first + text, last - text)
    copied = _copy(tokens, [int(tokens[i]) for i in inner], target)
    for offset, source in enumerate(copied):
        sources[offset + text] = source
    found = [source for source in copied if source >= 0]
    if not found:
        return sources
    sources[0] = found[0]
    sources[last - first - text] = found[-1] + 1
    return sources


def _copy(tokens: Tokens, wanted: Sequence[int], target: Target) -> list[int]:
    """For each wanted token the next shown one that is equal, -1 if there is none within reach; spaces must follow at once."""
    found = []
    at = 0
    shown = target.tokens
    for token in wanted:
        reach = 1 if token == target.space else _REACH
        place = next((k for k in range(at, min(len(shown), at + reach)) if tokens[shown[k]] == token), None)
        found.append(-1 if place is None else shown[place])
        at = at if place is None else place + 1
    return found


def _date(target: Target, date: re.Match[str]) -> list[int]:
    """The sources of the ten tokens of an ISO date: of its digits where they are printed as digits."""
    groups = _NUMBER.findall(target.raw)
    if sum(map(len, groups)) != len(target.digits):
        return [-1] * 10
    runs, at = [], 0
    for group in groups:
        runs.append((group, target.digits[at : at + len(group)]))
        at += len(group)
    year, month, day = date.groups()
    places: dict[str, list[int]] = {}
    for name, value in (("year", year), ("day", day), ("month", month)):
        accepted = (value, value[2:]) if name == "year" else (value, value.lstrip("0"))
        run = next((run for run in runs if run[0] in accepted and run[1] not in places.values()), None)
        if run is not None:
            places[name] = run[1]
    found: list[int] = []
    for name, width in (("year", 4), ("month", 2), ("day", 2)):
        run_tokens = places.get(name, [])
        found += [-1] * bool(found) + [-1] * (width - len(run_tokens)) + run_tokens
    return found
