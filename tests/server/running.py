"""A real server for tests: uvicorn in a thread on a free port, and clients for it."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from openai import OpenAI

from pagelift.extract import Engine, load_engine
from pagelift.server.catalog import Catalog
from pagelift.server.run import Server
from pagelift.server.service import Service
from pagelift.server.settings import Address, ServerSettings

SCHEMA = {
    "type": "object",
    "properties": {"invoice_number": {"type": ["string", "null"]}, "total": {"type": ["number", "null"]}},
    "required": ["invoice_number", "total"],
}
LINES = ["Invoice number: A-17", "Total: 1,234.50 EUR"]
DATA = {"invoice_number": "A-17", "total": 1234.5}


@dataclass(frozen=True)
class Running:
    """A server that answers at `url`."""

    url: str
    service: Service
    server: Server

    def openai(self, key: str = "any-key") -> OpenAI:
        return OpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0, timeout=20)

    def http(self, **options: Any) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=20, **options)


@contextmanager
def running(
    settings: ServerSettings | None = None, engines: Sequence[Engine] = (), aliases: Sequence[str] = (), address: Address | None = None
) -> Iterator[Running]:
    """Start a server and stop it at the end."""
    service = Service(settings or ServerSettings(), Catalog(engines or [load_engine("layout")], aliases))
    server = Server(service, address or Address(port=0))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        time.sleep(0.005)
    try:
        yield Running(server.addresses[0], service, server)
    finally:
        server.should_exit = True
        thread.join(10)
        assert not thread.is_alive()


def file_part(content: bytes, name: str = "invoice.pdf", key: str = "filename") -> dict[str, Any]:
    encoded = base64.b64encode(content).decode()
    return {"type": "file", "file": {key: name, "file_data": f"data:application/pdf;base64,{encoded}"}}


def json_schema(schema: Any = None) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "invoice", "schema": SCHEMA if schema is None else schema}}


def ask(content: bytes, **more: Any) -> dict[str, Any]:
    """The parameters of a chat request about one PDF."""
    return {"model": "layout", "messages": [{"role": "user", "content": [file_part(content)]}], "response_format": json_schema(), **more}


def log_lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def until(condition: Callable[[], object], seconds: float = 10) -> None:
    """Wait for a condition; fail when it does not come."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.005)
