"""Divergence of distributions, and intervals over documents."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pagelift.evals.bootstrap import Shares, interval
from pagelift.evals.divergence import compare_logits, join

LOGITS = arrays(np.float32, (5, 7), elements=st.floats(-30, 30, width=32))


def test_by_hand() -> None:
    p, q = np.array([[0.5, 0.25, 0.25]]), np.array([[0.25, 0.5, 0.25]])
    found = compare_logits(np.log(p).astype(np.float32), (np.log(q) + 3).astype(np.float32), np.array([0]))
    assert found.kl == pytest.approx([0.5 * np.log(2) - 0.25 * np.log(2)], abs=1e-6)
    assert found.to_dict() == pytest.approx(
        {"kl_mean": 0.17329, "kl_median": 0.17329, "kl_p99": 0.17329, "top1": 0.0, "perplexity_ratio": 2.0, "perplexity": 4.0}, abs=1e-4
    )


@given(LOGITS, LOGITS)
def test_it_is_a_divergence(one: np.ndarray, two: np.ndarray) -> None:
    targets = np.arange(5)
    itself = compare_logits(one, one.copy(), targets)
    assert (itself.kl == 0).all()
    assert itself.same.all()
    found = compare_logits(one, two, targets)
    assert (found.kl >= 0).all()
    assert np.isfinite(found.kl).all()
    measures = found.to_dict()
    assert measures["kl_p99"] >= measures["kl_median"]
    assert compare_logits(one + np.float32(1), two, targets).kl == pytest.approx(found.kl, abs=1e-4)


def test_nothing_has_no_measure() -> None:
    assert set(join([]).to_dict().values()) == {None}


SHARES = st.lists(st.tuples(st.floats(0, 50), st.integers(0, 40)), min_size=2, max_size=30)


@given(SHARES)
def test_the_interval_holds_the_mean(pairs: list[tuple[float, int]]) -> None:
    shares = Shares(np.array([total * count for total, count in pairs]), np.array([float(count) for _, count in pairs]))
    found = interval(shares)
    if shares.mean is None:
        assert found is None
        return
    assert found is not None
    values = [total for total, count in pairs if count]
    assert min(values) - 1e-9 <= found[0] <= found[1] <= max(values) + 1e-9
    assert interval(shares, shares) == (0.0, 0.0)


def test_intervals_of_many_documents() -> None:
    rng = np.random.default_rng(3)
    counts = rng.integers(5, 40, 80).astype(float)
    shares = Shares(counts * rng.gamma(2, 0.1, 80), counts)
    low, high = interval(shares) or (0, 0)
    assert shares.mean is not None
    assert low < shares.mean < high
    assert high - low < shares.mean / 2
    more = Shares(shares.totals + 0.05 * counts, counts)
    paired = interval(more, shares)
    assert paired == pytest.approx((0.05, 0.05))  # much narrower than either interval, since documents are the same


def test_one_document_has_no_interval() -> None:
    assert interval(Shares(np.ones(1), np.ones(1))) is None
    assert interval(Shares(np.zeros(3), np.zeros(3))) is None
