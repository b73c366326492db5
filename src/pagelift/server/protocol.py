"""uvicorn's HTTP/1.1 protocol with an end to patience: clients that never finish a request's head, or never read the answer, are cut off.

Slow bodies are the middleware's business, which can still answer them.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


def patient(header_seconds: float, stall_seconds: float) -> type[H11Protocol]:
    """The protocol with these limits."""

    class Patient(H11Protocol):
        _head: asyncio.TimerHandle | None = None
        _write: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._head = self.loop.call_later(header_seconds, transport.abort)

        def data_received(self, data: bytes) -> None:
            if self._head is None and self.conn.their_state is h11.IDLE:
                self._head = self.loop.call_later(header_seconds, self.transport.abort)
            super().data_received(data)

        def handle_events(self) -> None:
            super().handle_events()
            if self.conn.their_state is not h11.IDLE and self._head is not None:
                self._head.cancel()
                self._head = None

        def pause_writing(self) -> None:
            super().pause_writing()
            if self._write is None:
                self._write = self.loop.call_later(stall_seconds, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            if self._write is not None:
                self._write.cancel()
                self._write = None

        def connection_lost(self, exc: Exception | None) -> None:
            for timer in (self._head, self._write):
                if timer is not None:
                    timer.cancel()
            self._head = self._write = None
            super().connection_lost(exc)

    return Patient
