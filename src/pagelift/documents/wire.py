"""Frames between the program and its worker processes.

A frame is a 12-byte prefix (header length as uint32, body length as uint64, both big-endian), a JSON header
and a body of raw bytes (a document, or pixels). Nothing is ever unpickled, so a worker that was taken over by a hostile
document can only send wrong words and pixels.
"""

from __future__ import annotations

import json
import struct
from typing import Any, BinaryIO

PREFIX = struct.Struct(">IQ")
MAX_HEADER = 256 * 1024 * 1024
MAX_BODY = 2 * 1024 * 1024 * 1024

Header = dict[str, Any]


def write_frame(stream: BinaryIO, header: Header, body: bytes | memoryview = b"") -> None:
    """Send one frame. Raises OSError when the other side is gone."""
    encoded = json.dumps(header).encode("ascii")  # escapes keep file names that are not valid Unicode
    stream.write(PREFIX.pack(len(encoded), len(body)) + encoded)
    if body:
        stream.write(body)
    stream.flush()


def read_frame(stream: BinaryIO) -> tuple[Header, bytes]:
    """Receive one frame. Raises EOFError when the other side is gone, ValueError when what it sent is not a frame."""
    header_size, body_size = PREFIX.unpack(_read_exactly(stream, PREFIX.size))
    if header_size > MAX_HEADER or body_size > MAX_BODY:
        raise ValueError(f"frame of {header_size} + {body_size} bytes")
    header = json.loads(_read_exactly(stream, header_size))
    if not isinstance(header, dict):
        raise ValueError("frame header is not an object")
    return header, _read_exactly(stream, body_size)


def _read_exactly(stream: BinaryIO, size: int) -> bytes:
    received = stream.read(size) if size else b""
    if len(received) != size:
        raise EOFError("the stream ended inside a frame")
    return received
