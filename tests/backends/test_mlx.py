"""What the mlx backend does beyond the tests that all backends share; on MLX's CPU device."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operands import Sequences, attention_heads, delta_net, dense, matrix, normal

from pagelift.backends import Dense, HostTensor, Linear, Packed, Ragged, open_backend
from pagelift.backends.reference import unpack_matrix
from pagelift.core.errors import ShapeError
from pagelift.models import Model, Step, open_model, text_positions

mx = pytest.importorskip("mlx.core")
from pagelift.backends.mlx import MlxBackend, backend, delta, elementwise, weights  # noqa: E402

GOLDEN = Path(__file__).parent.parent / "golden" / "text"
BITS, GROUPS = (2, 3, 4, 5, 6, 8), (32, 64, 128)
ONE = MlxBackend()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("group_size", GROUPS)
def test_unpacks_what_mlx_quantizes(bits: int, group_size: int, rng: np.random.Generator) -> None:
    codes, scales, biases = mx.quantize(mx.array(normal(rng, 5, 256)), group_size=group_size, bits=bits)
    expected = np.array(mx.dequantize(codes, scales, biases, group_size=group_size, bits=bits))
    parts = [HostTensor(np.array(part), dtype) for part, dtype in ((codes, "u32"), (scales, "f32"), (biases, "f32"))]
    assert np.abs(unpack_matrix(Packed(*parts, bits, group_size)) - expected).max() <= 1e-6


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("group_size", GROUPS)
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_mlx_unpacks_what_is_packed_here(bits: int, group_size: int, dtype: str, rng: np.random.Generator) -> None:
    packed = matrix(rng, 5, 256, f"{bits}/{group_size}/{dtype}")
    scales, offsets = (mx.array(part.to_float32()) for part in (packed.scales, packed.offsets))
    found = np.array(mx.dequantize(mx.array(packed.codes.array), scales, offsets, group_size=group_size, bits=bits))
    assert np.abs(found - unpack_matrix(packed)).max() <= 1e-6


def rule(q: np.ndarray, k: np.ndarray, v: np.ndarray, log_decay: np.ndarray, beta: np.ndarray, state: np.ndarray) -> tuple:
    """The rule token by token in float64. k, q: (L, key_heads, dim); state: (value_heads, value_dim, key_dim)."""
    repeats = v.shape[1] // k.shape[1]
    q, k = (np.repeat(x.astype(np.float64), repeats, axis=1) for x in (q, k))
    ys = []
    for t in range(len(q)):
        state = state * np.exp(log_decay[t])[:, None, None]
        error = beta[t][:, None] * (v[t] - np.einsum("hvk,hk->hv", state, k[t]))
        state = state + error[:, :, None] * k[t][:, None, :]
        ys.append(np.einsum("hvk,hk->hv", state, q[t]))
    return np.stack(ys), state


def rule_operands(rng: np.random.Generator, length: int, kind: str) -> list[np.ndarray]:
    """kind: `random`; `same`, one key again and again without decay, for which powers of the chunk's matrix explode; `forget`."""
    q, k, v = normal(rng, length, 2, 32), normal(rng, length, 2, 32), normal(rng, length, 4, 8)
    if kind == "same":
        k[:] = k[0]
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    speed = {"random": 0.1, "same": 0.0, "forget": 300.0}[kind]
    beta = rng.random((length, 4), np.float32) if kind != "same" else np.ones((length, 4), np.float32)
    return [q, k, v, -speed * rng.random((length, 4), np.float32), beta, normal(rng, 4, 8, 32)]


@pytest.mark.parametrize("kind", ["random", "same", "forget"])
@pytest.mark.parametrize("length", [1, 2, 37, 64, 65, 200])
def test_delta_rule_in_chunks(length: int, kind: str, rng: np.random.Generator) -> None:
    operands = rule_operands(rng, length, kind)
    expected = rule(*operands)
    q, k, v, log_decay, beta, state = map(mx.array, operands)
    found = delta.delta_rule_in_chunks(q, delta.Updates(k, v, log_decay, beta), state)
    for one, other in zip(found, expected, strict=True):
        assert np.abs(np.array(one) - other).max() <= 2e-5 * np.abs(other).max()


