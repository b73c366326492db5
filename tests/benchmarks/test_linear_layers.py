"""The benchmark of linear layers: every kind and number of rows gets a possible timing."""

from __future__ import annotations

import pytest

pytest.importorskip("pagelift.backends.cpu")


def test_every_kind_is_timed(scripts) -> None:
    linear_layers = scripts("linear_layers")
    timings = list(linear_layers.measure((64, 256), 2, 0.0))
    expected = {(kind, rows, prompt) for kind in linear_layers.KINDS for rows in linear_layers.ROWS for prompt in (False, True)}
    assert {(t.kind, t.rows, t.prompt) for t in timings} == expected
    assert all(t.ms > 0 and t.gbs > 0 and t.matmul_share > 0 for t in timings)
