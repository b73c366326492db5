"""What stands around the requests: keys, hosts, limits, slow and lost clients, full queues, the end, metrics, logs."""

from __future__ import annotations

import json
import logging
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from pagelift.core import Limits, Proposal
from pagelift.server.logs import JsonFormatter
from pagelift.server.settings import Access, Address, ServerSettings, ServiceLimits
from server.running import DATA, LINES, SCHEMA, Running, ask, running, until


class Gate:
    """An engine whose extractions wait until they may go on."""

    name = "gate"

    def __init__(self) -> None:
        self.open = threading.Event()
        self.entered = threading.Semaphore(0)
        self.left: list[str] = []

    def extract(self, pages: Any, schema: Any, options: Any) -> Proposal:  # noqa: ARG002
        pages = list(pages)
        self.entered.release()
        try:
            while not self.open.wait(0.02):
                _ = pages[0].content  # raises when nobody waits for the result any more
            self.left.append("done")
        except BaseException as error:
            self.left.append(type(error).__name__)
            raise
        return Proposal(DATA)


@contextmanager
def gated(limits: ServiceLimits, **more: Any) -> Iterator[tuple[Running, Gate]]:
    gate = Gate()
    with running(ServerSettings(limits=limits, **more), [gate]) as server:
        try:
            yield server, gate
        finally:
            gate.open.set()


def fields() -> dict[str, str]:
    return {"schema": json.dumps(SCHEMA)}


def test_a_key_is_asked_for(invoice: bytes) -> None:
    with running(ServerSettings(Access(("right-key-1", "right-key-2")))) as server:
        for wrong in ("wrong-key", "right-key-", "right-key-11", "ключ"):
            with server.http() as client:
                reply = client.get("/v1/models", headers={"authorization": f"Bearer {wrong}".encode()})
                assert (reply.status_code, reply.json()["error"]["code"]) == (401, "invalid_api_key")
        with pytest.raises(openai.AuthenticationError):
            server.openai("wrong-key").models.list()
        for key in ("right-key-1", "right-key-2"):
            assert server.openai(key).chat.completions.create(**ask(invoice)).choices
        with server.http() as client:
            assert client.get("/metrics").status_code == 401
            assert client.get("/openapi.json").status_code == 401
            assert client.get("/health").status_code == client.get("/ready").status_code == 200
            big = client.post("/v1/extract", files={"document": b"x" * 3_000_000}, data=fields())
            assert big.status_code == 401


