"""Hours of mixed load in minutes: valid, invalid, cancelled, oversized and slow requests at once, and whether the server stays well.

    python benchmarks/server_load.py [--minutes 30] [--clients 6] [--model CHECKPOINT]

Prints one JSON object: requests by kind and status, what was not expected, answers that differ from those of the library (or, for a
model, from its first answer to the same question), resident memory after the warm-up and at the end, each with no request in progress.
Ends with 1 when a status is not one of the documented ones, an answer differs, or memory grew by more than 5%.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import socket
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import httpx
from server_process import SCHEMA, Served, invoice, served

from pagelift import extract

EXPECTED = {200, 202, 204, 400, 404, 408, 409, 413, 415, 422, 429}
DOCUMENTS = 12
WARM_UP = 0.2
BODY_MB = 1
STALL_S = 2.0
SETTLE_S = 32.0


@dataclass
class Load:
    """What all clients share. answers: what the library, or the model at first, gave to each question."""

    url: str
    model: bool  # whether there is one to talk to
    documents: list[bytes]
    answers: dict[Any, Any] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)
    pause: threading.Event = field(default_factory=threading.Event)
    idle: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, kind: str, status: int | None) -> None:
        with self.lock:
            self.counts[f"{kind} {status or 'closed'}"] += 1
            if status is not None and status not in EXPECTED:
                self.faults.append(f"{kind}: status {status}")

    def compare(self, key: Any, data: Any) -> None:
        with self.lock:
            if self.answers.setdefault(key, data) != data:
                self.faults.append(f"{key}: the answer differs: {data}")


def main() -> int:
    """Run the load and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--model", help="a checkpoint, which is talked to as well")
    options = parser.parse_args()
    documents = [invoice(k, 1 + k % 3) for k in range(DOCUMENTS)]
    limits = ["--max-body-mb", str(BODY_MB), "--waiting", "4", "--stall-seconds", str(STALL_S), "--header-seconds", str(STALL_S)]
    with served([*limits, *(["--model", options.model, "--alias", "model"] if options.model else [])]) as server:
        load = Load(server.url, bool(options.model), documents)
        for k, document in enumerate(documents):
            load.answers["document", k] = extract(document, SCHEMA, "layout").data
        report = run(load, server, options.minutes * 60, options.clients)
    sys.stdout.write(json.dumps(report, indent=2) + "\n")
    return 0 if not load.faults and not report["log_faults"] and report["memory_growth"] <= 0.05 else 1


def run(load: Load, server: Served, seconds: float, clients: int) -> dict[str, Any]:
    """Keep all clients at it for so long, with two pauses to measure memory."""
    threads = [threading.Thread(target=client, args=(load, random.Random(k)), daemon=True) for k in range(clients)]
    for thread in threads:
        thread.start()
    time.sleep(seconds * WARM_UP)
    warm = measure(load, server, clients)
    time.sleep(seconds * (1 - WARM_UP))
    end = measure(load, server, clients)
    load.stop.set()
    for thread in threads:
        thread.join(60)
    metrics = httpx.get(f"{load.url}/metrics").text
    return {
        "minutes": seconds / 60,
        "clients": clients,
        "requests": sum(load.counts.values()),
        "by_kind_and_status": dict(sorted(load.counts.items())),
        "unexpected": load.faults[:10],
        "log_faults": server.faults()[:5],
        "resident_mb_after_warm_up": round(warm / 1e6, 1),
        "resident_mb_at_the_end": round(end / 1e6, 1),
        "memory_growth": round(end / warm - 1, 4),
        "metrics": [
            line for line in metrics.splitlines() if line.startswith(("pagelift_running", "pagelift_queue", "pagelift_requests_in"))
        ],
    }


def measure(load: Load, server: Served, clients: int) -> int:
    """Resident memory when nobody asks for anything."""
    load.pause.set()
    for _ in range(clients):
        load.idle.acquire(timeout=120)
    time.sleep(max(2 * STALL_S, SETTLE_S))  # slow connections end, jobs too, and freed memory is given back
    found = server.resident_bytes()
    load.pause.clear()
    return found


