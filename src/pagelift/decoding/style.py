"""How the JSON of an answer is laid out, and the limits that a document sets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from pagelift.core import ConfigError, Json

MAX_INDENT = 8


@dataclass(frozen=True, slots=True)
class JsonStyle:
    """Separators between entries and after keys; with `indent`, every entry on a line of its own. There is no other white space.

    A model left free to choose white space can repeat it without end, and one forced to fully compact JSON shortens lists, so the
    default is one line with a space after each separator.

    marks: names of special tokens, one of which stands before each entry of an outermost array and before each scalar outside of arrays:
    where a model that was trained so says which line of the pages it is about to read. They are no part of the answer's text.
    """

    separator: str = ", "
    colon: str = ": "
    indent: int = 0
    marks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.separator.strip(" ") != "," or self.colon.strip(" ") != ":" or not 0 <= self.indent <= MAX_INDENT:
            raise ConfigError(f"{self} is no JSON style; use JsonStyle(), JsonStyle.compact() or JsonStyle.indented(2)")

    @classmethod
    def compact(cls) -> JsonStyle:
        return cls(",", ":")

    @classmethod
    def indented(cls, indent: int = 2) -> JsonStyle:
        return cls(",", ": ", indent)

    def opening(self, level: int) -> str:
        """What stands between an opening bracket at `level` and the first entry."""
        return "\n" + " " * (self.indent * (level + 1)) if self.indent else ""

    def between(self, level: int) -> str:
        return self.separator + self.opening(level)

    def closing(self, level: int) -> str:
        """What stands between the last entry and the closing bracket."""
        return "\n" + " " * (self.indent * level) if self.indent else ""

    def write(self, value: Json, level: int = 0) -> str:
        """`value` in this style, at a nesting of `level`."""
        separators = (self.separator, self.colon)
        text = json.dumps(value, ensure_ascii=False, separators=separators, indent=self.indent or None)
        return text.replace("\n", "\n" + " " * (self.indent * level)) if self.indent else text


@dataclass(frozen=True, slots=True)
class GrammarLimits:
    """What one document can give at most; None where nothing is known.

    max_rows: entries of one array, and keys of one object without fixed properties (no more than words on the pages).
    max_characters: characters of one string (no more than on the pages). max_repeats: how often in a row the same phrase may
    come in a string before the grammar closes it; the same row of an array may come twice as often. max_depth: containers inside one
    another. printed: how often each word stands on the pages, as `pages.bare` gives it; a row that says what is printed may come
    `guards.SPARE_REPEATS` times more often. lines: the marks of all lines of the pages, of `JsonStyle.marks`, in their order; further
    down a mark may come again.
    A limit narrows the choice only where the grammar has another way on.
    """

    max_rows: int | None = None
    max_characters: int | None = None
    max_repeats: int = 12
    max_depth: int = 64
    lines: tuple[str, ...] = ()
    printed: Mapping[str, int] = field(default_factory=dict, hash=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("max_rows", "max_characters", "max_repeats", "max_depth"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name} is {value}; it must be at least 1")
