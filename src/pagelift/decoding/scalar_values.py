"""Strings, numbers and fixed values: from the keywords of a flat schema to expressions of a grammar."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal

import llguidance

from pagelift.core import Json
from pagelift.decoding.format_patterns import FORMAT_PATTERNS
from pagelift.decoding.number_patterns import NumberRange, number_patterns
from pagelift.decoding.values import ByGuidance, Fixed, Pattern, Scalar
from pagelift.schema import keywords as kw
from pagelift.schema.shaping import Leaves
from pagelift.schema.view import Flat, same

MAX_COUNTED = 20_000
"""Longer limits of strings are checked at the end; the document's own limit is far below."""

CHARACTER = r"""([^"\\\x00-\x1F\x7F]|\\["\\nt])"""
"""One character of a string: unescaped Unicode, no control characters but escaped line breaks and tabs."""

GUIDANCE_FORMATS = frozenset(("ipv6",))
_OPTIONS = {"whitespace_flexible": False, "json_allowed_escapes": 'nt"\\'}


def string_values(way: Flat) -> Iterator[Scalar]:
    """The strings that a flat schema admits, or more of them where its pattern or format cannot be put into a grammar."""
    parts = [way, *(part for part in way.get("allOf", ()) if isinstance(part, dict))]
    least = max((int(part["minLength"]) for part in parts if "minLength" in part), default=0)
    most = min((int(part["maxLength"]) for part in parts if "maxLength" in part), default=None)
    if most is not None and most < least:
        return
    patterns = tuple(dict.fromkeys(p for part in parts if "pattern" in part for p in without_lookahead(part["pattern"])))
    formats = [part["format"] for part in parts if "format" in part]
    known = [f'"{FORMAT_PATTERNS[name]}"' for name in formats if name in FORMAT_PATTERNS]
    if known and not patterns:
        counted = plain_string(least, most).patterns if least or most is not None else ()
        yield Pattern((*dict.fromkeys(known), *counted))
        return
    format_name = next((name for name in formats if name in GUIDANCE_FORMATS), None)
    for given in _guided(patterns, format_name, least, most):
        if usable(given):
            yield ByGuidance(given)
            return
    yield plain_string(least, most)


def plain_string(least: int = 0, most: int | None = None) -> Pattern:
    """A string of `least` to `most` characters."""
    end = "" if most is None or most > MAX_COUNTED else str(most)
    least = min(least, MAX_COUNTED)
    count = "*" if (least, end) == (0, "") else f"{{{least},{end}}}"
    return Pattern((f'"{CHARACTER}{count}"',))


_STEP = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|.", re.DOTALL)


def without_lookahead(pattern: str) -> list[str]:
    """Patterns that a text matches if it matches `pattern`: what that looks ahead to at its beginning, and what follows.

    Lookahead that forbids is left out, so together they may admit more. Other patterns come back as they are.
    """
    if not pattern.startswith("^(?") or _split_at(pattern, "|") < len(pattern):
        return [pattern]
    parts, rest = [], pattern[1:]
    while rest.startswith(("(?=", "(?!")):
        end = 3 + _split_at(rest[3:], ")")
        parts += [f"^(?:{rest[3:end]})"] if rest[2] == "=" else []
        rest = rest[end + 1 :]
    return [*parts, f"^{rest}"]


def _split_at(pattern: str, sign: str) -> int:
    """Where `sign` stands outside of groups and classes, the length of the pattern when it does not."""
    depth = 0
    for match in _STEP.finditer(pattern):
        if depth == 0 and match[0] == sign:
            return match.start()
        depth += (match[0] == "(") - (match[0] == ")")
    return len(pattern)


