"""What the subcommands of `pagelift` do; imported when one is run, so that `pagelift --help` stays fast."""

from __future__ import annotations

import logging
import os
import sys
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the command, the same for all subcommands."""

    FINE = 0
    USAGE = 1
    NOTHING_SUCCEEDED = 2
    SCHEMA_REFUSED = 3
    SOME_FAILED = 4
    INTERRUPTED = 130
    OUTPUT_CLOSED = 141


def say(message: str) -> None:
    """Tell the person at the terminal something; standard output is for results only."""
    sys.stderr.write(message + "\n")
    sys.stderr.flush()


def set_up_streams() -> None:
    """UTF-8 results whatever the locale, and messages of libraries on standard error.

    Half surrogates, which only undecodable file names bring in, become JSON escapes.
    """
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115  closed by the caller, who wants files alone
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
