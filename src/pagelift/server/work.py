"""Work in threads behind bounded queues, with an end that can come early: the client leaves, time is over, the server stops."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, MutableMapping
from functools import partial
from typing import Any, TypeVar

from pagelift.core.errors import PageliftError
from pagelift.server.errors import Cancelled, ClientGone, TimeOver, busy

T = TypeVar("T")
Receive = Callable[[], Any]


class Signal:
    """Tells work to end early, from any thread; the first reason counts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reason: PageliftError | None = None
        self._callbacks: list[Callable[[], None]] = []

    @property
    def is_set(self) -> bool:
        return self._reason is not None

    @property
    def reason(self) -> PageliftError:
        return self._reason or Cancelled("the work was given up")

    def set(self, reason: PageliftError) -> None:
        with self._lock:
            if self._reason is not None:
                return
            self._reason = reason
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def when_set(self, callback: Callable[[], None]) -> None:
        """Call `callback`, which must be quick and not raise, when the signal is set; at once if it is."""
        with self._lock:
            if self._reason is None:
                self._callbacks.append(callback)
                return
        callback()

    def check(self) -> None:
        """Raises the reason when the signal is set."""
        if self._reason is not None:
            raise self._reason


class Lane:
    """Some threads, and a bounded queue before them, first come, first served. Used from one event loop.

    A thread whose caller gave up still counts as running until it ends, so there is never more work than threads.
    """

    def __init__(self, name: str, threads: int, waiting: int) -> None:
        self.name = name
        self.threads = threads
        self.most_waiting = waiting
        self.running = 0
        self._queue: deque[asyncio.Future[None]] = deque()
        self._seconds = 1.0  # that work took of late, smoothed

    @property
    def waiting(self) -> int:
        return len(self._queue)

    async def run(self, work: Callable[[], T], signal: Signal) -> T:
        """The result of `work` in a thread. Raises the signal's reason as soon as that is set, ApiError 429 when the queue is full."""
        loop = asyncio.get_running_loop()
        await self._enter(signal)
        start = time.perf_counter()
        future: asyncio.Future[T] = loop.create_future()
        threading.Thread(target=_work, args=(loop, future, work), name=f"pagelift-{self.name}", daemon=True).start()
        future.add_done_callback(lambda done: self._leave(done, time.perf_counter() - start))
        over = loop.create_future()
        signal.when_set(lambda: in_loop(loop, partial(settle, over, None)))
        try:
            await asyncio.wait({future, over}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            over.cancel()
        if future.done():
            return future.result()
        raise signal.reason

    async def _enter(self, signal: Signal) -> None:
        signal.check()
        if self.running < self.threads and not self._queue:
            self.running += 1
            return
        if self.waiting >= self.most_waiting:
            raise busy(self.name, self.retry_after_s)
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._queue.append(turn)
        signal.when_set(lambda: in_loop(loop, lambda: settle(turn, None, signal.reason)))
        try:
            await turn
        except BaseException:
            if turn in self._queue:
                self._queue.remove(turn)
            elif turn.done() and not turn.cancelled() and turn.exception() is None:
                self._free()  # the turn came in the moment in which the caller was cancelled
            raise

    def _leave(self, done: asyncio.Future[T], seconds: float) -> None:
        done.cancelled() or done.exception()  # or asyncio complains about errors that nobody waits for any more
        self._seconds += 0.2 * (seconds - self._seconds)
        self._free()

    def _free(self) -> None:
        self.running -= 1
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                self.running += 1
                turn.set_result(None)
                return

    @property
    def retry_after_s(self) -> int:
        """When the queue may have moved on, by how long work took of late."""
        return max(1, min(60, round(self._seconds * (self.waiting + 1) / self.threads / 4)))


def _work(loop: asyncio.AbstractEventLoop, future: asyncio.Future[T], work: Callable[[], T]) -> None:
    """Runs in a thread, which the end of the process does not wait for."""
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001  it goes to the caller
        in_loop(loop, partial(settle, future, None, error))
    else:
        in_loop(loop, partial(settle, future, result))


def settle(future: asyncio.Future[Any], result: object, error: BaseException | None = None) -> None:
    """Complete a future that may be complete already."""
    if not future.done():
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)


def in_loop(loop: asyncio.AbstractEventLoop, call: Callable[[], Any]) -> None:
    """Call something in the event loop from any thread; nothing when the loop is closed already."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(call)


@contextlib.asynccontextmanager
async def watched(receive: Receive, seconds: float, signals: set[Signal]) -> AsyncIterator[Signal]:
    """A signal that is set when the client goes away, after `seconds`, and at the end of the block; one of `signals` meanwhile.

    receive: of a request whose body has been read.
    """
    signal = Signal()
    signals.add(signal)
    limit = TimeOver(f"the request took longer than {seconds:g} s, the limit of this server; give fewer pages, or use a job")
    timer = asyncio.get_running_loop().call_later(seconds, signal.set, limit)
    watcher = asyncio.ensure_future(_until_gone(receive, signal))
    try:
        yield signal
    finally:
        timer.cancel()
        watcher.cancel()
        signals.discard(signal)
        signal.set(Cancelled("the request is over"))


async def _until_gone(receive: Receive, signal: Signal) -> None:
    message: MutableMapping[str, Any] = {}
    while message.get("type") != "http.disconnect":
        message = await receive()
    signal.set(ClientGone("the client went away"))