def test_foreign_hosts_and_web_pages_are_refused(invoice: bytes) -> None:
    with running(ServerSettings(Access(hosts=("127.0.0.1", "localhost")))) as server, server.http() as client:
        assert client.get("/health", headers={"host": "evil.example"}).json()["error"]["code"] == "wrong_host"
        files = {"document": invoice}
        refused = client.post("/v1/extract", files=files, data=fields(), headers={"origin": "https://evil.example"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "wrong_origin")
        assert "access-control-allow-origin" not in refused.headers
        assert client.post("/v1/extract", files=files, data=fields(), headers={"origin": server.url}).status_code == 200


def test_cors_is_for_those_who_are_named() -> None:
    page = "https://app.example"
    with running(ServerSettings(Access(("right-key",), cors_origins=(page,)))) as server, server.http() as client:
        asked = {"origin": page, "access-control-request-method": "POST", "access-control-request-headers": "authorization"}
        allowed = client.options("/v1/extract", headers=asked)
        assert allowed.headers["access-control-allow-origin"] == page
        other = client.options("/v1/extract", headers=asked | {"origin": "https://other.example"})
        assert "access-control-allow-origin" not in other.headers
        assert client.get("/v1/models", headers={"origin": page}).headers["access-control-allow-origin"] == page


SMALL = ServiceLimits(
    document=Limits(file_bytes=20_000, pages=3), body_bytes=50_000, pages=3, documents=2, stall_seconds=0.5, header_seconds=0.5
)


@pytest.fixture(scope="module")
def small() -> Iterator[Running]:
    with running(ServerSettings(limits=SMALL)) as server:
        yield server


def chunks(size: int) -> Iterator[bytes]:
    for _ in range(size // 1000):
        yield b"x" * 1000


def test_bodies_and_documents_have_limits(small: Running, pdf: Callable[..., bytes]) -> None:
    with small.http() as client:
        for path in ("/v1/extract", "/v1/chat/completions", "/v1/responses"):
            for body in (b"x" * 60_000, chunks(60_000)):  # with its length, and without
                reply = client.post(path, content=body, headers={"content-type": "application/json"})
                assert (reply.status_code, reply.json()["error"]["code"]) == (413, "limit_exceeded")
        many = client.post("/v1/extract", files={"document": pdf(*[["a"]] * 4)}, data=fields())
        assert (many.status_code, many.json()["error"]["code"]) == (413, "limit_exceeded")
        large = client.post("/v1/extract", files={"document": b"%PDF-1.7" + b"x" * 30_000}, data=fields())
        assert large.status_code == 413
        two = ask(pdf(["a"], ["b"]))
        two["messages"][0]["content"] *= 2
        assert client.post("/v1/chat/completions", json=two).json()["error"]["message"].startswith("the request has more than 3 pages")
        two["messages"][0]["content"] *= 2
        assert "4 documents" in client.post("/v1/chat/completions", json=two).json()["error"]["message"]


def connect(server: Running) -> socket.socket:
    host, port = server.url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=10)
    connection.settimeout(10)
    return connection


def head_of(request: httpx.Request, body: bytes) -> bytes:
    kind = request.headers["content-type"]
    return f"POST /v1/extract HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\nContent-Type: {kind}\r\n\r\n".encode()


def drained(connection: socket.socket) -> bytes:
    """All that comes until the other side closes."""
    content = b""
    try:
        while chunk := connection.recv(65536):
            content += chunk
    except ConnectionError:
        pass
    return content


@pytest.mark.parametrize("begin", [b"", b"GET /health HTTP/1.1\r\nHost:"])
def test_a_head_that_does_not_come_is_cut_off(small: Running, begin: bytes) -> None:
    with connect(small) as connection:
        connection.sendall(begin)
        assert drained(connection) == b""


def test_a_second_head_on_the_same_connection_has_its_time_too(small: Running) -> None:
    with connect(small) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        connection.sendall(b"GET /hea")
        assert b"HTTP/1.1" not in drained(connection)


@pytest.mark.parametrize("path", [b"/v1/extract", b"/v1/chat/completions"])
def test_a_body_that_does_not_come_is_a_408(small: Running, path: bytes) -> None:
    with connect(small) as connection:
        connection.sendall(b"POST " + path + b" HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
        reply = drained(connection)
        assert reply.startswith(b"HTTP/1.1 408")
        assert b'"too_slow"' in reply


def test_a_client_that_does_not_read_is_cut_off(invoice: bytes) -> None:
    big = {"type": "object", "properties": {"a": {"type": "string"}}}

    class Wordy:
        name = "wordy"

        def extract(self, pages: Any, schema: Any, options: Any) -> Proposal:  # noqa: ARG002
            return Proposal({"a": "x" * 20_000_000})

    with running(ServerSettings(limits=ServiceLimits(stall_seconds=0.3)), [Wordy()]) as server, connect(server) as connection:
        request = httpx.Request("POST", server.url, files={"document": invoice}, data={"schema": json.dumps(big)})
        body = request.read()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(head_of(request, body) + body)
        until(lambda: not server.server.server_state.connections and server.service.metrics.requests.collect()[0].samples)


def test_a_lost_client_ends_the_work(invoice: bytes) -> None:
    with gated(ServiceLimits(running=1)) as (server, gate):
        for extra in ({}, {"stream": "true"}):
            request = httpx.Request("POST", server.url, files={"document": invoice}, data=fields() | extra)
            body = request.read()
            with connect(server) as connection:
                connection.sendall(head_of(request, body) + body)
                gate.entered.acquire()
            until(lambda: server.service.models.running == 0)
        assert gate.left == ["ClientGone", "ClientGone"]
        assert not server.service.signals


def test_a_full_queue_is_a_429_and_waiting_requests_are_answered_in_the_end(invoice: bytes) -> None:
    with gated(ServiceLimits(running=1, waiting=1)) as (server, gate), server.http() as client:
        replies: list[int] = []

        def post() -> None:
            replies.append(httpx.post(f"{server.url}/v1/extract", files={"document": invoice}, data=fields(), timeout=20).status_code)

        threads = [threading.Thread(target=post) for _ in range(2)]
        threads[0].start()
        gate.entered.acquire()
        threads[1].start()
        until(lambda: server.service.models.waiting == 1)
        refused = client.post("/v1/extract", files={"document": invoice}, data=fields())
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "queue_full")
        assert int(refused.headers["retry-after"]) >= 1
        with pytest.raises(openai.RateLimitError):
            server.openai().chat.completions.create(**ask(invoice, model="gate"))
        assert client.get("/ready").status_code == 503
        assert 'pagelift_queue_length{lane="generation"} 1.0' in client.get("/metrics").text
        gate.open.set()
        for thread in threads:
            thread.join()
        assert replies == [200, 200]
        assert client.get("/ready").status_code == 200


def test_a_request_has_its_time(invoice: bytes) -> None:
    with gated(ServiceLimits(request_seconds=0.2, running=1)) as (server, gate), server.http() as client:
        late = client.post("/v1/extract", files={"document": invoice}, data=fields())
        assert (late.status_code, late.json()["error"]["code"]) == (422, "time_limit")
        until(lambda: gate.left == ["TimeOver"])
        streamed = client.post("/v1/extract", files={"document": invoice}, data=fields() | {"stream": "true"})
        assert json.loads(streamed.text.splitlines()[-1])["error"]["code"] == "time_limit"


def test_the_end_waits_for_requests_and_takes_no_new_ones(invoice: bytes) -> None:
    with gated(ServiceLimits(drain_seconds=20)) as (server, gate), server.http() as client:
        replies: list[httpx.Response] = []
        post = lambda: replies.append(httpx.post(f"{server.url}/v1/extract", files={"document": invoice}, data=fields(), timeout=20))  # noqa: E731
        thread = threading.Thread(target=post)
        thread.start()
        gate.entered.acquire()
        server.server.handle_exit(15, None)
        assert client.get("/ready").json()["status"] == "shutting down"
        assert client.get("/health").status_code == 200
        refused = client.post("/v1/extract", files={"document": invoice}, data=fields())
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "shutting_down")
        gate.open.set()
        thread.join()
        assert replies[0].json()["data"] == DATA
        until(lambda: server.server.should_exit)


