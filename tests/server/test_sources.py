"""Where documents may come from: URLs and paths only if allowed, and then not from inside."""

from __future__ import annotations

import base64
import http.server
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagelift.core import Limits
from pagelift.server import fetch as fetching
from pagelift.server.attachments import Attachment
from pagelift.server.errors import ApiError
from pagelift.server.fetch import FetchLimits, fetch, public_addresses
from pagelift.server.settings import Access, ServerSettings
from server.running import DATA, SCHEMA, running

LIMITS = FetchLimits(100_000, seconds=2, connect_seconds=1)


class Site(http.server.BaseHTTPRequestHandler):
    """A web site for tests; what it answers is in `pages` by path: status, headers, body."""

    pages: dict[str, tuple[int, dict[str, str], bytes]] = {}  # noqa: RUF012
    seen: list[str] = []  # noqa: RUF012

    def do_GET(self) -> None:
        self.seen.append(f"{self.headers['Host']}{self.path}")
        status, headers, body = self.pages.get(self.path, (404, {}, b""))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Its port. Names resolve as `names` says; 127.0.0.1 stands for the public address 93.184.216.34."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Site.pages, Site.seen = {}, []
    real = socket.socket.connect

    def connect(self: socket.socket, address: Any) -> None:
        if address[0] == "93.184.216.34":
            return real(self, ("127.0.0.1", address[1]))
        raise AssertionError(f"connected to {address}")

    monkeypatch.setattr(socket.socket, "connect", connect)
    yield server.server_port
    monkeypatch.undo()
    server.shutdown()
    server.server_close()


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[list[str]]]:
    """What each name resolves to, at the first time, the second, ..."""
    known: dict[str, list[list[str]]] = {"good.example": [["93.184.216.34"]]}

    def resolve(host: str, port: int, **_: Any) -> Any:
        answers = known.get(host)
        if answers is None:
            raise socket.gaierror("unknown")
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        return [(socket.AF_INET6 if ":" in ip else socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port)) for ip in found]

    monkeypatch.setattr(fetching.socket, "getaddrinfo", resolve)
    return known


def test_a_public_document_is_fetched(site: int, names: Any) -> None:
    Site.pages["/a.pdf?x=1"] = (200, {}, b"content")
    assert names
    assert fetch(f"http://good.example:{site}/a.pdf?x=1", LIMITS) == b"content"
    assert Site.seen == [f"good.example:{site}/a.pdf?x=1"]


INSIDE = [
    "127.0.0.1", "127.1.2.3", "198.18.0.1", "240.0.0.1",
    "10.0.0.1", "172.16.5.5", "192.168.1.1", "169.254.169.254", "0.0.0.0", "100.64.0.1", "224.0.0.1",
    "255.255.255.255",
    "::1", "::", "fe80::1", "fc00::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "ff02::1",
]  # fmt: skip


@pytest.mark.parametrize("address", INSIDE)
def test_addresses_inside_are_refused(address: str, names: dict[str, list[list[str]]]) -> None:
    names["bad.example"] = [[address]]
    names["mixed.example"] = [["93.184.216.34", address]]
    for host in ("bad.example", "mixed.example"):
        with pytest.raises(ApiError) as refused:
            fetch(f"http://{host}/", LIMITS)
        assert (refused.value.status, refused.value.error.code) == (403, "private_address")


def test_redirects_are_checked_and_counted(site: int, names: dict[str, list[list[str]]]) -> None:
    names["inside.example"] = [["192.168.0.5"]]
    Site.pages["/ok"] = (302, {"Location": "/a.pdf"}, b"")
    Site.pages["/a.pdf"] = (200, {}, b"content")
    Site.pages["/in"] = (302, {"Location": "http://inside.example/secret"}, b"")
    Site.pages["/file"] = (302, {"Location": "file:///etc/passwd"}, b"")
    Site.pages["/loop"] = (307, {"Location": "/loop"}, b"")
    base = f"http://good.example:{site}"
    assert fetch(f"{base}/ok", LIMITS) == b"content"
    for path, status in (("/in", 403), ("/file", 400), ("/loop", 422), ("/missing", 422)):
        with pytest.raises(ApiError) as refused:
            fetch(base + path, LIMITS)
        assert refused.value.status == status


