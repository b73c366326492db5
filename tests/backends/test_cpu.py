"""What the cpu backend promises beyond the protocol: the same bits for any threads, batch and cut; every instruction set; safety."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from operands import Sequences, attention_heads, delta_net, matrix, normal

from pagelift.backends import Backend, Linear, Ragged, RmsNorm, RotaryTable
from pagelift.core.errors import ShapeError

cpu = pytest.importorskip("pagelift.backends.cpu")
DIMS = (64, 64)


def layer(one: Backend, sequences: Sequences, batch: Ragged, inputs: list[np.ndarray]) -> np.ndarray:
    """One block of everything: norm, packed projections, DeltaNet, attention, SwiGLU. inputs: x (T, 256), angles (T, 4)."""
    rng = np.random.default_rng(7)
    net, heads = delta_net(one, rng, (2, 4), (16, 16)), attention_heads(one, rng, (8, 2, 16))
    sizes = [(net.channels, 256), (64, 256), (4, 256), (4, 256), (256, 256), (32, 256), (32, 256), (256, 256), (256, 256), (256, 256)]
    weights = [one.load_linear(Linear(matrix(rng, *size, "4/64/bf16"))) for size in sizes]
    norm = RmsNorm(one.from_numpy(normal(rng, 256)), 1e-6)
    x, angles = map(one.from_numpy, inputs)
    mixed = one.delta_net(tuple(one.norm_linears(x, norm, weights[:4])), net, batch, batch.layer_caches(0))
    q, k, v = one.norm_linears(x, norm, weights[4:7])
    table = RotaryTable(np.cos(angles), np.sin(angles))
    attended = one.head_attention((q, k, v), heads, table, batch, batch.layer_caches(1))
    y = one.swiglu_block(x, norm, tuple(weights[7:10]))
    sequences.close(batch)
    return np.concatenate([mixed, attended, y], axis=1)


def sequences_of(one: Backend, count: int) -> Sequences:
    from pagelift.backends import SequenceCache

    rng = np.random.default_rng(7)
    net, heads = delta_net(one, rng, (2, 4), (16, 16)), attention_heads(one, rng, (8, 2, 16))
    heads = type(heads)(8, 2, 16, heads.q_norm, heads.k_norm, gated=True)
    return Sequences([SequenceCache([one.new_delta_state(net), one.new_kv_cache(heads)]) for _ in range(count)])


def run(one: Backend, cuts: list[list[int]], inputs: list[list[np.ndarray]]) -> list[np.ndarray]:
    """Several sequences in steps of `cuts` rows each; inputs per sequence. Returns each sequence's rows."""
    sequences = sequences_of(one, len(inputs))
    done, results = [0] * len(inputs), [[] for _ in inputs]
    for lengths in cuts:
        parts = [[x[done[s] : done[s] + n] for x in inputs[s]] for s, n in enumerate(lengths) if n]
        y = layer(one, sequences, sequences.batch(lengths), [np.concatenate(x) for x in zip(*parts, strict=True)])
        start = 0
        for s, n in enumerate(lengths):
            results[s].append(y[start : start + n])
            start += n
            done[s] += n
    return [np.concatenate(rows) for rows in results]


@pytest.fixture
def inputs() -> list[list[np.ndarray]]:
    rng = np.random.default_rng(3)
    return [[normal(rng, n, 256), normal(rng, n, 4)] for n in (150, 40, 9)]


every_setting = pytest.mark.parametrize("precision", ["fast", "exact"])
every_level = pytest.mark.parametrize("level", cpu.supported_levels())


@every_setting
@every_level
def test_threads_do_not_change_a_bit(level: str, precision: str, inputs: list[list[np.ndarray]]) -> None:
    cuts = [[100, 1, 3], [1, 38, 6], [49, 1, 0]]
    expected = run(cpu.CpuBackend(1, level, precision=precision), cuts, inputs)
    for threads in (2, 3, 8):
        assert all(map(np.array_equal, run(cpu.CpuBackend(threads, level, precision=precision), cuts, inputs), expected))


@every_setting
@every_level
def test_batch_and_cut_do_not_change_a_bit(level: str, precision: str, inputs: list[list[np.ndarray]]) -> None:
    one = cpu.CpuBackend(2, level, precision=precision)
    together = run(one, [[100, 1, 3], [1, 38, 6], [49, 1, 0]], inputs)
    for rows, own in zip(together, inputs, strict=True):
        n = len(own[0])
        for cuts in ([n], [1] * 5 + [n - 5], [n - 7, 7]):
            assert np.array_equal(run(one, [[length] for length in cuts], [own])[0], rows)


@pytest.mark.parametrize("kept", [0, 1, 30, 70])
def test_a_draft_that_is_kept_leaves_the_same_bits_as_a_step(inputs: list[list[np.ndarray]], kept: int) -> None:
    one = cpu.CpuBackend(2)
    drafted, plain = sequences_of(one, 1), sequences_of(one, 1)
    first, block, wrong, rest = (
        [x[part] for x in inputs[0]] for part in (slice(50), slice(50, 50 + kept), slice(80, 150), slice(120, 150))
    )
    for sequences in (drafted, plain):
        layer(one, sequences, sequences.batch([50]), first)
    draft = [np.concatenate([good, bad])[:70] for good, bad in zip(block, wrong, strict=True)]
    layer(one, drafted, drafted.batch([70], draft=True), draft)
    drafted.caches[0].keep(kept)
    if kept:
        layer(one, plain, plain.batch([kept]), block)
    assert np.array_equal(*(layer(one, s, s.batch([30]), rest) for s in (drafted, plain)))


