"""Frames between the program and its worker processes.

A frame is a 12-byte prefix (header length as uint32, body length as uint64, both big-endian), a JSON header
and a body of raw bytes (a document, or pixels). Nothing is ever unpickled, so a worker that was taken over by a hostile
document can only send wrong words and pixels. Streams are unbuffered: a process that forks in the middle of a frame must
not leave a second copy of its beginning in the child.
"""

from __future__ import annotations

import json
import struct
from io import RawIOBase
from typing import Any

PREFIX = struct.Struct(">IQ")
MAX_HEADER = 256 * 1024 * 1024
MAX_BODY = 2 * 1024 * 1024 * 1024

Header = dict[str, Any]


def write_frame(stream: RawIOBase, header: Header, body: bytes | memoryview = b"") -> None:
    """Send one frame. Raises OSError when the other side is gone."""
    encoded = json.dumps(header).encode("ascii")  # escapes keep file names that are not valid Unicode
    for part in (PREFIX.pack(len(encoded), len(body)) + encoded, body):
        rest = memoryview(part)
        while rest:
            rest = rest[stream.write(rest) or 0 :]


def read_frame(stream: RawIOBase) -> tuple[Header, bytes]:
    """Receive one frame. Raises EOFError when the other side is gone, ValueError when what it sent is not a frame."""
    header_size, body_size = PREFIX.unpack(_read_exactly(stream, PREFIX.size))
    if header_size > MAX_HEADER or body_size > MAX_BODY:
        raise ValueError(f"frame of {header_size} + {body_size} bytes")
    header = json.loads(_read_exactly(stream, header_size))
    if not isinstance(header, dict):
        raise ValueError("frame header is not an object")
    return header, _read_exactly(stream, body_size)


def _read_exactly(stream: RawIOBase, size: int) -> bytes:
    received = bytearray(size)
    rest = memoryview(received)
    while rest:
        count = stream.readinto(rest)
        if not count:
            raise EOFError("the stream ended inside a frame")
        rest = rest[count:]
    return bytes(received)