def _guided(patterns: tuple[str, ...], format_name: str | None, least: int, most: int | None) -> Iterator[str]:
    """Schemas to try, the most precise first."""
    if not patterns and format_name is None:
        return
    lengths: dict[str, Json] = ({"minLength": least} if least else {}) | ({"maxLength": most} if most is not None else {})
    base: dict[str, Json] = {"type": "string", "x-guidance": _OPTIONS}
    shaped: dict[str, Json] = {"pattern": patterns[0]} if patterns else {}
    shaped |= {"allOf": [{"pattern": p} for p in patterns[1:]]} if len(patterns) > 1 else {}
    named: dict[str, Json] = {"format": format_name} if format_name is not None else {}
    for keywords in ({**shaped, **named, **lengths}, {**shaped, **lengths}, {**named, **lengths}, shaped, named):
        if keywords and (keywords.keys() & {"pattern", "format"}):
            yield json.dumps(base | keywords, ensure_ascii=False)


@functools.lru_cache(maxsize=4096)
def usable(schema: str) -> bool:
    """Whether llguidance makes a grammar of a schema of one string."""
    grammar = llguidance.LLMatcher.grammar_from_lark(f"start: %json {schema}\n")
    return not llguidance.LLMatcher.validate_grammar(grammar)


def number_values(way: Flat, whole: bool) -> Iterator[Scalar]:
    """The numbers that a flat schema admits, or more where a step does not show in the digits."""
    parts = [way, *(part for part in way.get("allOf", ()) if isinstance(part, dict))]
    bounds = NumberRange()
    for part in parts:
        bounds = _tightened(bounds, part)
    steps = [Decimal(str(part["multipleOf"])) for part in parts if "multipleOf" in part]
    found = number_patterns(bounds, whole, steps[0] if steps else None)
    if found is not None:
        yield Pattern(tuple(found))


def _tightened(bounds: NumberRange, part: Flat) -> NumberRange:
    """`bounds` with those of one set of keywords; draft 4 writes a flag beside the bound."""
    lows, highs = [(bounds.low, bounds.low_open)], [(bounds.high, bounds.high_open)]
    for key, flag, ends in (("minimum", "exclusiveMinimum", lows), ("maximum", "exclusiveMaximum", highs)):
        if key in part:
            ends.append((Decimal(str(part[key])), part.get(flag) is True))
        if flag in part and not isinstance(part[flag], bool):
            ends.append((Decimal(str(part[flag])), True))
    low = max((end for end in lows if end[0] is not None), default=(None, False))
    high = min(((v, not is_open) for v, is_open in highs if v is not None), default=(None, True))
    return NumberRange(low[0], high[0], low[1], not high[1])


def excluding(option: Scalar, values: Sequence[Json]) -> Scalar:
    """The same scalars without `values`; a string whose pattern is left to llguidance stays as it is."""
    if isinstance(option, Fixed):
        return Fixed(tuple(v for v in option.values if not any(same(v, other) for other in values)))
    if isinstance(option, Pattern):
        return Pattern(option.patterns, (*option.without, *(_exactly(v) for v in values if isinstance(v, str | int | float))))
    return option


def _exactly(value: str | float) -> str:
    """An expression of the ways in which a grammar writes this value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return re.escape(json.dumps(value, ensure_ascii=False))
    whole, _, fraction = format(Decimal(repr(value)), "f").partition(".")
    fraction = fraction.rstrip("0")
    return re.escape(f"{whole}.{fraction}") + "0*" if fraction else rf"{re.escape(whole)}(\.0+)?"


def fixed_values(way: Flat, types: frozenset[str], leaves: Leaves) -> Fixed | None:
    """The values of `const` or `enum` that the rest of the keywords admits, None when there is neither."""
    if "const" not in way and "enum" not in way:
        return None
    validator = leaves.scalar(way)
    given = [way["const"]] if "const" in way else way["enum"]
    kept = []
    for value in given:
        kind = kw.type_of(value)
        admitted = kind in types or (kind == "integer" and "number" in types)
        if admitted and (isinstance(value, dict | list) or validator.is_valid(value)):
            kept.append(value)
    return Fixed(tuple(kept))
