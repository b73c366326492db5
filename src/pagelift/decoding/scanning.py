"""Where in a JSON text an answer stands, token by token, so that a guard can see lists and strings grow."""

from __future__ import annotations

from dataclasses import dataclass, replace

_STRUCTURE = frozenset(b'"{}[],:')
KEPT_ENTRIES = 256
"""Entries of an array that are remembered, to see rows repeat."""


@dataclass(frozen=True, slots=True)
class Container:
    """An open object or array. start: byte where the last entry begins. before: where the one before it does, with the comma after it.
    commas: entries before the last. recent: their hashes.

    rows: whether there are containers among the entries. keys: those of an object, as JSON text without quotes. lines: of the pages, on
    which the entries of an array begin, as far as the answer says it.
    """

    is_object: bool
    start: int
    before: int = 0
    commas: int = 0
    recent: tuple[int, ...] = ()
    rows: bool = False
    keys: tuple[bytes, ...] = ()
    lines: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a JSON text. stack: open containers, outermost first. length: bytes before it.

    string: byte after the opening quote of the string that is open, -1 outside. characters: of that string. escaped: after a
    backslash. key: the open string, or the next one, is a key.
    """

    stack: tuple[Container, ...] = ()
    length: int = 0
    string: int = -1
    characters: int = 0
    escaped: bool = False
    key: bool = False

    def on_line(self, line: int) -> Position:
        """The same place, where it is known on which line an entry of the innermost array begins."""
        top = self.stack[-1]
        return replace(self, stack=(*self.stack[:-1], replace(top, lines=(*top.lines, line))))


def advance(position: Position, text: bytearray, added: bytes) -> Position:
    """The position after `added`, which stands in `text` already. Text that is no JSON gives some position, never an error."""
    if position.string >= 0 and not position.escaped and b'"' not in added and b"\\" not in added:
        count = position.characters + sum(byte & 0xC0 != 0x80 for byte in added)
        return replace(position, length=position.length + len(added), characters=count)
    scan = _Scan(position, text)
    for byte in added:
        scan.step(byte)
    return scan.position()


class _Scan:
    """A position that is being changed byte by byte."""

    def __init__(self, position: Position, text: bytearray) -> None:
        self.text = text
        self.stack = list(position.stack)
        self.at = position.length
        self.string, self.characters, self.escaped, self.key = position.string, position.characters, position.escaped, position.key

    def position(self) -> Position:
        return Position(tuple(self.stack), self.at, self.string, self.characters, self.escaped, self.key)

    def step(self, byte: int) -> None:
        self.at += 1
        if self.string >= 0:
            self._inside(byte)
        elif byte in _STRUCTURE:
            self._structure(chr(byte))

    def _inside(self, byte: int) -> None:
        """One byte of a string."""
        if self.escaped:
            self.escaped = False
            self.characters += 1
        elif byte == ord("\\"):
            self.escaped = True
        elif byte == ord('"'):
            if self.key and self.stack:
                top = self.stack[-1]
                self.stack[-1] = replace(top, keys=(*top.keys, bytes(self.text[self.string : self.at - 1])))
            self.string = -1
        else:
            self.characters += byte & 0xC0 != 0x80

    def _structure(self, sign: str) -> None:
        if sign == '"':
            self.string, self.characters = self.at, 0
        elif sign in "{[":
            if self.stack:
                self.stack[-1] = replace(self.stack[-1], rows=True)
            self.stack.append(Container(sign == "{", self.at))
            self.key = sign == "{"
        elif sign in "}]":
            if self.stack:
                self.stack.pop()
            self.key = False
        elif sign == "," and self.stack:
            top = self.stack[-1]
            recent = () if top.is_object else (*top.recent, hash(bytes(self.text[top.start : self.at - 1]).strip()))[-KEPT_ENTRIES:]
            self.stack[-1] = replace(top, start=self.at, before=top.start, commas=top.commas + 1, recent=recent)
            self.key = top.is_object
        elif sign == ":":
            self.key = False
