"""Every operation of every installed backend against `reference`, over random shapes and ragged steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operands import Sequences, attention_heads, delta_net, floats, matrix, normal

from pagelift.backends import (
    Array,
    AttentionHeads,
    Backend,
    LayerNorm,
    Linear,
    RmsNorm,
    RotaryTable,
    SequenceCache,
    installed_backends,
    open_backend,
)
from pagelift.core.errors import EngineError, ShapeError

REFERENCE = open_backend("reference")
BACKENDS = [open_backend(name) for name in installed_backends() if name not in ("reference", "cpu")]  # cpu: test_precision.py
TOLERANCE = 5e-5
"""Largest difference allowed, relative to the largest value of the result; float32 sums of up to 1,100 terms."""

FORMATS = (
    ["f32", "f16", "bf16"] + [f"{bits}/{group}/bf16" for bits in (2, 3, 4, 5, 6, 8) for group in (32, 64, 128)] + ["4/64/f32", "6/32/f16"]
)
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=25, deadline=None)
each_backend = pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)


def close(found: Array, expected: Array) -> bool:
    assert found.shape == expected.shape
    return bool(np.abs(found - expected).max() <= TOLERANCE * max(1.0, np.abs(expected).max()))


def agree(backend: Backend, operation: Callable[[Backend, Callable[[np.ndarray], Array]], Any]) -> None:
    """operation(backend, to_array) gives an array or a list of arrays; both backends must give the same."""
    results = []
    for one in (backend, REFERENCE):
        y = operation(one, one.from_numpy)
        results.append([one.to_numpy(part) for part in (y if isinstance(y, list) else [y])])
    for found, expected in zip(*results, strict=True):
        assert close(found, expected)


@each_backend
@few
@given(seed=seeds, out_features=st.integers(1, 70), kind=st.sampled_from(FORMATS), data=st.data())
def test_linear(backend: Backend, seed: int, out_features: int, kind: str, data: st.DataObject) -> None:
    rows, wide = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9))
    rng = np.random.default_rng(seed)
    in_features = wide * int(kind.split("/")[1]) if "/" in kind else data.draw(st.sampled_from([wide, 16 * wide, 1024 + wide]))
    bias = floats(normal(rng, out_features), "bf16") if data.draw(st.booleans()) else None
    layer = Linear(matrix(rng, out_features, in_features, kind), bias)
    x, residual = normal(rng, rows, in_features), normal(rng, rows, out_features)
    columns = rng.integers(0, out_features, data.draw(st.integers(1, 12)))

    def operation(one: Backend, to: Callable[[np.ndarray], Array]) -> list[Array]:
        weight = one.load_linear(layer)
        return [one.linear(to(x), weight), one.linear(to(x), weight, to(residual)), one.linear_columns(to(x), weight, columns)]

    agree(backend, operation)


@each_backend
@pytest.mark.parametrize("kind", FORMATS)
def test_many_rows_over_a_wide_layer(backend: Backend, kind: str) -> None:
    rng = np.random.default_rng(1)
    layer, x = Linear(matrix(rng, 70, 1152, kind)), normal(rng, 530, 1152)
    agree(backend, lambda one, to: one.linear(to(x), one.load_linear(layer)))


@each_backend
def test_linear_refuses_rows_of_another_width(backend: Backend) -> None:
    rng = np.random.default_rng(0)
    weight = backend.load_linear(Linear(matrix(rng, 3, 4, "f32")))
    with pytest.raises(ShapeError):
        backend.linear(backend.from_numpy(normal(rng, 2, 5)), weight)


@each_backend
@few
@given(seed=seeds, kind=st.sampled_from(FORMATS), ids=st.lists(st.integers(0, 10), min_size=1, max_size=20))
def test_rows(backend: Backend, seed: int, kind: str, ids: list[int]) -> None:
    rng = np.random.default_rng(seed)
    table = matrix(rng, 11, 256, kind)

    def operation(one: Backend, to: Callable[[np.ndarray], Array]) -> list[Array]:
        x = one.embedding(one.load_embedding(table), np.array(ids))
        chosen = one.take_rows(x, np.array([len(ids) - 1, 0]))
        spare = one.take_rows(x, np.arange(len(ids)))  # put_rows may reuse its operand
        return [x, chosen, one.put_rows(spare, len(ids) - 1, to(np.ones((1, 256), np.float32)))]

    agree(backend, operation)


@each_backend
@few
@given(seed=seeds, shape=st.sampled_from([(1, 1), (3, 8), (2, 3, 12), (5, 33), (1, 1152), (300, 20)]), scale=st.sampled_from([1.0, 100.0]))
def test_norms_and_activations(backend: Backend, seed: int, shape: tuple[int, ...], scale: float) -> None:
    rng = np.random.default_rng(seed)
    x, gate, w, b = scale * normal(rng, *shape), scale * normal(rng, *shape), normal(rng, shape[-1]), normal(rng, shape[-1])

    def operation(one: Backend, to: Callable[[np.ndarray], Array]) -> list[Array]:
        rms, layer = RmsNorm(to(w), 1e-6), LayerNorm(to(w), to(b), 1e-3)
        a, g = to(x), to(gate)
        rows = [one.rms_norm(a, rms), one.layer_norm(a, layer), one.gated_rms_norm(a, g, rms)]
        return [*rows, one.silu_mul(g, a), one.sigmoid_mul(g, a), one.gelu(a, "tanh"), one.gelu(a, "erf")]

    agree(backend, operation)


@each_backend
@few
@given(seed=seeds, rows=st.integers(1, 40), heads=st.integers(1, 3), dims=st.sampled_from([(4, 2), (10, 3), (16, 8), (72, 36), (33, 0)]))
def test_rotary_and_vision_attention(backend: Backend, seed: int, rows: int, heads: int, dims: tuple[int, int]) -> None:
    rng = np.random.default_rng(seed)
    dim, half = dims
    lengths = [rows // 3, rows - rows // 3] if rows > 2 else [rows]
    angles, qkv = normal(rng, rows, half), normal(rng, rows, 3 * heads * dim)

    def operation(one: Backend, to: Callable[[np.ndarray], Array]) -> list[Array]:
        table, whole = RotaryTable(to(np.cos(angles)), to(np.sin(angles))), to(qkv)
        q, k, v = (whole[:, i * heads * dim : (i + 1) * heads * dim].reshape(rows, heads, dim) for i in range(3))
        rotated = one.rotary(q, table)
        return [rotated, one.full_attention(rotated, k, v, lengths), one.picture_attention(whole, heads, table, lengths)]

    agree(backend, operation)


steps = st.lists(
    st.tuples(st.lists(st.sampled_from([0, 1, 2, 7, 40, 90]), min_size=3, max_size=3), st.booleans(), st.integers(0, 90)),
    min_size=1,
    max_size=5,
).filter(lambda steps: all(any(lengths) for lengths, _, _ in steps))
"""Rows of three sequences per step, whether they are drafts, and how many of these stay at most."""

Take = Callable[[Any], Array]


def play(one: Backend, sequences: Sequences, script: Sequence[tuple[list[int], bool, int]], take: Take) -> list[Array]:
    """Run a script of ragged steps; drafts are decided, and now and then a sequence and a copy of it go different ways."""
    results = []
    spare: SequenceCache | None = None

    def go(group: Sequences, lengths: list[int], draft: bool = False) -> Any:
        batch = group.batch(lengths, draft)
        results.append(one.to_numpy(take(batch)))
        group.close(batch)
        return batch

    for number, (lengths, draft, kept) in enumerate(script):
        if number % 2:
            spare, sequences.caches[0] = sequences.caches[0], sequences.caches[0].copy()
            go(Sequences([spare]), [3])
        for segment in go(sequences, lengths, draft).segments:
            if draft:
                segment.cache.keep(min(kept, segment.length))
        if spare is not None:  # neither has noticed what the other wrote
            go(Sequences([spare]), [2])
    return results


def attention_step(one: Backend, heads: AttentionHeads, rng: np.random.Generator, batch: Any) -> Array:
    q_size, rows = (2 if heads.gated else 1) * heads.heads * heads.head_dim, batch.rows
    q, k, v = (one.from_numpy(normal(rng, rows, n)) for n in (q_size, heads.kv_heads * heads.head_dim, heads.kv_heads * heads.head_dim))
    angles = normal(rng, rows, heads.head_dim // 4)
    table = RotaryTable(one.from_numpy(np.cos(angles)), one.from_numpy(np.sin(angles)))
    return one.head_attention((q, k, v), heads, table, batch, batch.layer_caches(0))


@each_backend
@few
@given(seed=seeds, script=steps, shape=st.sampled_from([(6, 2, 16), (4, 4, 8), (8, 1, 20), (2, 2, 72)]), gated=st.booleans())
def test_cached_attention(backend: Backend, seed: int, script: Any, shape: tuple[int, int, int], gated: bool) -> None:
    def operation(one: Backend) -> list[Array]:
        rng = np.random.default_rng(seed)
        made = attention_heads(one, rng, shape)
        heads = AttentionHeads(*shape, made.q_norm, made.k_norm, gated)
        sequences = Sequences.of_kv(one, heads, 3)
        return play(one, sequences, script, partial(attention_step, one, heads, rng))

    results = [operation(one) for one in (backend, REFERENCE)]
    assert all(close(found, expected) for found, expected in zip(*results, strict=True))


@each_backend
@few
@given(seed=seeds, script=steps, heads=st.sampled_from([(1, 1), (2, 6), (2, 2)]), dims=st.sampled_from([(8, 12), (16, 16), (5, 33)]))
def test_delta_net(backend: Backend, seed: int, script: Any, heads: tuple[int, int], dims: tuple[int, int]) -> None:
    def operation(one: Backend) -> list[Array]:
        rng = np.random.default_rng(seed)
        net = delta_net(one, rng, heads, dims)

        def take(batch: Any) -> Array:
            sizes = (net.channels, net.value_heads * net.value_dim, net.value_heads, net.value_heads)
            projected = tuple(one.from_numpy(normal(rng, batch.rows, n)) for n in sizes)
            return one.delta_net(projected, net, batch, batch.layer_caches(0))

        return play(one, Sequences.of_states(one, net, 3), script, take)

    results = [operation(one) for one in (backend, REFERENCE)]
    assert all(close(found, expected) for found, expected in zip(*results, strict=True))


@each_backend
@few
@given(seed=seeds, rows=st.integers(1, 6), kind=st.sampled_from(FORMATS))
def test_blocks_and_logits(backend: Backend, seed: int, rows: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    sizes = [(128, 256), (128, 256), (256, 128), (40, 256)]
    layers = [Linear(matrix(rng, *size, kind), floats(normal(rng, size[0]), "f32")) for size in sizes]
    x, w = normal(rng, rows, 256), normal(rng, 256)
    chosen, tokens = rng.integers(0, rows, 3), np.array([39, 0, 7])

    def operation(one: Backend, to: Callable[[np.ndarray], Array]) -> list[Array]:
        gate, up, down, head = map(one.load_linear, layers)
        norm = RmsNorm(to(w), 1e-6)
        blocks = [one.swiglu_block(to(x), norm, (gate, up, down)), one.gelu_block(to(x), norm, (gate, down), "tanh")]
        return [*blocks, one.logits(to(x), norm, head, chosen), one.logits(to(x), norm, head, chosen, tokens)]

    agree(backend, operation)


@each_backend
@few
@given(lengths=st.lists(st.integers(1, 300), min_size=1, max_size=5), heads=st.sampled_from([(2, 1, 8), (4, 2, 40)]))
def test_keys_and_values_take_no_more_than_the_backend_says(backend: Backend, lengths: list[int], heads: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(0)
    made = attention_heads(backend, rng, heads)
    sequences = Sequences.of_kv(backend, made, 1)
    (cache,) = sequences.caches
    for length in lengths:
        batch = sequences.batch([length])
        q, k, v = (backend.from_numpy(normal(rng, length, n, heads[2])) for n in (heads[0], heads[1], heads[1]))
        backend.evaluate(backend.attention(q, k, v, batch, batch.layer_caches(0)))
        sequences.close(batch)
        most = backend.kv_bytes(made, cache.length)
        assert cache.nbytes <= most
        assert most < 4 * cache.nbytes  # a promise that is much too large keeps others waiting


@each_backend
def test_a_draft_must_be_decided_and_can_be_decided_once(backend: Backend) -> None:
    rng = np.random.default_rng(0)
    net, heads = delta_net(backend, rng), attention_heads(backend, rng)
    cache = SequenceCache([backend.new_delta_state(net), backend.new_kv_cache(heads)])
    sequences = Sequences([cache])
    batch = sequences.batch([2], draft=True)
    state, kv = (batch.layer_caches(i) for i in range(2))
    projected = tuple(backend.from_numpy(normal(rng, 2, n)) for n in (net.channels, 72, 6, 6))
    backend.delta_net(projected, net, batch, state)
    q, k, v = (backend.from_numpy(normal(rng, 2, n, 16)) for n in (6, 2, 2))
    backend.attention(q, k, v, batch, kv)
    sequences.close(batch)
    before = cache.nbytes
    assert cache.layers[0].nbytes <= backend.state_bytes(net, draft=2) <= 4 * cache.layers[0].nbytes
    for forbidden in (lambda: sequences.batch([1]), cache.copy, cache.layers[0].copy, lambda: cache.keep(3), lambda: cache.keep(-1)):
        with pytest.raises(EngineError):
            forbidden()
    cache.keep(1)
    assert cache.layers[1].length == cache.length == 1
    assert 0 < cache.nbytes < before
    assert cache.layers[0].nbytes <= backend.state_bytes(net) < backend.state_bytes(net, draft=2)
    for layer in cache.layers:
        with pytest.raises(EngineError):
            layer.keep(2, 2)
