"""An OpenAI-compatible server in the same process that says what it is told to, and notes what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[dict[str, Any]], tuple[int, Any]]
"""From a request's body to status and body of the response."""


@dataclass
class FakeServer:
    """answer: of chat completions. models: what it lists, None when it does not. Use as a context manager."""

    answer: Answer
    models: list[dict[str, Any]] | None = field(default_factory=lambda: [{"id": "lift", "object": "model", "created": 0, "owned_by": "x"}])
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    seen_headers: set[str] = field(default_factory=set)

    @property
    def api_base(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> FakeServer:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                fake.keys.append(self.headers["Authorization"])
                if fake.models is None:
                    self._send(404, {"error": {"message": "no such path"}})
                else:
                    self._send(200, {"object": "list", "data": fake.models})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                fake.requests.append(body)
                fake.seen_headers |= {name.lower() for name in self.headers}
                self._send(*fake.answer(body))

            def _send(self, status: int, body: Any) -> None:
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                for name, value in fake.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()


def completion(text: str, finish_reason: str = "stop", logprob: float | None = -0.1, size: int = 3) -> tuple[int, dict[str, Any]]:
    """A chat completion. logprob: of every token, None for a server that gives none. size: bytes per token."""
    data = text.encode()
    tokens = [data[k : k + size] for k in range(0, len(data), size)]
    content = [{"token": token.decode(errors="replace"), "logprob": logprob, "bytes": list(token), "top_logprobs": []} for token in tokens]
    choice: dict[str, Any] = {"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", "content": text}}
    choice["logprobs"] = None if logprob is None else {"content": content}
    usage = {"prompt_tokens": 100, "completion_tokens": len(tokens), "total_tokens": 100 + len(tokens)}
    return 200, {"id": "c", "object": "chat.completion", "created": 0, "model": "lift", "choices": [choice], "usage": usage}


def failure(status: int, message: str) -> tuple[int, dict[str, Any]]:
    return status, {"error": {"message": message, "type": "error", "code": status}}
