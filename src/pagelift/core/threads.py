"""Work in several threads at a time that does not outlive the program: whoever interrupts it need not wait for answers from elsewhere."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def side_by_side(tasks: Iterable[Callable[[], T]], at_once: int) -> Generator[T, None, None]:
    """The results of tasks in their order, `at_once` of them worked on at the same time, a few more waiting.

    The first error is raised in its place; tasks that have not begun by then, or when nobody wants more results, never do.
    """
    slots, ended = threading.Semaphore(at_once), threading.Event()
    started: deque[Future[T]] = deque()
    todo = iter(tasks)
    try:
        while True:
            started += [_start(task, slots, ended) for task in islice(todo, 2 * at_once - len(started))]
            if not started:
                return
            yield started.popleft().result()
    finally:
        ended.set()


def _start(task: Callable[[], T], slots: threading.Semaphore, ended: threading.Event) -> Future[T]:
    future: Future[T] = Future()

    def work() -> None:
        with slots:
            if ended.is_set():
                return
            try:
                future.set_result(task())
            except BaseException as error:  # noqa: BLE001 - raised where the result is asked for
                future.set_exception(error)

    threading.Thread(target=work, name="pagelift-work", daemon=True).start()
    return future
