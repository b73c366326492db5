"""Worker processes as the program sees them: started when needed, reused for many documents, killed at a deadline."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import RawIOBase
from typing import cast

from pagelift.core import errors
from pagelift.core.errors import CorruptDocument, DocumentError, DocumentTimeout
from pagelift.documents.wire import Header, read_frame, write_frame

log = logging.getLogger(__name__)

MAX_IDLE = os.cpu_count() or 1
MAX_OPEN_PER_WORKER = 4
CLOSE_SECONDS = 5.0
MAX_OPENED_PER_WORKER = 1_000  # then it is replaced, so that leaks of native libraries stay bounded

_ids = itertools.count(1)


class WorkerLost(Exception):
    """The worker process ended during a request. timed_out: because its time was over, not because it crashed."""

    def __init__(self, timed_out: bool, exit_code: int | None) -> None:
        super().__init__(f"worker ended with exit code {exit_code}")
        self.timed_out = timed_out
        self.exit_code = exit_code


class Worker:
    """One worker process. Used by one thread at a time."""

    def __init__(self) -> None:
        code = f"import sys; sys.path[:] = {json.dumps([str(p) for p in sys.path])}; from pagelift.documents.worker import main; main()"
        self._process = subprocess.Popen([sys.executable, "-E", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.open_documents: dict[int, None] = {}
        self.opened = 0

    def call(self, request: Header, body: bytes | memoryview, timeout_s: float) -> tuple[Header, bytes]:
        """One request and its reply. Raises WorkerLost when the process ends or `timeout_s` is over."""
        watchdog = _Watchdog(timeout_s, self._process.kill)
        try:
            write_frame(cast(RawIOBase, self._process.stdin), request, body)
            reply = read_frame(cast(RawIOBase, self._process.stdout))
        except (EOFError, OSError, ValueError) as error:
            timed_out = watchdog.call_off()
            self.kill()
            raise WorkerLost(timed_out, self._process.returncode) from error
        except BaseException:
            watchdog.call_off()
            self.kill()  # interrupted between request and reply: the next reply would be the wrong one
            raise
        if watchdog.call_off():
            self.kill()
        return reply

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """End the process and reap it."""
        self._process.kill()
        self.disown()
        self._process.wait()

    def disown(self) -> None:
        """Close this side of the pipes; the process ends by itself once nobody else holds them."""
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                cast(RawIOBase, stream).close()


class _Watchdog:
    """Calls `act` after `timeout_s` unless called off before."""

    def __init__(self, timeout_s: float, act: Callable[[], None]) -> None:
        self._act = act
        self._lock = threading.Lock()
        self._over = self._acted = False
        self._timer = threading.Timer(min(timeout_s, threading.TIMEOUT_MAX), self._expire)
        self._timer.daemon = True
        self._timer.start()

    def _expire(self) -> None:
        with self._lock:
            if not self._over:
                self._acted = True
                self._act()

    def call_off(self) -> bool:
        """Stop waiting. Returns whether it was too late."""
        self._timer.cancel()
        with self._lock:
            self._over = True
            return self._acted


class Pool:
    """Workers of one kind, at most `max_workers` at a time; more callers wait."""

    def __init__(self, max_workers: int) -> None:
        self.max_workers = max_workers
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(self.max_workers)
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()

    @contextlib.contextmanager
    def lease(self, document: int = 0) -> Iterator[Worker]:
        """A worker for the calling thread alone, if possible one that has `document` open."""
        with self._slots:
            with self._lock:
                worker = next((w for w in self._idle if document in w.open_documents), None) or (self._idle[-1] if self._idle else None)
                if worker is not None:
                    self._idle.remove(worker)
            if worker is None or not worker.alive:
                worker = Worker()
            with self._lock:
                self._busy.add(worker)
            try:
                yield worker
            finally:
                self._give_back(worker)

    def _give_back(self, worker: Worker) -> None:
        with self._lock:
            self._busy.discard(worker)
            keep = worker.alive and worker.opened < MAX_OPENED_PER_WORKER and len(self._idle) < MAX_IDLE
            if keep:
                self._idle.append(worker)
        if not keep:
            worker.kill()

    def forget(self, document: int) -> None:
        """Close `document` in the idle workers that have it open."""
        with self._lock:
            holders = [w for w in self._idle if document in w.open_documents]
            self._idle = [w for w in self._idle if w not in holders]
            self._busy.update(holders)
        for worker in holders:
            _close(worker, document)
            self._give_back(worker)

    def shut_down(self) -> None:
        """End all workers."""
        with self._lock:
            workers = [*self._idle, *self._busy]
            self._idle.clear()
        for worker in workers:
            worker.kill()

    def abandon(self) -> None:
        """In a forked child: leave the parent's workers to the parent."""
        for worker in [*self._idle, *self._busy]:
            worker.disown()
        self._reset()


