"""Regular expressions of other dialects (Python, Java, PCRE) as the ECMA-262 patterns that JSON Schema asks for."""

from __future__ import annotations

import functools
import re

import jsonschema_rs

_TOKEN = re.compile(r"\\.|\(\?P<|\(\?P=(\w+)\)|.", re.DOTALL)
_FLAGS = re.compile(r"(\^?)\(\?([ims]+)\)")
_OUTSIDE_CLASS = {"\\A": "^", "\\Z": "$", "\\z": "$", "(?P<": "(?<", "\\h": "[ \\t]"}
_POSIX = {"alpha": "a-zA-Z", "digit": "0-9", "alnum": "a-zA-Z0-9", "upper": "A-Z", "lower": "a-z", "space": "\\s", "xdigit": "0-9a-fA-F"}
_POSIX_CLASS = re.compile(r"\[:(" + "|".join(_POSIX) + r"):\]")
BACKTRACK_LIMIT = 100_000


@functools.lru_cache(maxsize=4096)
def pattern_fault(pattern: str) -> str:
    """Why `pattern` cannot be used, "" when it can."""
    options = jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACK_LIMIT)
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=options)
    except (jsonschema_rs.ValidationError, ValueError) as error:
        return str(getattr(error, "message", error))
    return ""


@functools.lru_cache(maxsize=4096)
def ecma_pattern(pattern: str) -> str:
    """`pattern` as it is when it compiles, else with the constructs of other dialects replaced by their ECMA-262 equals."""
    if not pattern_fault(pattern):
        return pattern
    text = _POSIX_CLASS.sub(lambda m: _POSIX[m[1]], pattern)
    flags = _FLAGS.match(text)
    if flags:
        text = f"{flags[1]}(?{flags[2]}:{text[flags.end() :]})"
    out: list[str] = []
    in_class = False
    for match in _TOKEN.finditer(text):
        token = match[0]
        if in_class:
            in_class = token != "]"
            if token == "-" and _beside_class(text, match.start()):
                token = "\\-"
        elif match[1]:
            token = f"\\k<{match[1]}>"
        else:
            in_class = token == "["
            token = _OUTSIDE_CLASS.get(token, token)
        out.append(token)
    changed = "".join(out)
    return pattern if pattern_fault(changed) else changed


def _beside_class(pattern: str, at: int) -> bool:
    r"""Whether the hyphen at `at` stands beside an escape such as \w, where it cannot mean a range."""
    return re.search(r"\\[wWdDsS]$", pattern[:at]) is not None or re.match(r"\\[wWdDsS]", pattern[at + 1 :]) is not None
