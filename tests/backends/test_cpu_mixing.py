"""Token mixing of the cpu backend: the same bits for any cut, batch, threads and draft on every instruction set; 16 and 8 bits."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operands import Sequences, attention_heads, delta_net, normal

from pagelift.backends import AttentionHeads, Backend, DeltaNet, Ragged, RotaryTable, SequenceCache, open_backend

cpu = pytest.importorskip("pagelift.backends.cpu")
LEVELS = ("portable", "neon", "avx2", "avx512", "avx512vnni", "amx")
Kv = Literal["f32", "bf16", "int8"]
KINDS: tuple[Kv, ...] = ("f32", "bf16", "int8")
TOLERANCE = {"f32": 5e-5, "bf16": 1e-2, "int8": 2e-2}
"""Largest difference from `reference` relative to the largest value: rounding of keys, values and weights, by their type."""
few = settings(max_examples=12, deadline=None)


def levels() -> list[str]:
    found = []
    for level in LEVELS:
        try:
            found.append(cpu.CpuBackend(1, level).level)
        except ValueError:
            continue
    return found


each_level = pytest.mark.parametrize("level", levels())


class Layers:
    """One gated DeltaNet and one full-attention layer, with the inputs of some sequences of 700 tokens."""

    TOKENS = 700

    def __init__(self, one: Backend, dims: tuple[int, int, int] = (4, 2, 40)) -> None:
        rng = np.random.default_rng(5)
        self.one = one
        self.net: DeltaNet = delta_net(one, rng, (2, 4), (24, 40))
        made = attention_heads(one, rng, dims)
        self.heads = AttentionHeads(*dims, made.q_norm, made.k_norm, gated=True)
        widths = (2 * dims[0] * dims[2], dims[1] * dims[2], dims[1] * dims[2], self.net.channels, 160, 4, 4)
        self.inputs = [[normal(rng, self.TOKENS, width) for width in (*widths, dims[2] // 4)] for _ in range(3)]

    def sequence(self) -> SequenceCache:
        return SequenceCache([self.one.new_kv_cache(self.heads), self.one.new_delta_state(self.net)])

    def step(self, parts: list[tuple[int, SequenceCache, int]], draft: bool = False) -> list[np.ndarray]:
        """(number of the inputs, cache, rows) of some sequences: the rows of each."""
        batch = Ragged.of([(past, rows, draft) for _, past, rows in parts])
        columns = zip(*([x[past.length : past.length + rows] for x in self.inputs[number]] for number, past, rows in parts), strict=True)
        q, k, v, qkv, z, a, b, angles = (np.concatenate(column) for column in columns)
        table = RotaryTable(np.cos(angles), np.sin(angles))
        attended = self.one.head_attention((q, k, v), self.heads, table, batch, batch.layer_caches(0))
        mixed = self.one.delta_net((qkv, z, a, b), self.net, batch, batch.layer_caches(1))
        Sequences.close(batch)
        return np.split(np.concatenate([attended, mixed], axis=1), np.cumsum([rows for _, _, rows in parts])[:-1])

    def whole(self, number: int) -> np.ndarray:
        return self.step([(number, self.sequence(), self.TOKENS)])[0]


@cache
def reference_rows(dims: tuple[int, int, int]) -> np.ndarray:
    return Layers(open_backend("reference"), dims).whole(1)


@each_level
@few
@given(kv=st.sampled_from(KINDS), threads=st.sampled_from([1, 2, 5]), data=st.data())
def test_no_cut_batch_thread_or_draft_changes_a_bit(level: str, kv: Kv, threads: int, data: st.DataObject) -> None:
    layers = Layers(cpu.CpuBackend(threads, level, kv=kv))
    expected = [Layers(cpu.CpuBackend(1, level, kv=kv)).whole(number) for number in range(3)]
    pasts = [layers.sequence() for _ in range(3)]
    lengths = st.sampled_from([0, 1, 3, 17, 64, 100, 255, 300])
    for _ in range(data.draw(st.integers(1, 4))):
        rows = [min(data.draw(lengths), layers.TOKENS - past.length) for past in pasts]
        parts = [(number, past, n) for number, (past, n) in enumerate(zip(pasts, rows, strict=True)) if n]
        if not parts:
            continue
        draft = data.draw(st.booleans())
        starts = [past.length for _, past, _ in parts]
        found = layers.step(parts, draft)
        for (number, past, n), start, y in zip(parts, starts, found, strict=True):
            assert np.array_equal(y, expected[number][start : start + n])
            if draft:
                past.keep(data.draw(st.integers(0, n)))


@each_level
@pytest.mark.parametrize("kv", KINDS)
def test_one_token_at_a_time_gives_the_bits_of_a_prompt(level: str, kv: Kv) -> None:
    layers = Layers(cpu.CpuBackend(2, level, kv=kv))
    past, expected = layers.sequence(), layers.whole(0)
    layers.step([(0, past, 250)])
    found = [layers.step([(0, past, 1)])[0] for _ in range(10)]
    assert np.array_equal(np.concatenate(found), expected[250:260])


@each_level
@pytest.mark.parametrize("kv", KINDS)
@pytest.mark.parametrize("dims", [(4, 2, 40), (16, 4, 256), (2, 2, 72), (3, 1, 33)])
def test_keys_and_values_in_fewer_bits_stay_near_the_reference(level: str, kv: Kv, dims: tuple[int, int, int]) -> None:
    found, expected = Layers(cpu.CpuBackend(2, level, kv=kv), dims).whole(1), reference_rows(dims)
    assert np.abs(found - expected).max() <= TOLERANCE[kv] * np.abs(expected).max()


@each_level
@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("dim", [16, 64, 72, 128])
def test_pictures_stay_near_the_reference(level: str, heads: int, dim: int) -> None:
    rng = np.random.default_rng(0)
    lengths = [1, 63, 300]
    qkv, angles = normal(rng, sum(lengths), 3 * heads * dim), normal(rng, sum(lengths), dim // 2)
    table = RotaryTable(np.cos(angles), np.sin(angles))
    results = [one.picture_attention(qkv, heads, table, lengths) for one in (cpu.CpuBackend(2, level), open_backend("reference"))]
    assert np.abs(results[0] - results[1]).max() <= TOLERANCE["bf16"] * np.abs(results[1]).max()


@pytest.mark.parametrize("kv", KINDS)
@pytest.mark.parametrize("tokens", [1, 64, 65, 700])
def test_bytes_of_caches_by_formula(kv: Kv, tokens: int) -> None:
    layers = Layers(cpu.CpuBackend(1, kv=kv))
    past = layers.sequence()
    layers.step([(0, past, tokens)])
    found: list[Any] = [layer.nbytes for layer in past.layers]
    assert found == [layers.one.kv_bytes(layers.heads, tokens), layers.one.state_bytes(layers.net)]
