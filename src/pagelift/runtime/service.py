"""One thread that runs a model for requests from any thread: they join and leave between steps."""

from __future__ import annotations

import atexit
import logging
import threading
import time
import weakref
from collections import deque
from dataclasses import dataclass

from pagelift.core.errors import EngineError
from pagelift.decoding import Token
from pagelift.runtime.runner import Runner
from pagelift.runtime.sequences import Request, Sequence

log = logging.getLogger(__name__)
IDLE_S = 5.0
"""The thread ends when nothing is asked for so long; the next request starts another one."""


class Ticket:
    """A request on its way. Its tokens arrive step by step; any thread may wait for them or give it up."""

    def __init__(self, sequence: Sequence, size: int) -> None:
        self.sequence = sequence
        self.size = size
        self.submitted = time.perf_counter()
        self.admitted = 0.0
        self.ended = 0.0
        self.cancelled = False
        self._tokens: list[Token] = []
        self._done = False
        self._news = threading.Condition()

    def take(self, given: int) -> list[Token]:
        """The tokens after the first `given` ones; waits for one. Empty at the end. Raises the error that ended the request."""
        with self._news:
            self._news.wait_for(lambda: len(self._tokens) > given or self._done)
            if len(self._tokens) == given and self.sequence.error is not None:
                raise self.sequence.error
            return self._tokens[given:]

    def publish(self) -> None:
        """Give out what the sequence has got. Called by the service's thread."""
        output, reason = self.sequence.output, self.sequence.finish_reason
        if len(output) > len(self._tokens) or reason is not None:
            with self._news:
                self._tokens += output[len(self._tokens) :]
                self._done = reason is not None
                self.ended = time.perf_counter() if self._done else 0.0
                self._news.notify_all()


@dataclass(frozen=True, slots=True)
class Load:
    """What a service has to do at the moment, and has done. reserved: bytes of caches promised to active requests."""

    active: int
    queued: int
    reserved_bytes: int
    prefix_bytes: int
    prefix_hits: int
    prefix_misses: int
    passes: int
    tokens: int


class Service:
    """Runs a model for all requests. Requests beyond the settings' memory or number wait in order of arrival."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self._changed = threading.Condition()
        self._queue: deque[Ticket] = deque()
        self._active: list[Ticket] = []
        self._thread: threading.Thread | None = None
        self._closed = False
        _services.add(self)

    def submit(self, request: Request) -> Ticket:
        """Queue a request. Raises EngineError when it can never be answered, or after `close`."""
        sequence = self.runner.make(request)
        ticket = Ticket(sequence, self.runner.cache_bytes(sequence))
        with self._changed:
            if self._closed:
                raise EngineError("the model has been closed")
            self._queue.append(ticket)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="pagelift-runner", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        return ticket

    def cancel(self, ticket: Ticket) -> None:
        """Give a request up before the next step."""
        ticket.cancelled = True
        with self._changed:
            self._changed.notify_all()

    def load(self) -> Load:
        """What there is to do at the moment."""
        with self._changed:
            reserved = sum(ticket.size for ticket in self._active)
            active, queued = len(self._active), len(self._queue)
        prefixes, counters = self.runner.prefixes, self.runner.counters
        return Load(active, queued, reserved, prefixes.nbytes, prefixes.hits, prefixes.misses, counters.passes, counters.tokens)

    def close(self) -> None:
        """Give all requests up and end the thread, after the step that it is in."""
        with self._changed:
            self._closed = True
            for ticket in (*self._queue, *self._active):
                ticket.cancelled = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        while self._admit():
            try:
                self.runner.step()
            except Exception as error:
                log.exception("a step failed")
                for ticket in self._active:
                    ticket.sequence.fail(error)
                self.runner.drop_finished()
            self._publish()

    def _admit(self) -> bool:
        """Wait for something to do, and let requests in. Returns False when the thread is to end."""
        with self._changed:
            while True:
                self._drop_cancelled()
                self._let_in()
                if self._active:
                    return True
                if self._closed or not self._changed.wait_for(lambda: self._queue or self._closed, IDLE_S):
                    self._thread = None
                    return False

    def _let_in(self) -> None:
        settings = self.runner.settings
        while self._queue and len(self._active) < settings.max_active:
            reserved = sum(ticket.size for ticket in self._active)
            if self._active and reserved + self._queue[0].size > settings.cache_bytes:
                return
            ticket = self._queue.popleft()
            ticket.admitted = time.perf_counter()
            self.runner.admit(ticket.sequence)
            ticket.publish()
            if ticket.sequence.finish_reason is None:
                self._active.append(ticket)

    def _drop_cancelled(self) -> None:
        for ticket in (*self._queue, *self._active):
            if ticket.cancelled and ticket.sequence.finish_reason is None:
                self.runner.cancel(ticket.sequence)
                ticket.publish()
        self._queue = deque(ticket for ticket in self._queue if ticket.sequence.finish_reason is None)
        self._active = [ticket for ticket in self._active if ticket.sequence.finish_reason is None]

    def _publish(self) -> None:
        for ticket in self._active:
            ticket.publish()
        with self._changed:
            self._active = [ticket for ticket in self._active if ticket.sequence.finish_reason is None]


_services: weakref.WeakSet[Service] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """No thread may be inside a kernel when the interpreter goes away."""
    for service in list(_services):
        service.close()
