"""The knapsack against trying everything."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagelift.core.errors import ConfigError
from pagelift.weights.quant.knapsack import Option, solve

OPTIONS = st.lists(st.builds(Option, st.integers(1, 30), st.floats(0, 10, allow_nan=False)), min_size=1, max_size=4)


@given(st.lists(OPTIONS, min_size=1, max_size=5), st.integers(5, 100))
def test_no_other_choice_is_better(items: list[list[Option]], budget: int) -> None:
    fitting = [
        sum(option.cost for option in choice) for choice in itertools.product(*items) if sum(option.size for option in choice) <= budget
    ]
    if not fitting:
        with pytest.raises(ConfigError, match="too few"):
            solve(items, budget)
        return
    chosen = [options[place] for options, place in zip(items, solve(items, budget), strict=True)]
    assert sum(option.size for option in chosen) <= budget
    assert sum(option.cost for option in chosen) <= min(fitting) * (1 + 1e-6) + 1e-12


def test_a_model_of_nine_billion_weights_takes_seconds() -> None:
    rng = np.random.default_rng(0)
    items = []
    for _ in range(32):
        for rows, columns in (
            (8192, 4096),
            (4096, 4096),
            (32, 4096),
            (32, 4096),
            (4096, 4096),
            (12288, 4096),
            (12288, 4096),
            (4096, 12288),
        ):
            weight = rng.lognormal() * rows * columns
            items.append(
                [
                    Option(rows * (columns * bits // 8 + columns // group * 4), weight * 3.7**-bits * (1 + 0.1 * np.log2(group / 32)))
                    for bits in (2, 3, 4, 5, 6, 8)
                    for group in (32, 64, 128)
                ]
            )
    start = time.process_time()
    budget = int(sum(options[7].size for options in items) * 1.02)
    chosen = [options[place] for options, place in zip(items, solve(items, budget), strict=True)]
    assert 0.9999 * budget < sum(option.size for option in chosen) <= budget
    assert time.process_time() - start < 60
