"""Least squares and compensation: what they promise of errors, and nothing that is compensated twice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagelift.weights.quant.affine import round_to_nearest, rounded
from pagelift.weights.quant.formats import Format
from pagelift.weights.quant.gptq import compensation, factor_in_place, output_error, round_with_compensation
from pagelift.weights.quant.least_squares import round_by_least_squares

FORMS = [Format(2, 32), Format(3, 64), Format(4, 128), Format(5, 64), Format(8, 64)]


def case(seed: int, features: int = 256) -> tuple[np.ndarray, np.ndarray]:
    """A weight (48, features), and inputs (600, features) that depend on each other and differ in size; some never occur."""
    rng = np.random.default_rng(seed)
    mixing = np.eye(features) + rng.standard_normal((features, features)) * 2 / np.sqrt(features)
    x = rng.standard_normal((600, features)) @ mixing * np.exp(rng.standard_normal(features))
    x[:, rng.random(features) < 0.05] = 0
    weight = rng.standard_normal((48, features)) * rng.uniform(0.1, 2, (48, 1)) / np.sqrt(features)
    return rounded(weight.astype(np.float32), "bf16"), x.astype(np.float32)


@settings(max_examples=15)
@given(st.integers(0, 1000), st.sampled_from(FORMS))
def test_least_squares_is_never_worse_than_nearest(seed: int, form: Format) -> None:
    weight, x = case(seed)
    importance = np.square(x).mean(axis=0)
    errors = []
    for made in (round_by_least_squares(weight, form, importance), round_to_nearest(weight, form)):
        groups = (np.square(made.values() - weight) * importance).reshape(48, -1, form.group_size).sum(axis=2)
        errors.append(groups)
    assert (errors[0] <= errors[1] * (1 + 1e-4) + 1e-9).all()
    if form.bits < 6:
        assert errors[0].sum() < 0.9 * errors[1].sum()


@settings(max_examples=10)
@given(st.integers(0, 1000), st.sampled_from(FORMS))
def test_compensation_lowers_the_error_of_the_output(seed: int, form: Format) -> None:
    weight, x = case(seed)
    moments = x.T @ x
    made = round_with_compensation(weight, form, compensation(moments))
    assert output_error(weight, made.values(), moments) < 0.7 * output_error(weight, round_to_nearest(weight, form).values(), moments)
    outputs = np.square(x @ (made.values() - weight).T, dtype=np.float64).sum()
    assert output_error(weight, made.values(), moments) == pytest.approx(outputs, rel=1e-3)


def test_without_dependence_there_is_nothing_to_compensate() -> None:
    """With moments that are diagonal every column keeps its weights: codes are the nearest ones on the grid that was chosen."""
    weight, x = case(3)
    moments = np.diag(np.square(x).mean(axis=0))
    made = round_with_compensation(weight, Format(4, 64), compensation(moments))
    scales, offsets = (np.repeat(part, 64, axis=1) for part in (made.grid.scales, made.grid.offsets))
    assert np.array_equal(made.codes, np.clip(np.rint((weight - offsets) / scales), 0, 15))


def test_each_column_is_compensated_once() -> None:
    """The same as the definition by the inverse of the moments, one column after the other over all that are behind it, without blocks."""
    weight, x = case(5, 384)
    form, moments = Format(3, 32), x.T @ x
    made = round_with_compensation(weight, form, compensation(moments))
    upper = np.linalg.cholesky(np.linalg.inv(damped(moments))).T
    scales, offsets = (np.repeat(part, form.group_size, axis=1) for part in (made.grid.scales, made.grid.offsets))
    left = weight.astype(np.float64)
    codes = np.empty(weight.shape, int)
    for j in range(384):
        codes[:, j] = np.clip(np.rint((left[:, j] - offsets[:, j]) / scales[:, j]), 0, 7)
        error = (left[:, j] - (codes[:, j] * scales[:, j] + offsets[:, j])) / upper[j, j]
        left[:, j + 1 :] -= np.outer(error, upper[j, j + 1 :])
    assert (codes == made.codes).mean() > 0.999  # the last bit of a sum may decide between two codes


def damped(moments: np.ndarray) -> np.ndarray:
    """Moments (in, in) as compensation takes them, in double precision."""
    diagonal = np.diag(moments).astype(np.float64)
    mean = diagonal[diagonal > 0].mean()
    return moments.astype(np.float64) + np.diag(np.where(diagonal > 0, 0, mean) + 0.01 * mean)


def test_shares_and_costs_make_up_the_moments() -> None:
    _, x = case(7)
    moments = x.T @ x
    made = compensation(moments)
    assert np.array_equal(made.shares, np.triu(made.shares, 1))
    factor = made.shares.astype(np.float64) + np.eye(len(moments))
    assert np.allclose(factor * made.costs @ factor.T, damped(moments), atol=1e-4 * np.diag(moments).max())


def test_moments_of_rank_one_and_of_nothing_are_borne() -> None:
    weight, x = case(9)
    for moments in (np.outer(x[0], x[0]), np.zeros((256, 256), np.float32)):
        made = round_with_compensation(weight, Format(4, 64), compensation(moments.astype(np.float32)))
        assert np.isfinite(made.values()).all()
        assert np.abs(made.values() - weight).max() < 0.5


@pytest.mark.parametrize("size", [1, 63, 65, 511, 513, 1100])
def test_factors_in_place(size: int) -> None:
    rng = np.random.default_rng(size)
    x = rng.standard_normal((size + 50, size))
    matrix = x.T @ x / size + np.eye(size)
    lower = matrix.copy()
    factor_in_place(lower)
    assert np.abs(lower @ lower.T - matrix).max() < 1e-9 * size
    with pytest.raises(np.linalg.LinAlgError):
        factor_in_place(matrix - 100 * np.eye(size))