@dataclass
class Client:
    """Sends one kind of request after another."""

    load: Load
    connection: httpx.Client
    source: random.Random

    def run(self) -> None:
        """Until the load is over."""
        plays = [self.form, self.form, self.chat, self.stream, self.job, self.wrong, self.broken, self.left_alone, self.oversized]
        plays += [self.dribble, self.unread, *([self.talk, self.talk] if self.load.model else [])]
        while not self.load.stop.is_set():
            if self.load.pause.is_set():
                self.load.idle.release()
                while self.load.pause.is_set():
                    time.sleep(0.05)
            play = self.source.choice(plays)
            try:
                self.load.note(play.__name__, play())
            except (httpx.TransportError, OSError) as error:
                self.load.note(f"{play.__name__} {type(error).__name__}", None)

    def pick(self) -> tuple[int, bytes]:
        k = self.source.randrange(DOCUMENTS)
        return k, self.load.documents[k]

    def post(self, path: str, document: bytes, **fields: str) -> httpx.Response:
        data = {"schema": json.dumps(SCHEMA), "model": "layout"} | fields
        return self.connection.post(path, files={"document": document}, data=data)

    def form(self) -> int:
        k, document = self.pick()
        reply = self.post("/v1/extract", document)
        if reply.status_code == 200:
            self.load.compare(("document", k), reply.json()["data"])
        return reply.status_code

    def chat(self) -> int:
        k, document = self.pick()
        reply = self.connection.post("/v1/chat/completions", json=asked(document))
        if reply.status_code == 200:
            self.load.compare(("document", k), json.loads(reply.json()["choices"][0]["message"]["content"]))
        return reply.status_code

    def stream(self) -> int:
        k, document = self.pick()
        reply = self.post("/v1/extract", document, stream="true")
        if reply.status_code == 200:
            self.load.compare(("document", k), json.loads(reply.text.splitlines()[-1])["data"])
        return reply.status_code

    def job(self) -> int:
        k, document = self.pick()
        made = self.post("/v1/extract/jobs", document)
        if made.status_code != 202:
            return made.status_code
        path = f"/v1/extract/jobs/{made.json()['id']}"
        while (state := self.connection.get(path).json()["state"]) in ("queued", "running"):
            time.sleep(0.05)
        reply = self.connection.get(f"{path}/result")
        if state == "done":
            self.load.compare(("document", k), reply.json()["data"])
        self.connection.delete(path)
        return reply.status_code

    def talk(self) -> int:
        """A constrained answer of the model, alone or among others always the same."""
        k = self.source.randrange(4)
        schema = {"type": "object", "properties": {"kind": {"enum": ["a", "b"]}, "count": {"type": "integer"}}}
        shape = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
        body = {"model": "model", "messages": [{"role": "user", "content": f"Question {k}"}], "response_format": shape, "max_tokens": 40}
        reply = self.connection.post("/v1/chat/completions", json=body)
        if reply.status_code == 200:
            self.load.compare(("talk", k), reply.json()["choices"][0]["message"]["content"])
        return reply.status_code

    def wrong(self) -> int:
        changes = [{"tools": [{}]}, {"model": "none"}, {"temperature": 9}, {"messages": []}, {"response_format": {"type": "text"}}]
        return self.connection.post("/v1/chat/completions", json=asked(self.pick()[1]) | self.source.choice(changes)).status_code

    def broken(self) -> int:
        _, document = self.pick()
        content = self.source.choice([document[: len(document) // 2], b"text", b"", b"%PDF-1.7\n" + self.source.randbytes(2000)])
        return self.post("/v1/extract", content).status_code

    def left_alone(self) -> None:
        """The client goes away while it is worked for."""
        with self.raw(stream=self.source.random() < 0.5):
            time.sleep(self.source.random() * 0.1)

    def oversized(self) -> int:
        body = b"x" * (BODY_MB * 1024 * 1024 + self.source.randrange(1, 500_000))
        content = body if self.source.random() < 0.5 else (body[k : k + 65536] for k in range(0, len(body), 65536))
        return self.connection.post("/v1/extract", content=content, headers={"content-type": "application/json"}).status_code

    def dribble(self) -> None:
        """The head or the body never ends; the server must."""
        start = time.monotonic()
        begin = [b"", b"GET /v1/mod", b"POST /v1/extract HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{"]
        with socket.create_connection(_address(self.load.url)) as raw:
            raw.sendall(self.source.choice(begin))
            raw.settimeout(10 * STALL_S)
            try:
                while raw.recv(65536):
                    pass
            except TimeoutError:
                if time.monotonic() - start < 15 * STALL_S:  # or this machine was asleep for a while
                    self.load.faults.append("dribble: the server keeps a slow connection open")
            except ConnectionError:
                pass

    def unread(self) -> None:
        """The answer is read a little, then the connection is left."""
        with self.raw(stream=True) as raw:
            raw.recv(10)

    def raw(self, **more: Any) -> socket.socket:
        """A connection over which a chat request was sent."""
        raw = socket.create_connection(_address(self.load.url), timeout=60)
        body = json.dumps(asked(self.pick()[1], **more)).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
        raw.sendall(head.encode() + b"Content-Type: application/json\r\n\r\n" + body)
        return raw


def client(load: Load, source: random.Random) -> None:
    with httpx.Client(base_url=load.url, timeout=120) as connection:
        Client(load, connection, source).run()


def asked(document: bytes, **more: Any) -> dict[str, Any]:
    """A chat request about a document."""
    url = "data:application/pdf;base64," + base64.b64encode(document).decode()
    parts = [{"type": "file", "file": {"filename": "a.pdf", "file_data": url}}]
    shape = {"type": "json_schema", "json_schema": {"name": "invoice", "schema": SCHEMA}}
    return {"model": "layout", "messages": [{"role": "user", "content": parts}], "response_format": shape, **more}


def _address(url: str) -> tuple[str, int]:
    host, port = url.removeprefix("http://").split(":")
    return host, int(port)


if __name__ == "__main__":
    sys.exit(main())
