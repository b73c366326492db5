"""The reference backend against slower or independent definitions, in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
from operands import Sequences, attention_heads, delta_net, dense, linear, normal, run_delta

from pagelift.backends import LayerNorm, Linear, Ragged, RmsNorm, RotaryTable, SequenceCache
from pagelift.backends.reference import ReferenceBackend
from pagelift.core.errors import EngineError, ShapeError

BACKEND = ReferenceBackend()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x.astype(np.float64)))


def test_linear_adds_bias_and_residual_and_picks_columns(rng: np.random.Generator) -> None:
    layer, x, residual = linear(rng, 7, 5, bias=True), normal(rng, 3, 5), normal(rng, 3, 7)
    expected = x.astype(np.float64) @ layer.matrix.values.array.T + layer.bias.array
    assert np.allclose(BACKEND.linear(x, layer, residual), expected + residual, atol=1e-5)
    assert np.allclose(BACKEND.linear_columns(x, layer, np.array([6, 0])), expected[:, [6, 0]], atol=1e-5)


def test_linear_names_widths_that_do_not_fit(rng: np.random.Generator) -> None:
    with pytest.raises(ShapeError, match=r"5.*4"):
        BACKEND.linear(normal(rng, 2, 5), Linear(dense(normal(rng, 3, 4))))


def test_norms(rng: np.random.Generator) -> None:
    x, w, b = normal(rng, 2, 3, 8) + 2, normal(rng, 8), normal(rng, 8)
    d = x.astype(np.float64)
    assert np.allclose(BACKEND.rms_norm(x, RmsNorm(w, 1e-3)), d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-3) * w, atol=1e-5)
    expected = (d - d.mean(-1, keepdims=True)) / np.sqrt(d.var(-1, keepdims=True) + 1e-3) * w + b
    assert np.allclose(BACKEND.layer_norm(x, LayerNorm(w, b, 1e-3)), expected, atol=1e-5)


def test_activations(rng: np.random.Generator) -> None:
    x, y = 5 * normal(rng, 4, 6), normal(rng, 4, 6)
    assert np.allclose(BACKEND.silu_mul(x, y), x * sigmoid(x) * y, atol=1e-5)
    assert np.allclose(BACKEND.sigmoid_mul(x, y), sigmoid(x) * y, atol=1e-5)
    exact = np.vectorize(lambda v: 0.5 * v * math.erfc(-v / math.sqrt(2)))(x.astype(np.float64))
    assert np.allclose(BACKEND.gelu(x, "erf"), exact, atol=1e-6)
    assert 1e-5 < np.abs(BACKEND.gelu(x, "tanh") - exact).max() < 1e-3


def test_rotary_turns_pairs_and_leaves_the_rest(rng: np.random.Generator) -> None:
    x, angles = normal(rng, 3, 2, 10), normal(rng, 3, 3)
    y = BACKEND.rotary(x, RotaryTable(np.cos(angles), np.sin(angles)))
    turned = (x[..., :3] + 1j * x[..., 3:6]) * np.exp(1j * angles[:, None])
    assert np.allclose(y, np.concatenate([turned.real, turned.imag, x[..., 6:]], -1), atol=1e-5)


def test_attention_looks_back_only_within_its_sequence(rng: np.random.Generator) -> None:
    heads = attention_heads(BACKEND, rng)
    sequences = Sequences.of_kv(BACKEND, heads, 2)
    seen: list[list[np.ndarray]] = [[], []]
    for lengths in ([3, 2], [1, 20], [0, 1]):
        batch, rows = sequences.batch(lengths), sum(lengths)
        q, k, v = normal(rng, rows, 6, 16), normal(rng, rows, 2, 16), normal(rng, rows, 2, 16)
        y = BACKEND.attention(q, k, v, batch, batch.layer_caches(0))
        owners = np.repeat([0, 1], lengths)
        for row, owner in enumerate(owners):
            seen[owner].append(np.stack([k[row], v[row]]))
            past = np.stack(seen[owner]).astype(np.float64)  # (S, 2, kv_heads, head_dim)
            for head in range(6):
                scores = past[:, 0, head // 3] @ q[row, head] / 4
                weights = np.exp(scores - scores.max())
                assert np.allclose(y[row, head], weights @ past[:, 1, head // 3] / weights.sum(), atol=1e-5)
        sequences.close(batch)


def test_full_attention_stays_within_its_run(rng: np.random.Generator) -> None:
    q, k, v = (normal(rng, 7, 2, 4) for _ in range(3))
    y = BACKEND.full_attention(q, k, v, [3, 4])
    for first, last in ((0, 3), (3, 7)):
        scores = np.einsum("lhd,shd->hls", q[first:last].astype(np.float64), k[first:last]) / 2
        weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
        assert np.allclose(y[first:last], np.einsum("hls,shd->lhd", weights, v[first:last]), atol=1e-5)


def test_delta_rule_and_convolution_by_the_book(rng: np.random.Generator) -> None:
    net = delta_net(BACKEND, rng)
    sequences = Sequences.of_states(BACKEND, net, 1)
    inputs = normal(rng, 9, net.channels), normal(rng, 9, 6), normal(rng, 9, 6)
    y = np.concatenate([run_delta(BACKEND, net, sequences.batch([n]), [x[s : s + n] for x in inputs]) for s, n in ((0, 5), (5, 1), (6, 3))])
    qkv, a, b = (x.astype(np.float64) for x in inputs)
    padded = np.concatenate([np.zeros((3, net.channels)), qkv])
    mixed = np.array([sum(padded[t + i] * net.conv[:, i] for i in range(4)) for t in range(9)])
    mixed *= sigmoid(mixed)
    for head in range(6):
        state = np.zeros((8, 12))
        for t in range(9):
            q, k = (mixed[t, o + 8 * (head // 3) : o + 8 * (head // 3) + 8] for o in (0, 16))
            q, k = (x / math.sqrt((x * x).sum() + 1e-6) for x in (q, k))
            state *= math.exp(-math.exp(net.a_log[head]) * math.log1p(math.exp(a[t, head] + net.dt_bias[head])))
            state += np.outer(k, sigmoid(b[t, head]) * (mixed[t, 32 + 12 * head : 44 + 12 * head] - state.T @ k))
            assert np.allclose(y[t, head], state.T @ q / math.sqrt(8), atol=1e-5)


@pytest.mark.parametrize("kept", [0, 1, 4, 6])
def test_keep_leaves_what_a_step_of_the_kept_tokens_leaves(rng: np.random.Generator, kept: int) -> None:
    net = delta_net(BACKEND, rng)
    drafted, plain = Sequences.of_states(BACKEND, net, 1), Sequences.of_states(BACKEND, net, 1)
    inputs = normal(rng, 12, net.channels), normal(rng, 12, 6), normal(rng, 12, 6)
    first, block, rest = ([x[part] for x in inputs] for part in (slice(3), slice(3, 9), slice(9, 12)))
    for sequences in (drafted, plain):
        run_delta(BACKEND, net, sequences.batch([3]), first)
    run_delta(BACKEND, net, drafted.batch([6], draft=True), block)
    drafted.caches[0].keep(kept)
    if kept:
        run_delta(BACKEND, net, plain.batch([kept]), [x[:kept] for x in block])
    assert drafted.caches[0].length == plain.caches[0].length == 3 + kept
    ends = [run_delta(BACKEND, net, s.batch([3]), rest) for s in (drafted, plain)]
    assert np.allclose(ends[0], ends[1], atol=1e-6)


def test_a_draft_must_be_decided_and_can_be_decided_once(rng: np.random.Generator) -> None:
    net = delta_net(BACKEND, rng)
    sequences = Sequences.of_states(BACKEND, net, 1)
    cache = sequences.caches[0]
    run_delta(BACKEND, net, sequences.batch([2], draft=True), (normal(rng, 2, net.channels), normal(rng, 2, 6), normal(rng, 2, 6)))
    for forbidden in (lambda: sequences.batch([1]), cache.copy, lambda: cache.keep(3), lambda: cache.keep(-1)):
        with pytest.raises(EngineError):
            forbidden()
    cache.keep(1)
    with pytest.raises(EngineError):
        cache.keep(0)


def test_batches_that_are_not_laid_out_properly_are_refused() -> None:
    cache = SequenceCache([])
    for parts in ([], [(cache, 0, False)], [(cache, 1, False), (cache, 1, False)]):
        with pytest.raises(EngineError):
            Ragged.of(parts)
