"""The user's interrupt, which can be held back for a moment and is never lost."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class Interrupts:
    """While it is entered, an interrupt raises KeyboardInterrupt as always, and is remembered as well.

    The exception alone is lost where the interpreter raises it inside a callback. Outside of the main thread it does nothing.
    """

    def __init__(self) -> None:
        self._noted = self._held = self._installed = False

    def __enter__(self) -> Interrupts:
        ours = threading.current_thread() is threading.main_thread()
        if ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._note)
            self._installed = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def check(self) -> None:
        """Raise KeyboardInterrupt if there was an interrupt."""
        if self._noted:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """An interrupt inside is raised at the end; processes that are forked inside do not raise it at all."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        self.check()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._noted = True
        if not self._held:
            signal.default_int_handler(number, frame)