def test_the_end_does_not_wait_for_ever(invoice: bytes) -> None:
    with gated(ServiceLimits(drain_seconds=0.2)) as (server, gate):
        replies: list[httpx.Response] = []
        post = lambda: replies.append(httpx.post(f"{server.url}/v1/extract", files={"document": invoice}, data=fields(), timeout=20))  # noqa: E731
        thread = threading.Thread(target=post)
        thread.start()
        gate.entered.acquire()
        server.server.handle_exit(15, None)
        thread.join()
        assert replies[0].status_code == 503


def test_metrics_count_what_happens(layout_server: Running, invoice: bytes) -> None:
    with layout_server.http() as client:
        client.post("/v1/extract", files={"document": invoice}, data=fields())
        client.get("/v1/nothing")
        text = client.get("/metrics").text
    assert re.search(r'pagelift_requests_total\{route="/v1/extract",status="200"\} [1-9]', text)
    assert 'pagelift_requests_total{route="other",status="404"}' in text
    assert re.search(r'pagelift_pages_total\{model="layout"\} [1-9]', text)
    assert re.search(r"pagelift_resident_bytes [1-9]", text)
    for name in ("pagelift_passes_per_token", "pagelift_time_to_first_token_seconds", "pagelift_cache_hits", "pagelift_output_tokens"):
        assert name in text


