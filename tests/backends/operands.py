"""Random operands for tests of operations, the same for every backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pagelift.backends import (
    Array,
    AttentionHeads,
    Backend,
    DeltaNet,
    Dense,
    HostTensor,
    Linear,
    Matrix,
    Packed,
    Ragged,
    RmsNorm,
    SequenceCache,
)


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape, dtype=np.float32)


def dense(values: np.ndarray) -> Dense:
    return Dense(HostTensor(np.ascontiguousarray(values, np.float32), "f32"))


def floats(values: np.ndarray, dtype: str) -> HostTensor:
    """Values as a tensor of f32, f16 or bf16 (cut off, not rounded)."""
    if dtype == "bf16":
        return HostTensor((np.ascontiguousarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16), "bf16")
    return HostTensor(values.astype(np.float32 if dtype == "f32" else np.float16), dtype)


def matrix(rng: np.random.Generator, out_features: int, in_features: int, kind: str) -> Matrix:
    """A random matrix; kind: a float type, or `<bits>/<group size>/<float type>`."""
    if "/" not in kind:
        return Dense(floats(normal(rng, out_features, in_features), kind))
    width, group, dtype = kind.split("/")
    bits, group_size = int(width), int(group)
    codes = rng.integers(0, 2**32, (out_features, in_features * bits // 32), dtype=np.uint32)
    scales, offsets = (floats(normal(rng, out_features, in_features // group_size) / 2**bits, dtype) for _ in range(2))
    return Packed(HostTensor(codes, "u32"), scales, offsets, bits, group_size)


def linear(rng: np.random.Generator, out_features: int, in_features: int, bias: bool = False) -> Linear:
    return Linear(dense(normal(rng, out_features, in_features)), HostTensor(normal(rng, out_features), "f32") if bias else None)


def delta_net(backend: Backend, rng: np.random.Generator, heads: tuple[int, int] = (2, 6), dims: tuple[int, int] = (8, 12)) -> DeltaNet:
    """heads: key, value; dims: key, value."""
    channels = 2 * heads[0] * dims[0] + heads[1] * dims[1]
    conv, a_log, dt_bias, norm = normal(rng, channels, 4), normal(rng, heads[1]), normal(rng, heads[1]), normal(rng, dims[1])
    to = backend.from_numpy
    return DeltaNet(*heads, *dims, to(conv), to(a_log), to(dt_bias), RmsNorm(to(norm), 1e-6))


def attention_heads(backend: Backend, rng: np.random.Generator, heads: tuple[int, int, int] = (6, 2, 16)) -> AttentionHeads:
    """heads: query heads, KV heads, head_dim."""
    q, k = (RmsNorm(backend.from_numpy(normal(rng, heads[2])), 1e-6) for _ in range(2))
    return AttentionHeads(*heads, q, k)


@dataclass
class Sequences:
    """Some sequences of one layer, run in ragged steps."""

    caches: list[SequenceCache]

    @classmethod
    def of_states(cls, backend: Backend, net: DeltaNet, count: int) -> Sequences:
        return cls([SequenceCache([backend.new_delta_state(net)]) for _ in range(count)])

    @classmethod
    def of_kv(cls, backend: Backend, heads: AttentionHeads, count: int) -> Sequences:
        return cls([SequenceCache([backend.new_kv_cache(heads)]) for _ in range(count)])

    def batch(self, lengths: Sequence[int], draft: bool = False) -> Ragged:
        """One segment per sequence with a length above 0."""
        return Ragged.of([(cache, n, draft) for cache, n in zip(self.caches, lengths, strict=True) if n])

    @staticmethod
    def close(batch: Ragged) -> None:
        for segment in batch.segments:
            segment.cache.advance(segment.length, segment.draft)


def run_delta(backend: Backend, net: DeltaNet, batch: Ragged, inputs: Sequence[np.ndarray]) -> Array:
    """Convolution and delta rule of one step. inputs: qkv, a, b."""
    qkv, a, b = map(backend.from_numpy, inputs)
    mixed = backend.causal_conv1d(qkv, net, batch, batch.layer_caches(0))
    y = backend.to_numpy(backend.gated_delta_rule(mixed, a, b, net, batch, batch.layer_caches(0)))
    Sequences.close(batch)
    return y
