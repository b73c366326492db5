"""Replies that go out piece by piece, with a proper status when they fail before the first piece."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

from starlette.responses import Response

from pagelift.server.errors import ApiError, Cancelled, to_api_error
from pagelift.server.logs import failure
from pagelift.server.service import Service
from pagelift.server.work import Signal

Make = Callable[[Signal], AsyncIterator[bytes]]


class Streamed(Response):
    """Sends what `make` yields for the signal of the request. on_error: the last piece after an error in the middle."""

    def __init__(self, service: Service, make: Make, media_type: str, on_error: Callable[[ApiError], bytes]) -> None:
        super().__init__(media_type=media_type, headers={"cache-control": "no-store", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._service = service
        self._make = make
        self._on_error = on_error

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None:
        async with self._service.watched(receive) as signal:
            pieces = self._make(signal)
            try:
                first = await anext(pieces)
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                await send({"type": "http.response.body", "body": first, "more_body": True})
                last = await self._rest(pieces, send, scope["state"]["id"])
            finally:
                signal.set(Cancelled("the request is over"))
                await pieces.aclose()  # type: ignore[attr-defined]
            await send({"type": "http.response.body", "body": last, "more_body": False})

    async def _rest(
        self, pieces: AsyncIterator[bytes], send: Callable[[MutableMapping[str, Any]], Awaitable[None]], request_id: str
    ) -> bytes:
        """Send all pieces; what is left to say after an error."""
        try:
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        except Exception as error:  # noqa: BLE001  the boundary of a request whose status is out already
            answer = to_api_error(error)
            if answer.status == 500:
                failure("stream failed", error, request=request_id)
            return self._on_error(answer)
        return b""