def _close(worker: Worker, document: int) -> None:
    del worker.open_documents[document]
    with contextlib.suppress(WorkerLost):
        worker.call({"op": "close", "document": document}, b"", CLOSE_SECONDS)


documents_pool = Pool(max_workers=64)
ocr_pool = Pool(max_workers=max(1, (os.cpu_count() or 1) // 4))


@atexit.register
def shut_down() -> None:
    """End all worker processes of this program; they are started again when needed."""
    documents_pool.shut_down()
    ocr_pool.shut_down()


def _after_fork() -> None:
    documents_pool.abandon()
    ocr_pool.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class RemoteDocument:
    """A document that is opened in whichever worker serves it, and again after that worker was lost.

    name: for messages. opening: the header of its "open" request, without the number. body: the content, if not a path.
    """

    def __init__(self, name: str, opening: Header, body: bytes, open_seconds: float) -> None:
        self.name = name
        self._number = next(_ids)
        self._opening = {"op": "open", "document": self._number} | opening
        self._body = body
        self._open_seconds = open_seconds

    def open(self) -> Header:
        """Open it now. Raises DocumentError with the reason and the remedy."""
        with documents_pool.lease(self._number) as worker:
            return self._open_in(worker)

    def call(self, request: Header, timeout_s: float, limit_name: str) -> tuple[Header, bytes]:
        """One request about this document. limit_name: the limit that `timeout_s` comes from, for the message."""
        with documents_pool.lease(self._number) as worker:
            if self._number not in worker.open_documents:
                self._open_in(worker)
            return checked_call(worker, request | {"document": self._number}, b"", Deadline(self.name, timeout_s, limit_name))

    def close(self) -> None:
        documents_pool.forget(self._number)

    def _open_in(self, worker: Worker) -> Header:
        while len(worker.open_documents) >= MAX_OPEN_PER_WORKER:
            _close(worker, next(iter(worker.open_documents)))
        deadline = Deadline(self.name, self._open_seconds, "open_seconds")
        header, _ = checked_call(worker, self._opening, self._body, deadline)
        worker.open_documents[self._number] = None
        worker.opened += 1
        return header


@dataclass(frozen=True, slots=True)
class Deadline:
    """How long a request about a document may take. limit_name: the field of core.Limits that `seconds` comes from."""

    name: str
    seconds: float
    limit_name: str


def checked_call(worker: Worker, request: Header, body: bytes | memoryview, deadline: Deadline) -> tuple[Header, bytes]:
    """`Worker.call` with every failure turned into the DocumentError that names the document and the remedy."""
    action = f"{request['op']} of page {request['page']}" if "page" in request else str(request["op"])
    try:
        header, reply_body = worker.call(request, body, deadline.seconds)
    except WorkerLost as lost:
        if lost.timed_out:
            message = f"{deadline.name}: {action} took longer than {deadline.seconds:g} s; raise limits.{deadline.limit_name}"
            raise DocumentTimeout(message) from lost
        message = (
            f"{deadline.name}: {action} ended the worker process (exit code {lost.exit_code}): the file is damaged or hostile, or needs "
            "more memory than limits.worker_bytes; save it again with another program, or raise that limit"
        )
        raise CorruptDocument(message) from lost
    if "error" in header:
        kind = getattr(errors, str(header["error"]), CorruptDocument)
        if not (isinstance(kind, type) and issubclass(kind, DocumentError)):
            kind = CorruptDocument
        raise kind(f"{deadline.name}: {header.get('message', '')}")
    return header, reply_body
