"""The benchmark of linear layers: every kind and number of rows gets a possible timing."""

from __future__ import annotations

import pytest

pytest.importorskip("pagelift.backends.cpu")


def test_every_kind_is_timed(scripts) -> None:
    kernels = scripts("kernels")
    timings = list(kernels.measure((64, 256), 2, 0.0))
    assert {(t.kind, t.rows) for t in timings} == {(kind, rows) for kind in kernels.KINDS for rows in kernels.ROWS}
    assert all(t.ms > 0 and t.gbs > 0 and t.matmul_share > 0 for t in timings)
