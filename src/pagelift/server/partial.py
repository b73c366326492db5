"""The values of a JSON text that is still being written, each as soon as it is complete."""

from __future__ import annotations

import json

from pagelift.core import Json
from pagelift.decoding.outline import Outline
from pagelift.schema.keywords import join


class PartialJson:
    """Takes a JSON text in pieces of any size, gives scalars and empty containers with their JSON Pointers (RFC 6901).

    A text that turns out not to be JSON gives no more values; whether the whole is valid is for others to check.
    """

    def __init__(self) -> None:
        self._outline = Outline()
        self._broken = False

    def put(self, text: str) -> list[tuple[str, Json]]:
        """The values that `text` completes, in order."""
        found: list[tuple[str, Json]] = []
        for written in self._outline.feed(text.encode()) if not self._broken else ():
            try:
                found.append((join("", *written.place), json.loads(written.text)))
            except ValueError:
                self._broken = True
                break
        return found
