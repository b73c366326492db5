"""How a loaded model uses the machine."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from pagelift.core.errors import ConfigError

GIB = 1 << 30
STEP_TOKENS = 512


def default_cache_bytes() -> int:
    """A quarter of the machine's memory."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
    except (AttributeError, ValueError, OSError):  # not a POSIX system
        return 4 * GIB


@dataclass(frozen=True, slots=True)
class RuntimeSettings:
    """Limits of a loaded model, and where it may keep files. None of them changes an answer. Raises ConfigError for values out of range.

    step_tokens: the most tokens in a step, drafts not counted. mixed_tokens: the most of prompts in a step that also carries
    answers, which wait for it. draft_rows: rows of a step that cost hardly more than one; 0 drafts nothing. cache_bytes: for the
    caches of answers in the making, beyond which requests wait. prefix_bytes: for caches of finished prompts and pictures, to be
    used again. max_active: the most answers at a time. tile_cache: a folder for weights as the backend lays them out, several
    gigabytes for a large checkpoint, so that it is loaded faster the next time; None keeps nothing.
    """

    step_tokens: int = STEP_TOKENS
    mixed_tokens: int = 256
    draft_rows: int = 16
    cache_bytes: int = field(default_factory=default_cache_bytes)
    prefix_bytes: int = 2 * GIB
    max_active: int = 64
    tile_cache: Path | None = None

    def __post_init__(self) -> None:
        for name, least in (
            ("step_tokens", 1),
            ("mixed_tokens", 1),
            ("draft_rows", 0),
            ("cache_bytes", 0),
            ("prefix_bytes", 0),
            ("max_active", 1),
        ):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} is {getattr(self, name)!r}; give at least {least}")
