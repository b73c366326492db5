"""JSON, server-sent events and lines of JSON as bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def to_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def sse(value: Any, event: str = "") -> bytes:
    """One server-sent event (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""
    head = f"event: {event}\n".encode() if event else b""
    return head + b"data: " + to_json(value) + b"\n\n"


def ndjson(value: Mapping[str, Any]) -> bytes:
    return to_json(value) + b"\n"
