"""The values of an answer that is still being written, told one by one under the pointers that they will have in the result."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pagelift.core import Json
from pagelift.decoding.outline import Outline, Place
from pagelift.extract.questions import Question
from pagelift.schema.keywords import join


@dataclass(frozen=True, slots=True)
class Told:
    """A scalar or an empty container that a model has written; it stands in the place of one told before under the same pointer.

    pointer: JSON Pointer (RFC 6901). pages: the first and the last page of a part of a document, within whose answers lists are counted;
    None when all pages were asked about together.
    """

    pointer: str
    value: Json
    pages: tuple[int, int] | None = None


Tell = Callable[[Told], None]


class Teller:
    """Tells the values of the answer to one question.

    A text that turns out not to be JSON gives no more values; whether the whole is valid is for others to check.
    """

    def __init__(self, tell: Tell, question: Question) -> None:
        self._tell = tell
        self._offsets = question.offsets
        self._pages = (question.pages[0].number, question.pages[-1].number) if question.page_count is not None else None
        self._outline = Outline()
        self._told: dict[Place, Json] = {}
        self._broken = False

    def put(self, text: str) -> None:
        """Tell the values that the next piece of the answer completes, in order."""
        for place, value in self._values(self._outline, text):
            self._told[place] = value
            self._tell(Told(join("", *self._moved(place)), value, self._pages))

    def settle(self, text: str) -> None:
        """Tell what is different in the answer as it has become: values that were generated again or left out."""
        before, self._told = self._told, {}
        for place, value in self._values(Outline(), text):
            self._told[place] = value
            if place not in before or not _same(before[place], value):
                self._tell(Told(join("", *self._moved(place)), value, self._pages))

    def _values(self, outline: Outline, text: str) -> Iterator[tuple[Place, Json]]:
        for written in outline.feed(text.encode()) if not self._broken else ():
            try:
                value = json.loads(written.text)
            except ValueError:
                self._broken = True
                return
            yield written.place, value

    def _moved(self, place: Place) -> Place:
        """Entries of a list that is continued are counted from those that are known already."""
        for depth, step in enumerate(place):
            offset = self._offsets.get(join("", *place[:depth])) if isinstance(step, int) else None
            if offset is not None:
                return (*place[:depth], int(step) + offset, *place[depth + 1 :])
        return place


def _same(one: Json, other: Json) -> bool:
    return type(one) is type(other) and bool(one == other)
