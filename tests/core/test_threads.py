"""Tasks side by side: in order, not too many, and none after an error."""

from __future__ import annotations

import threading
import time
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagelift.core.threads import side_by_side


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 12), st.integers(1, 5))
def test_results_come_in_order_and_no_more_run_than_may(count: int, at_once: int) -> None:
    running, most, lock = [0], [0], threading.Lock()

    def work(number: int) -> int:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        time.sleep(0.001 * (number % 3))
        with lock:
            running[0] -= 1
        return number

    assert list(side_by_side((partial(work, k) for k in range(count)), at_once)) == list(range(count))
    assert most[0] <= at_once


def test_they_do_run_at_the_same_time() -> None:
    together = threading.Barrier(3, timeout=20)
    assert len(list(side_by_side([together.wait] * 3, 3))) == 3


def test_an_error_is_raised_in_its_place_and_ends_the_rest() -> None:
    begun: list[int] = []

    def work(number: int) -> int:
        begun.append(number)
        if number == 2:
            raise KeyError("two")
        return number

    results = side_by_side((partial(work, k) for k in range(50)), 1)
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(KeyError, match="two"):
        next(results)
    time.sleep(0.05)
    assert len(begun) < 10


def test_who_stops_listening_starts_nothing_more() -> None:
    begun: list[int] = []
    results = side_by_side((partial(begun.append, k) for k in range(50)), 2)
    next(results)
    results.close()
    time.sleep(0.05)
    assert len(begun) < 10