class Collect(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.setFormatter(JsonFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture
def logged() -> Iterator[Collect]:
    handler, log = Collect(), logging.getLogger("pagelift.server")
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield handler
    log.removeHandler(handler)
    log.setLevel(before)


def test_logs_are_json_without_content(logged: Collect, invoice: bytes, pdf: Callable[..., bytes]) -> None:
    class Failing:
        name = "failing"

        def extract(self, pages: Any, schema: Any, options: Any) -> Proposal:  # noqa: ARG002
            raise ValueError(f"cannot read {[word.text for page in pages for word in page.content.words]}")

    with running(engines=[Failing()]) as server, server.http() as client:
        reply = client.post("/v1/extract", files={"document": ("secret-name.pdf", invoice)}, data=fields())
        assert reply.status_code == 500
        client.get("/v1/models?secret-query=1")
    with running() as server, server.http() as client:
        client.post("/v1/extract", files={"document": ("secret-name.pdf", pdf(LINES))}, data=fields() | {"password": "secret-word"})
        client.post("/v1/extract", files={"document": ("secret-name.pdf", b"%PDF broken")}, data=fields())
    text = "\n".join(logged.lines)
    entries = [json.loads(line) for line in logged.lines]
    assert any(entry["event"] == "request" and entry["status"] == 200 and entry.get("pages") == 1 for entry in entries)
    failed = next(entry for entry in entries if entry["event"] == "request failed")
    assert (failed["error"], failed["cause"]) == ("EngineError", "ValueError")
    assert "test_operations.py" in failed["at"][-1]
    assert failed["request"] == reply.headers["x-request-id"]
    assert all(entry["request"].startswith("req_") for entry in entries if entry["event"] == "request")
    for secret in ("A-17", "1,234", "secret", "Invoice"):
        assert secret not in text


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_tls_by_certificate_files(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=a",
    ]
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*made, *names], check=True, capture_output=True)
    with running(address=Address(port=0, certificate=certificate, key=key)) as server:
        assert server.url.startswith("https://")
        import ssl

        with server.http(verify=ssl.create_default_context(cafile=str(certificate))) as client:
            assert client.get("/health").json()["status"] == "ok"


def test_bodies_together_have_a_limit_too(invoice: bytes) -> None:
    limits = ServiceLimits(body_bytes=60_000, held_bytes=100_000, running=1)
    with gated(limits) as (server, gate), server.http() as client:
        replies: list[int] = []

        def post() -> None:
            files = {"document": invoice + b" " * 50_000}
            replies.append(httpx.post(f"{server.url}/v1/extract", files=files, data=fields(), timeout=20).status_code)

        thread = threading.Thread(target=post)
        thread.start()
        gate.entered.acquire()
        refused = client.post("/v1/extract", files={"document": invoice + b" " * 50_000}, data=fields())
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "queue_full")
        assert server.service.held_bytes > 50_000
        gate.open.set()
        thread.join()
        assert replies == [200]
        until(lambda: server.service.held_bytes == 0)


def test_a_lost_client_counts_as_one(invoice: bytes) -> None:
    with gated(ServiceLimits()) as (server, gate), server.http() as client:
        request = httpx.Request("POST", server.url, files={"document": invoice}, data=fields())
        body = request.read()
        with connect(server) as connection:
            connection.sendall(head_of(request, body) + body)
            gate.entered.acquire()
        until(lambda: 'route="/v1/extract",status="499"' in client.get("/metrics").text)
