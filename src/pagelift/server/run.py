"""Running the application: listening, TLS, and the end: finish what is in progress, take nothing new."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from types import FrameType
from typing import Any

import uvicorn

from pagelift.server.app import create_app
from pagelift.server.logs import event
from pagelift.server.protocol import patient
from pagelift.server.service import Service
from pagelift.server.settings import Address

IDLE_SECONDS = 15
HEAD_BYTES = 64 * 1024


class Server(uvicorn.Server):
    """Stops in two steps: until all requests are done, or for drain_seconds, it still tells that it is not ready; then it ends."""

    def __init__(self, service: Service, address: Address) -> None:
        self._service = service
        self._address = address
        self._drain: asyncio.Task[None] | None = None
        limits = service.settings.limits
        super().__init__(
            uvicorn.Config(
                create_app(service),
                host=address.host,
                port=address.port,
                http=patient(limits.header_seconds, limits.stall_seconds),
                ws="none",
                loop="asyncio",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_keep_alive=IDLE_SECONDS,
                timeout_graceful_shutdown=2,
                h11_max_incomplete_event_size=HEAD_BYTES,
                ssl_certfile=str(address.certificate) if address.certificate else None,
                ssl_keyfile=str(address.key) if address.key else None,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            if not self._address.local and not self._service.settings.access.api_keys:
                event("others can connect, and no API key is asked for", logging.WARNING)
            event("listening", address=", ".join(self.addresses), models=list(self._service.catalog.models))

    @property
    def addresses(self) -> list[str]:
        """Where the server can be reached."""
        names = [listening.getsockname() for server in self.servers for listening in server.sockets]
        scheme = "https" if self.config.is_ssl else "http"
        return [f"{scheme}://[{name[0]}]:{name[1]}" if ":" in name[0] else f"{scheme}://{name[0]}:{name[1]}" for name in names]

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """The first signal drains, the second ends at once."""
        if self._service.draining:
            self._service.stop()
            self.should_exit = True
            self.force_exit = True
            return
        self._service.draining = True
        event("draining", in_progress=len(self._service.signals), signal=signal.Signals(sig).name)

    async def on_tick(self, counter: int) -> bool:
        if self._service.draining and self._drain is None:
            self._drain = asyncio.create_task(self._finish())
        return await super().on_tick(counter)

    async def _finish(self) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._service.settings.limits.drain_seconds
        while self._service.busy and loop.time() < deadline:
            await asyncio.sleep(0.05)
        if self._service.busy:
            event("giving up", in_progress=len(self._service.signals))
        self._service.stop()
        self.should_exit = True


def serve(service: Service, address: Address) -> int:
    """Listen until the process is told to stop. Returns 0, or 1 when it cannot listen."""
    server = Server(service, address)
    options: dict[str, Any] = {}
    try:
        server.run(**options)
    except SystemExit:  # uvicorn's way to say that the address is in use
        return 1
    return 0 if server.started else 1
