"""The values of a JSON text that is still being written, each as soon as it is complete."""

from __future__ import annotations

import json
from typing import Any

from pagelift.core import Json

BLANKS = " \t\n\r"


class PartialJson:
    """Takes a JSON text in pieces of any size, gives scalars and empty containers with their JSON Pointers (RFC 6901).

    A text that turns out not to be JSON gives no more values; whether the whole is valid is for others to check.
    """

    def __init__(self) -> None:
        self._path: list[list[Any]] = []  # per open container: its kind, its key or index, whether it has entries
        self._token = ""  # a string, number or word that has begun
        self._in_string = self._escaped = False
        self._is_key = False
        self._broken = False

    def put(self, text: str) -> list[tuple[str, Json]]:
        """The values that `text` completes, in order."""
        found: list[tuple[str, Json]] = []
        for char in text:
            if self._broken:
                break
            try:
                self._step(char, found)
            except (ValueError, IndexError):
                self._broken = True
        return found

    def _step(self, char: str, found: list[tuple[str, Json]]) -> None:
        if self._in_string:
            self._token += char
            if self._escaped:
                self._escaped = False
            elif char == "\\":
                self._escaped = True
            elif char == '"':
                self._in_string = False
                self._end_of_string(found)
            return
        if self._token and (char in ",]}" or char in BLANKS):
            self._give(json.loads(self._token), found)
            self._token = ""
        if char == '"':
            self._is_key = bool(self._path) and self._path[-1][0] == "{" and self._path[-1][1] is None
            self._in_string, self._token = True, char
        elif char in "{[":
            self._open(char)
        elif char in "}]":
            kind, _, has_entries = self._path.pop()
            if not has_entries:
                self._give({} if kind == "{" else [], found)
        elif char == ",":
            self._next_entry()
        elif char not in BLANKS and char != ":":
            self._token += char

    def _open(self, kind: str) -> None:
        if self._path:
            self._path[-1][2] = True
        self._path.append([kind, None if kind == "{" else 0, False])

    def _next_entry(self) -> None:
        top = self._path[-1]
        top[1] = None if top[0] == "{" else top[1] + 1

    def _end_of_string(self, found: list[tuple[str, Json]]) -> None:
        value = json.loads(self._token)
        self._token = ""
        if self._is_key:
            self._path[-1][1] = value
            self._path[-1][2] = True
        else:
            self._give(value, found)

    def _give(self, value: Json, found: list[tuple[str, Json]]) -> None:
        if self._path:
            self._path[-1][2] = True
        pointer = "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for _, step, _ in self._path)
        found.append((pointer, value))
