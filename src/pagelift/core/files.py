"""Writing files so that a reader never sees half of one."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from pagelift.core.errors import ConfigError


def make_folder(folder: Path) -> None:
    """Make a folder and those around it, unless they are there. Raises ConfigError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{folder}: the folder cannot be made ({error.strerror or error}); choose another place") from error


def write_atomic(path: Path, content: str | bytes) -> None:
    """Write `content` under a temporary name beside `path`, then rename; missing folders are made.

    Text is written as UTF-8, half surrogates as backslash escapes. Raises ConfigError; nothing is left behind then.
    """
    temporary = path.parent / f".{secrets.token_hex(8)}.part"
    make_folder(path.parent)
    try:
        try:
            temporary.write_bytes(content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"{path}: it cannot be written ({error.strerror or error}); choose another place") from error
