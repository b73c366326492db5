"""Drawing tokens: limits, repeatability, distribution."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagelift.core.errors import ConfigError, EngineError
from pagelift.decoding import Sampling, sample

LOGITS = np.log(np.array([0.5, 0.3, 0.15, 0.05], np.float32))


def draws(sampling: Sampling, count: int = 4000) -> np.ndarray:
    generator = sampling.generator()
    return np.bincount([sample(LOGITS, sampling, generator).id for _ in range(count)], minlength=4) / count


def test_greedy_takes_the_first_of_equals() -> None:
    token = sample(np.array([0, 2, 2, 1], np.float32), Sampling(), Sampling().generator())
    assert token.id == 1
    assert token.logprob == pytest.approx(2 - np.log(1 + 2 * np.exp(2) + np.exp(1)))


@pytest.mark.parametrize(
    ("temperature", "top_p", "expected"),
    [
        (1.0, 1.0, [0.5, 0.3, 0.15, 0.05]),
        (1.0, 0.8, [0.625, 0.375, 0, 0]),
        (1.0, 0.01, [1, 0, 0, 0]),
        (0.5, 1.0, np.square([0.5, 0.3, 0.15, 0.05]) / 0.365),
    ],
)
def test_draws_follow_the_probabilities(temperature: float, top_p: float, expected: list[float]) -> None:
    assert np.abs(draws(Sampling(temperature, top_p, seed=3)) - expected).max() < 0.03


@pytest.mark.parametrize("size", [1, 511, 512, 513, 2048, 5000])
def test_a_draw_among_many_is_that_of_the_sums_of_all(size: int) -> None:
    source = np.random.default_rng(size)
    logits = (source.normal(size=size) * 3).astype(np.float32)
    logits[source.random(size) < 0.5] = -np.inf
    logits[size // 2] = 0.0
    ends = np.cumsum(np.exp(logits.astype(np.float64) / 0.8))
    sampling = Sampling(0.8, seed=5)
    drawn, same = sampling.generator(), sampling.generator()
    wanted = [int(np.searchsorted(ends, same.random() * ends[-1], side="right")) for _ in range(200)]
    found = [sample(logits, sampling, drawn).id for _ in range(200)]
    assert sum(a != b for a, b in zip(found, wanted, strict=True)) <= 1  # rounding, where a number lies between two
    assert np.isfinite(logits[found]).all()


@pytest.mark.parametrize("temperature", [1e-320, 1e-40, 1e-5])
def test_the_likeliest_token_is_drawn_at_the_lowest_temperatures(temperature: float) -> None:
    assert sample(LOGITS[::-1], Sampling(temperature, seed=1), np.random.default_rng(1)).id == 3


@pytest.mark.parametrize("spread", [0.0, 6.0])
def test_the_nucleus_of_a_large_vocabulary_is_the_same_as_by_sorting_all(spread: float) -> None:
    logits = (np.random.default_rng(1).normal(size=5000) * spread).astype(np.float32)
    weights = np.exp(logits.astype(np.float64))
    order = np.argsort(-weights, kind="stable")
    kept = set(order[: int(np.searchsorted(np.cumsum(weights[order]), 0.7 * weights.sum())) + 1].tolist())
    sampling = Sampling(1.0, 0.7, seed=2)
    generator = sampling.generator()
    assert {sample(logits, sampling, generator).id for _ in range(300)} <= kept


def test_top_log_probabilities_are_those_of_the_model_whatever_the_temperature() -> None:
    token = sample(LOGITS, Sampling(2.0, seed=1, top_logprobs=2), np.random.default_rng(0))
    assert [index for index, _ in token.top] == [0, 1]
    assert np.exp([p for _, p in token.top]) == pytest.approx([0.5, 0.3], rel=1e-5)


@given(st.lists(st.floats(-(2.0**90), 2.0**90, width=32), min_size=1, max_size=20), st.floats(0, 5), st.floats(0.01, 1), st.integers(0, 99))
def test_any_finite_logits_give_a_token(logits: list[float], temperature: float, top_p: float, seed: int) -> None:
    sampling = Sampling(temperature, top_p, seed, top_logprobs=3)
    token = sample(np.array(logits, np.float32), sampling, sampling.generator())
    assert 0 <= token.id < len(logits)
    assert token.logprob <= 0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_logits_that_are_no_numbers_are_an_error(bad: float) -> None:
    with pytest.raises(EngineError, match="not a number"):
        sample(np.array([0, bad], np.float32), Sampling(), Sampling().generator())


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -1},
        {"temperature": float("nan")},
        {"top_p": 0},
        {"top_p": 1.1},
        {"seed": -1},
        {"max_tokens": 0},
        {"top_logprobs": 51},
    ],
)
def test_settings_out_of_range_are_refused(wrong: dict) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Sampling(**wrong)
