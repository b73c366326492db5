"""Fixtures of the server's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from server.running import LINES, Running, running

pytest.importorskip("fastapi")


@pytest.fixture(scope="session")
def layout_server() -> Iterator[Running]:
    """One server with the built-in engine for all tests that only ask."""
    with running() as server:
        yield server


@pytest.fixture(scope="session")
def invoice(pdf: Callable[..., bytes]) -> bytes:
    return pdf(LINES)