@every_level
def test_every_instruction_set_gives_the_same_values(level: str, inputs: list[list[np.ndarray]]) -> None:
    cuts = [[100, 1, 3], [1, 38, 6], [49, 1, 0]]
    found, expected = run(cpu.ExactCpuBackend(2, level), cuts, inputs), run(cpu.ExactCpuBackend(1, "portable"), cuts, inputs)
    for a, b in zip(found, expected, strict=True):
        assert np.abs(a - b).max() <= 1e-4 * np.abs(b).max()


def test_an_unknown_instruction_set_is_refused() -> None:
    with pytest.raises(ValueError, match="avx1024"):
        cpu.CpuBackend(1, "avx1024")


def test_packed_weights_are_read_in_place_and_kept_alive() -> None:
    one, rng = cpu.ExactCpuBackend(2), np.random.default_rng(0)
    made = matrix(rng, 64, 256, "4/64/bf16")
    x = normal(rng, 2, 256)
    weight = one.load_linear(Linear(made))
    before = one.linear(x, weight)
    made.codes.array[:] = 0
    assert not np.array_equal(one.linear(x, weight), before)
    del made
    assert np.isfinite(one.linear(x, weight)).all()


def test_tensors_need_no_alignment() -> None:
    one, rng = cpu.CpuBackend(1), np.random.default_rng(0)
    made = matrix(rng, 5, 64, "f32")
    odd = np.frombuffer(b"x" + made.values.array.tobytes(), np.float32, 5 * 64, 1).reshape(5, 64)
    moved = type(made)(type(made.values)(odd, "f32"))
    x = normal(rng, 3, 64)
    assert np.array_equal(*(one.linear(x, one.load_linear(Linear(part))) for part in (made, moved)))


def bad_calls(one: Any) -> list[Callable[[], Any]]:
    rng = np.random.default_rng(0)
    net, heads = delta_net(one, rng), attention_heads(one, rng)
    states, caches = Sequences.of_states(one, net, 1), Sequences.of_kv(one, heads, 1)
    batch, other = states.batch([2]), caches.batch([2])
    weight = one.load_embedding(matrix(rng, 5, 8, "f32"))
    x, qkv, gates = normal(rng, 3, 8), normal(rng, 2, net.channels), normal(rng, 2, 6)
    q, k = normal(rng, 2, 6, 16), normal(rng, 2, 2, 16)
    return [
        lambda: one.embedding(weight, np.array([5])),
        lambda: one.embedding(weight, np.array([-1])),
        lambda: one.linear_columns(x, weight, np.array([5])),
        lambda: one.linear(x, weight, residual=normal(rng, 3, 4)),
        lambda: one.rms_norm(x, RmsNorm(normal(rng, 7), 1e-6)),
        lambda: one.silu_mul(x, normal(rng, 3, 7)),
        lambda: one.attention(q, normal(rng, 2, 4, 16), normal(rng, 2, 4, 16), other, other.layer_caches(0)),
        lambda: one.attention(normal(rng, 3, 6, 16), normal(rng, 3, 2, 16), normal(rng, 3, 2, 16), other, other.layer_caches(0)),
        lambda: one.attention(q, k, k, other, []),
        lambda: one.full_attention(q, q, q, [1, 2]),
        lambda: one.causal_conv1d(normal(rng, 3, net.channels), net, batch, batch.layer_caches(0)),
        lambda: one.gated_delta_rule(qkv, normal(rng, 2, 5), gates, net, batch, batch.layer_caches(0)),
        lambda: one.rotary(q, RotaryTable(normal(rng, 2, 9), normal(rng, 2, 9))),
    ]


@pytest.mark.parametrize("number", range(13))
def test_operands_that_do_not_fit_are_refused(number: int) -> None:
    with pytest.raises(ShapeError):
        bad_calls(cpu.CpuBackend(1))[number]()


def test_two_threads_may_compute_at_once() -> None:
    one, rng = cpu.CpuBackend(2), np.random.default_rng(0)
    weight, x = one.load_linear(Linear(matrix(rng, 512, 512, "4/64/bf16"))), normal(rng, 8, 512)
    expected = one.linear(x, weight)
    found: list[bool] = []
    threads = [
        threading.Thread(target=lambda: found.extend(np.array_equal(one.linear(x, weight), expected) for _ in range(50))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 150


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_can_compute() -> None:
    one, rng = cpu.CpuBackend(2), np.random.default_rng(0)
    weight, x = one.load_linear(Linear(matrix(rng, 512, 512, "4/64/bf16"))), normal(rng, 8, 512)
    expected = one.linear(x, weight)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(one.linear(x, weight), expected) else 1)
    assert os.waitpid(child, 0)[1] == 0
