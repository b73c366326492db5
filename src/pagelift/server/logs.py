"""Logs as one JSON object a line. They hold no content of documents, no names of files, no messages of errors made from either."""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from typing import Any

log = logging.getLogger("pagelift.server")


class JsonFormatter(logging.Formatter):
    """time, level, logger, event, and what was given as extra={"fields": {...}}. Of exceptions the type and the lines of code alone."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        entry |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[1]:
            entry |= describe(record.exc_info[1])
        return json.dumps(entry, ensure_ascii=True, default=str)


def describe(error: BaseException) -> dict[str, Any]:
    """The kind of an error, of what it comes from, and where in the code that was raised; no message."""
    cause = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    lines = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(cause.__traceback__)[-12:]]
    return {"error": type(error).__name__, "cause": type(cause).__name__, "at": lines}


def event(name: str, level: int = logging.INFO, **fields: Any) -> None:
    """One line. fields: numbers and names of our own."""
    log.log(level, name, extra={"fields": fields})


def failure(name: str, error: BaseException, **fields: Any) -> None:
    """A fault of the server, with where in the code it was."""
    log.error(name, exc_info=error, extra={"fields": fields})


def set_up(level: int = logging.INFO) -> None:
    """All loggers of this process, uvicorn's too, as JSON on standard error. Libraries that may print content only when it is serious."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.root.handlers[:] = [handler]
    logging.root.setLevel(logging.ERROR)
    for name in ("pagelift.server", "uvicorn"):
        logging.getLogger(name).setLevel(level)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).handlers[:] = []
        logging.getLogger(name).propagate = name != "uvicorn.access"
    logging.getLogger("uvicorn.error").addFilter(_without_errors_of_requests)


def _without_errors_of_requests(record: logging.LogRecord) -> bool:
    """Exceptions in the application are logged by ourselves."""
    return "Exception in ASGI application" not in record.getMessage()
