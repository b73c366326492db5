"""Interrupts: raised at once, held back while asked for, and never lost."""

from __future__ import annotations

import signal
import threading

import pytest

from pagelift.commands.interrupts import Interrupts


def test_an_interrupt_is_raised_and_remembered() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_that_is_held_comes_at_the_end() -> None:
    steps = []

    def hold(interrupts: Interrupts) -> None:
        with interrupts.held():
            signal.raise_signal(signal.SIGINT)
            steps.append("went on")

    with Interrupts() as interrupts:
        interrupts.check()
        with pytest.raises(KeyboardInterrupt):
            hold(interrupts)
    assert steps == ["went on"]


def test_other_threads_leave_the_signal_alone() -> None:
    before, seen = signal.getsignal(signal.SIGINT), []

    def enter() -> None:
        with Interrupts() as interrupts, interrupts.held():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [before]
