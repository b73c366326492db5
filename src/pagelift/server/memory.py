"""The memory of this process: how much it holds, and giving back what was freed."""

from __future__ import annotations

import asyncio
import ctypes
import sys
from pathlib import Path

TRIM_SECONDS = 30.0


def resident_bytes() -> int:
    """The resident memory of this process; where the system has no /proc, the most it ever was; 0 if it tells neither."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096
    except (OSError, ValueError, IndexError):
        try:
            import resource
        except ImportError:  # Windows
            return 0
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


async def give_back_regularly() -> None:
    """Hand freed memory back to the system every now and then.

    glibc keeps what many threads have freed in many places, so that a server seems to grow for hours; other systems need no help.
    """
    try:
        trim = ctypes.CDLL("libc.so.6").malloc_trim
    except (OSError, AttributeError):
        return
    while True:
        await asyncio.sleep(TRIM_SECONDS)
        await asyncio.to_thread(trim, 0)