def test_a_name_that_changes_its_address_gains_nothing(site: int, names: dict[str, list[list[str]]]) -> None:
    """The address that was checked is the one that is connected to: `connect` of the fixture accepts no other."""
    names["rebinding.example"] = [["93.184.216.34"], ["127.0.0.1"]]
    Site.pages["/"] = (200, {}, b"content")
    assert fetch(f"http://rebinding.example:{site}/", LIMITS) == b"content"
    with pytest.raises(ApiError, match="not public"):
        fetch(f"http://rebinding.example:{site}/", LIMITS)


def test_sizes_and_times_are_limited(site: int, names: Any) -> None:
    assert names
    Site.pages["/large"] = (200, {}, b"x" * 200_000)
    with pytest.raises(ApiError) as large:
        fetch(f"http://good.example:{site}/large", LIMITS)
    assert large.value.status == 413


@pytest.mark.parametrize(
    "url",
    [
        "http://",
        "http:///a",
        "https://user:pw@good.example/",
        "http://good.example:0/",
        "http://good.example:99999/",
        "http://a b/",
        "http://ö/",
    ],
)
def test_odd_urls_are_refused(url: str, names: Any) -> None:
    assert names
    with pytest.raises(ApiError) as refused:
        fetch(url, LIMITS)
    assert refused.value.status == 400


def test_unknown_names_are_a_422(names: Any) -> None:
    assert names
    with pytest.raises(ApiError) as refused:
        public_addresses("no-such.example", 80)
    assert refused.value.status == 422


@given(st.text(max_size=60))
def test_any_text_is_a_document_or_an_error_of_the_client(text: str) -> None:
    status = 200
    try:
        assert isinstance(Attachment(text).content(Access(), Limits()), bytes)
    except ApiError as error:
        status = error.status
    assert status in (200, 400, 403)


@given(st.binary(min_size=1), st.sampled_from(["", "data:application/pdf;base64,", "data:;base64,", "DATA:image/png;name=x;BASE64,"]))
def test_base64_comes_back(content: bytes, prefix: str) -> None:
    assert Attachment(prefix + base64.b64encode(content).decode()).content(Access(), Limits()) == content


def test_files_come_from_allowed_folders_alone(tmp_path: Path, invoice: bytes) -> None:
    inside, outside = tmp_path / "in side", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "a.pdf").write_bytes(invoice)
    (inside / "link.pdf").symlink_to(outside / "a.pdf")
    with running(ServerSettings(Access(folders=(inside,)))) as server, server.http() as client:

        def ask(url: str) -> Any:
            return client.post("/v1/extract", json={"document": url, "schema": SCHEMA})

        assert ask("file://" + quote(str(inside / "a.pdf"))).json()["data"] == DATA
        for wrong in (outside / "a.pdf", inside / "link.pdf", inside / ".." / "outside" / "a.pdf", inside / "missing.pdf", inside, "\0"):
            refused = ask(f"file://{wrong}")
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "source_not_allowed"), json.dumps(str(wrong))


def test_a_url_is_fetched_when_that_is_allowed(monkeypatch: pytest.MonkeyPatch, invoice: bytes) -> None:
    asked: list[str] = []

    def pretend(url: str, limits: FetchLimits) -> bytes:
        asked.append(url)
        assert limits.most_bytes > 0
        return invoice

    monkeypatch.setattr("pagelift.server.attachments.fetch", pretend)
    with running(ServerSettings(Access(urls=True))) as server, server.http() as client:
        reply = client.post("/v1/extract", json={"document": "https://good.example/a.pdf", "schema": SCHEMA})
        assert reply.json()["data"] == DATA
    assert asked == ["https://good.example/a.pdf"]
