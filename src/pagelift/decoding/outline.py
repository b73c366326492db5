"""Where in a JSON text its end stands: which value is being written, and which values are complete. Works byte by byte."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Place = tuple[str | int, ...]
"""Names and array indices from the root to a value."""
Path = tuple[str, ...]
"""The same with "*" for every index, so that the rows of a table share their paths."""
EACH = "*"
Mode = Literal["value", "key", "name", "string", "word", "after"]
"""What comes next. value: the first byte of a value. key: a name or the end of the object. name, string: more of a string, as name or
as value. word: more of a number or literal. after: a comma or an end."""
BLANKS = b" \t\n\r"


@dataclass(frozen=True, slots=True)
class Written:
    """A complete scalar, or an empty object or array. place: names and indices from the root. text: as it was written, quotes included;
    "{}" or "[]" for what is empty."""

    place: Place
    text: str

    @property
    def is_scalar(self) -> bool:
        return self.text not in ("{}", "[]")


def path_of(place: Place) -> Path:
    """The path of a place."""
    return tuple(EACH if isinstance(step, int) else step for step in place)


def row_of(place: Place) -> int:
    """The index in the innermost array around a place, -1 without one."""
    return next((step for step in reversed(place) if isinstance(step, int)), -1)


def _unquoted(name: bytes | bytearray) -> str:
    """A name without its quotes and escapes."""
    text = name.decode(errors="replace")
    try:
        return str(json.loads(text)) if "\\" in text else text[1:-1]
    except ValueError:
        return text[1:-1]


class Outline:
    """The state after the bytes so far. depth of objects and arrays: `frames`, each the name or the index that is being written."""

    def __init__(self) -> None:
        self.mode: Mode = "value"
        self.frames: list[str | int] = []
        self.partial = bytearray()
        self.escaped = False

    @property
    def in_array(self) -> bool:
        """Whether the innermost thing that is open is an array."""
        return bool(self.frames) and isinstance(self.frames[-1], int)

    def copy(self) -> Outline:
        """An independent state with the same past."""
        new = Outline()
        new.mode, new.frames, new.partial, new.escaped = self.mode, self.frames[:], self.partial[:], self.escaped
        return new

    def feed(self, text: bytes) -> Iterator[Written]:
        """Advance. Yields the scalars and empty containers that these bytes complete. Text that is not JSON leaves the state somewhere,
        without an error."""
        for byte in text:
            if self.mode in ("string", "name"):
                yield from self._in_string(byte)
            elif self.mode == "word" and byte not in b",]}" + BLANKS:
                self.partial.append(byte)
            elif self.mode == "word":
                yield self._complete()
                if byte not in BLANKS:
                    yield from self._structure(byte)
            elif byte not in BLANKS:
                yield from self._structure(byte)

    def _in_string(self, byte: int) -> Iterator[Written]:
        self.partial.append(byte)
        if self.escaped:
            self.escaped = False
        elif byte == 0x5C:
            self.escaped = True
        elif byte == 0x22 and self.mode == "string":
            yield self._complete()
        elif byte == 0x22:
            if self.frames:
                self.frames[-1] = _unquoted(self.partial)
            self.partial.clear()
            self.mode = "after"

    def _complete(self) -> Written:
        written = Written(tuple(self.frames), self.partial.decode(errors="replace"))
        self.partial.clear()
        self.mode = "after"
        return written

    def _structure(self, byte: int) -> Iterator[Written]:
        """A byte between scalars."""
        inside = self.frames[-1] if self.frames else None
        if byte in b"]}":
            if self.frames:
                self.frames.pop()
                if (self.mode, inside) in (("key", ""), ("value", 0)):
                    yield Written(tuple(self.frames), "{}" if byte == 0x7D else "[]")
            self.mode = "after"
        elif byte == 0x2C:
            if isinstance(inside, int):
                self.frames[-1] = inside + 1
            self.mode = "value" if isinstance(inside, int) else "key"
        elif byte == 0x3A:
            self.mode = "value"
        elif byte == 0x5B:
            self.frames.append(0)
            self.mode = "value"
        elif byte == 0x7B:
            self.frames.append("")
            self.mode = "key"
        else:
            self.partial.append(byte)
            self.mode = ("name" if self.mode == "key" else "string") if byte == 0x22 else "word"