def test_kernel_of_mlx_lm_gets_what_it_asks_for(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Metal is not here, so a stand-in takes the place of `gated_delta_kernel`, whose documented shapes it checks."""

    def kernel(q, k, v, g, beta, state):
        assert q.shape == k.shape == (1, 9, 2, 32)
        assert (v.shape, g.shape, beta.shape, state.shape) == ((1, 9, 4, 8), (1, 9, 4), (1, 9, 4), (1, 4, 8, 32))
        assert all(x.dtype == mx.float32 for x in (q, k, v, g, beta, state))
        y, state = rule(*(np.array(x[0], np.float64) for x in (q, k, v, mx.log(g), beta, state)))
        return mx.array(y.astype(np.float32))[None], mx.array(state.astype(np.float32))[None]

    monkeypatch.setattr(delta, "metal_kernel", lambda: kernel)
    monkeypatch.setattr(mx, "default_device", lambda: mx.Device(mx.gpu))
    q, k, v, log_decay, beta, state = map(mx.array, rule_operands(rng, 9, "random"))
    updates = delta.Updates(k, v, log_decay, beta)
    by_kernel, in_chunks = delta.run_delta_rule(q, updates, state), delta.delta_rule_in_chunks(q, updates, state)
    assert all(mx.allclose(a, b, atol=1e-5) for a, b in zip(by_kernel, in_chunks, strict=True))


def delta_step(sequences: Sequences, net: object, inputs: list[np.ndarray], draft: bool = False) -> np.ndarray:
    batch = sequences.batch([len(inputs[0])], draft)
    y = ONE.to_numpy(ONE.delta_net(tuple(map(ONE.from_numpy, inputs)), net, batch, batch.layer_caches(0)))
    sequences.close(batch)
    return y


@pytest.mark.parametrize("kept", [0, 1, 5, 64, 70])
def test_a_draft_that_is_kept_leaves_the_same_bits_as_a_step(kept: int, rng: np.random.Generator) -> None:
    net = delta_net(ONE, rng)
    sizes = (net.channels, net.value_heads * net.value_dim, net.value_heads, net.value_heads)
    first, block, after = ([normal(rng, rows, size) for size in sizes] for rows in (20, 70, 3))
    drafted, plain = Sequences.of_states(ONE, net, 1), Sequences.of_states(ONE, net, 1)
    for sequences in (drafted, plain):
        delta_step(sequences, net, first)
    delta_step(drafted, net, block, draft=True)
    drafted.caches[0].keep(kept)
    if kept:
        delta_step(plain, net, [x[:kept] for x in block])
    a, b = (sequences.caches[0].layers[0] for sequences in (drafted, plain))
    assert mx.array_equal(a.state, b.state)
    assert mx.array_equal(a.window, b.window)
    assert np.array_equal(delta_step(drafted, net, after), delta_step(plain, net, after))


def test_mixing_of_a_segment_does_not_see_the_batch(rng: np.random.Generator) -> None:
    net, heads = delta_net(ONE, rng), attention_heads(ONE, rng)
    sizes = (net.channels, net.value_heads * net.value_dim, net.value_heads, net.value_heads)
    projected, q, kv = [normal(rng, 76, n) for n in sizes], normal(rng, 76, 6, 16), normal(rng, 2, 76, 2, 16)

    def run(parts: list[slice]) -> list[np.ndarray]:
        rows = np.concatenate([np.arange(76)[part] for part in parts])
        states, caches = Sequences.of_states(ONE, net, len(parts)), Sequences.of_kv(ONE, heads, len(parts))
        lengths = [part.stop - part.start for part in parts]
        batch, other = states.batch(lengths), caches.batch(lengths)
        mixed = ONE.delta_net(tuple(ONE.from_numpy(x[rows]) for x in projected), net, batch, batch.layer_caches(0))
        attended = ONE.attention(*(ONE.from_numpy(x[rows]) for x in (q, *kv)), other, other.layer_caches(0))
        return [ONE.to_numpy(mixed), ONE.to_numpy(attended)]

    together, alone = run([slice(0, 5), slice(5, 75), slice(75, 76)]), run([slice(5, 75)])
    assert all(np.array_equal(a[5:75], b) for a, b in zip(together, alone, strict=True))


def test_kv_cache_is_written_in_place_and_copied_when_shared(rng: np.random.Generator) -> None:
    cache = ONE.new_kv_cache(attention_heads(ONE, rng, (64, 64, 64)))
    rows = mx.array(normal(rng, 200, 64, 64))
    mx.eval(*cache.append(rows, rows))
    token = rows[:1] + 0
    mx.eval(cache.arrays, token)
    before = mx.get_active_memory()
    mx.reset_peak_memory()
    for _ in range(5):
        cache.append(token, token)
        mx.eval(cache.arrays)
    assert mx.get_peak_memory() - before < cache.nbytes / 4
    copy = cache.copy()
    copy.keep(0, 100)
    _, theirs = copy.append(token, token)
    _, own = cache.append(token, token)
    assert mx.array_equal(own[0, :, :200].swapaxes(0, 1), rows)
    assert mx.array_equal(theirs[0, :, 105], token[0])
    assert (cache.length, copy.length) == (206, 106)


def test_state_does_not_hold_the_memory_of_the_step(rng: np.random.Generator) -> None:
    net = delta_net(ONE, rng)
    state = ONE.new_delta_state(net)
    before = mx.get_active_memory()
    state.slide(mx.zeros((20_000, net.channels)), 20_000)
    mx.eval(state.arrays)
    assert mx.get_active_memory() - before < 100_000


@pytest.mark.parametrize("causal", [True, False])
def test_long_attention_in_pieces(causal: bool, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v = mx.array(normal(rng, 50, 4, 16)), mx.array(normal(rng, 1, 2, 70, 16)), mx.array(normal(rng, 1, 2, 70, 16))
    whole = backend.attend(q, k, v, causal)
    monkeypatch.setattr(backend, "SCORES", 7 * 4 * 70)
    assert mx.allclose(backend.attend(q, k, v, causal), whole, atol=1e-6)


def test_dense_weights_of_another_type_in_pieces(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    made, x = matrix(rng, 50, 24, "bf16"), ONE.from_numpy(normal(rng, 3, 24))
    weight = ONE.load_linear(Linear(made))
    whole = ONE.linear(x, weight)
    monkeypatch.setattr(weights, "WIDENED", 7 * 24)
    assert mx.allclose(ONE.linear(x, weight), whole, atol=1e-5)


def test_tied_weights_are_uploaded_once_and_pages_released(rng: np.random.Generator) -> None:
    released: list[int] = []
    tied = Dense(HostTensor(normal(rng, 6, 32), "f32", lambda: released.append(1)))
    table, head = ONE.load_embedding(tied), ONE.load_linear(Linear(tied))
    assert table is head.matrix
    assert released == [1]
    assert ONE.load_embedding(dense(normal(rng, 6, 32))) is not table


def outside(one: MlxBackend) -> list[Callable[[], object]]:
    rng = np.random.default_rng(0)
    weight, table = one.load_linear(Linear(matrix(rng, 5, 64, "4/64/bf16"))), one.load_embedding(matrix(rng, 5, 64, "f32"))
    x = one.from_numpy(normal(rng, 3, 64))
    q = one.from_numpy(normal(rng, 3, 2, 8))
    return [
        lambda: one.embedding(table, np.array([5])),
        lambda: one.embedding(table, np.array([-1])),
        lambda: one.linear_columns(x, weight, np.array([0, 5])),
        lambda: one.take_rows(x, np.array([3])),
        lambda: one.full_attention(q, q, q, [1, 1]),
    ]


@pytest.mark.parametrize("number", range(5))
def test_rows_outside_are_refused(number: int) -> None:
    with pytest.raises(ShapeError):
        outside(ONE)[number]()


def run(model: Model, pieces: list) -> np.ndarray:
    """One step over (cache, tokens, draft) pieces of text: logits of all rows."""
    tokens = np.concatenate([piece[1] for piece in pieces])
    positions = np.concatenate([text_positions(cache.length, len(part)) for cache, part, _ in pieces], axis=1)
    batch = Ragged.of([(cache, len(part), draft) for cache, part, draft in pieces])
    return model.logits(model.forward(Step(tokens, positions, batch)), np.arange(len(tokens)))


@pytest.mark.parametrize(("dtype", "error"), [("f16", 0.0062), ("bf16", 0.0546)])
def test_activations_of_16_bits(dtype: str, error: float) -> None:
    """error: of transformers with the same type of activations and the same checkpoint, relative root mean square of the logits."""
    model, expected = open_model(GOLDEN, MlxBackend(dtype)), np.load(GOLDEN / "expected.npz")
    cache = model.new_cache()
    first = run(model, [(cache, expected["tokens"][:100], False)])
    logits = np.concatenate([first, run(model, [(cache, expected["tokens"][100:], False)])])[expected["rows"]]
    found = np.sqrt(np.square(logits - expected["logits"]).mean() / np.square(expected["logits"]).mean())
    assert error / 2 < found < 1.3 * error
    kinds = {array.dtype for layer in cache.layers for array in layer.arrays}
    assert kinds == {weights.DTYPES[dtype], mx.float32}


@pytest.mark.parametrize("name", ["silu", "silu_mul", "sigmoid_mul", "gelu_tanh", "gelu_erf"])
def test_activations_can_be_compiled_once_for_all_shapes(name: str, rng: np.random.Generator) -> None:
    """As they are on Metal; here it needs the C++ compiler that built the kernels of the cpu backend."""
    plain = getattr(elementwise, name)
    compiled = mx.compile(plain, shapeless=True)
    for shape in ((3, 8), (2, 3, 5)):
        operands = [mx.array(normal(rng, *shape)) for _ in range(2 if name.endswith("_mul") else 1)]
        assert mx.allclose(compiled(*operands), plain(*operands), atol=1e-6)


def test_a_sequence_may_go_on_in_another_thread() -> None:
    model, tokens = open_model(GOLDEN, open_backend("mlx")), np.load(GOLDEN / "expected.npz")["tokens"][:30]
    expected = run(model, [(model.new_cache(), tokens, False)])
    cache = model.new_cache()
    parts = [run(model, [(cache, tokens[:10], False)])]
    run(model, [(cache, tokens[:3], True)])
    cache.keep(0)
    thread = threading.Thread(target=lambda: parts.append(run(model, [(cache, tokens[10:], False)])))
    thread.start()
    thread.join()
    assert np.abs(np.concatenate(parts) - expected).max() < 1e-4


@settings(max_examples=6, deadline=None)
@given(cuts=st.lists(st.tuples(st.integers(1, 70), st.integers(0, 6)), min_size=1, max_size=4), copy_after=st.integers(0, 3))
def test_any_cut_with_drafts_and_copies_gives_the_same_logits(cuts: list[tuple[int, int]], copy_after: int) -> None:
    """cuts: tokens of a step, and wrong tokens drafted after them."""
    model, tokens = open_model(GOLDEN, open_backend("mlx")), np.load(GOLDEN / "expected.npz")["tokens"][:80]
    expected = run(model, [(model.new_cache(), tokens, False)])
    cache, found = model.new_cache(), []
    for number, (length, wrong) in enumerate([*cuts, (80, 0)]):
        right = tokens[cache.length : cache.length + length]
        if not len(right):
            break
        found.append(run(model, [(cache, np.concatenate([right, tokens[:wrong]]), wrong > 0)])[: len(right)])
        if wrong:
            cache.keep(len(right))
        if number == copy_after:
            spare, cache = cache, cache.copy()
            run(model, [(spare, tokens[:3], False)])
    assert np.abs(np.concatenate(found) - expected).max() < 1e-4
