"""Writing files so that a reader never sees half of one."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_atomic(path: Path, content: str | bytes) -> None:
    """Write `content` (text as UTF-8) under a temporary name beside `path`, then rename; missing folders are made.

    Raises OSError; nothing is left behind then.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{secrets.token_hex(8)}.part"
    try:
        temporary.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
