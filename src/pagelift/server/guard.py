"""What stands before every request: who may come in, how large and how slow a body may be, the log line, the counts."""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse

from pagelift.server.errors import ApiError, to_api_error
from pagelift.server.logs import event, failure
from pagelift.server.service import Service

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

OPEN = ("/health", "/ready")
"""Paths without a key, for those who only ask whether the server lives."""
ALWAYS = (*OPEN, "/metrics")
"""Paths that are answered while the server shuts down."""


class Guard:
    """An ASGI application around another one."""

    def __init__(self, app: App, service: Service) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        visit = _Visit(self._service, scope, receive, send)
        metrics = self._service.metrics
        metrics.in_progress.inc()
        try:
            self._admit(scope, Headers(scope=scope))
            await self._app(scope, visit.receive, visit.send)
        except Exception as error:  # noqa: BLE001  the boundary of a request
            await visit.fail(error)
        finally:
            metrics.in_progress.dec()
            visit.release()
            visit.report()

    def _admit(self, scope: MutableMapping[str, Any], headers: Headers) -> None:
        access, path = self._service.settings.access, scope["path"]
        _check_host(headers, access.hosts)
        _check_origin(headers, access.cors_origins)
        if access.api_keys and path not in OPEN and scope["method"] != "OPTIONS":
            scope["pagelift.owner"] = _check_key(headers, access.api_keys)
        if self._service.draining and path not in ALWAYS:
            raise ApiError(503, "the server is shutting down; try again", code="shutting_down", headers={"retry-after": "5"})
        length = headers.get("content-length", "")
        if length.isdigit():
            self._service.check_body(int(length))


class _Visit:
    """One request on its way in and out."""

    def __init__(self, service: Service, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        self._service = service
        self._scope = scope
        self._receive = receive
        self._send = send
        self._start = time.perf_counter()
        self._status = 0
        self._bytes_in = self._bytes_out = self._held = 0
        self._body_read = False
        self._over = False
        self.id = "req_" + secrets.token_hex(12)
        scope.setdefault("state", {})["log"] = {}
        scope["state"]["id"] = self.id

    async def receive(self) -> Message:
        """The next part of the body, which is counted, and for which a client has stall_seconds. Raises ApiError 408, 413 or 429."""
        if self._body_read:
            return await self._receive()
        try:
            message = await asyncio.wait_for(self._receive(), self._service.settings.limits.stall_seconds)
        except TimeoutError:
            raise ApiError(408, "the body of the request came too slowly; send it again", code="too_slow") from None
        size = len(message.get("body", b""))
        self._bytes_in += size
        self._body_read = not message.get("more_body", False)
        self._service.check_body(self._bytes_in)
        self._held += size
        self._service.hold(size)
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            message["headers"] = [*message.get("headers", ()), (b"x-request-id", self.id.encode())]
            if not self._body_read and self._status in (401, 403, 408, 413, 429):
                message["headers"].append((b"connection", b"close"))  # what is left of the body is not wanted
        elif message["type"] == "http.response.body":
            self._bytes_out += len(message.get("body", b""))
            self._over = not message.get("more_body", False)
        await self._send(message)

    async def fail(self, error: Exception) -> None:
        answer = to_api_error(error)
        if answer.status == 500:
            failure("request failed", error, request=self.id)
        if self._status == 0:
            response = JSONResponse(answer.body, answer.status, answer.headers)
            await response(self._scope, self._receive, self.send)

    def release(self) -> None:
        """The request is over: what it held of the memory is free."""
        self._service.hold(-self._held)

    def report(self) -> None:
        """One line for the log, and the counts."""
        route = getattr(self._scope.get("route"), "path", None) or (self._scope["path"] if self._scope["path"] in ALWAYS else "other")
        seconds = time.perf_counter() - self._start
        self._service.metrics.requests.labels(route, str(self._status)).inc()
        self._service.metrics.seconds.labels(route).observe(seconds)
        level = logging.DEBUG if route in ALWAYS else logging.INFO
        facts = {"request": self.id, "method": self._scope["method"], "route": route, "status": self._status, "seconds": round(seconds, 4)}
        facts |= {"bytes_in": self._bytes_in, "bytes_out": self._bytes_out, "complete": self._over}
        event("request", level, **facts, **self._scope["state"]["log"])


def _check_host(headers: Headers, hosts: tuple[str, ...]) -> None:
    """Browsers can be led to reach a local server under a foreign name (DNS rebinding); the name then stands in Host."""
    if hosts and (urlsplit("//" + headers.get("host", "")).hostname or "") not in hosts:
        raise ApiError(403, "the Host header names a host that this server does not answer for; see --allow-host", code="wrong_host")


def _check_origin(headers: Headers, allowed: tuple[str, ...]) -> None:
    """Web pages of other hosts may not even send forms here."""
    origin = headers.get("origin")
    if origin is None or origin in allowed or "*" in allowed:
        return
    if urlsplit(origin).netloc != headers.get("host"):
        raise ApiError(403, "requests from web pages of other hosts are not allowed; see --cors-origin", code="wrong_origin")


def _check_key(headers: Headers, keys: tuple[str, ...]) -> str:
    """A name for the holder of the key that was given. Every key is compared in full, so that time tells nothing."""
    kind, _, given = headers.get("authorization", "").partition(" ")
    offered = given.strip().encode("utf-8", "replace") if kind.lower() == "bearer" else b""
    matches = [hmac.compare_digest(offered, key.encode()) for key in keys]
    if not any(matches):
        message = "the API key is missing or wrong; send it as Authorization: Bearer KEY"
        raise ApiError(401, message, code="invalid_api_key", headers={"www-authenticate": "Bearer"})
    return hmac.new(b"pagelift job owner", keys[matches.index(True)].encode(), "sha256").hexdigest()[:24]
