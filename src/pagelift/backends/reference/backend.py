"""The operations in NumPy, each written as its definition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from pagelift.backends.batch import Ragged, RowMask
from pagelift.backends.cache import DeltaState, KVCache
from pagelift.backends.protocol import AttentionHeads, Backend, DeltaNet, Gelu, Indices, LayerNorm, RmsNorm, RotaryTable
from pagelift.backends.reference.packing import unpack_matrix
from pagelift.backends.reference.state import FIRST_ROOM, Draft, ReferenceDeltaState, ReferenceKVCache, Updates
from pagelift.backends.tensors import Floats, Linear, Matrix
from pagelift.core.errors import ShapeError


class ReferenceBackend(Backend):
    """float32 throughout; weights are unpacked anew for every call, so that nothing is held twice.

    The one backend whose last bits may depend on the batch, because NumPy's matrix product rounds by its shape.
    """

    name = "reference"

    def load_linear(self, linear: Linear) -> Linear:
        return linear

    def load_embedding(self, matrix: Matrix) -> Matrix:
        return matrix

    def from_numpy(self, array: npt.NDArray[Any]) -> Floats:
        return np.ascontiguousarray(array, np.float32)

    def to_numpy(self, array: Floats) -> Floats:
        return array

    def new_kv_cache(self, heads: AttentionHeads) -> ReferenceKVCache:
        return ReferenceKVCache(heads)

    def new_delta_state(self, net: DeltaNet) -> ReferenceDeltaState:
        return ReferenceDeltaState.zero(net)

    def kv_bytes(self, heads: AttentionHeads, tokens: int) -> int:
        return 4 * 2 * heads.kv_heads * heads.head_dim * max(FIRST_ROOM, 2 * tokens)

    def state_bytes(self, net: DeltaNet, draft: int = 0) -> int:
        state = net.value_heads * net.key_dim * net.value_dim
        repeated = draft * (net.value_heads - net.key_heads) * net.key_dim  # its records have a key for each value head
        return 4 * (state * (2 if draft else 1) + net.window_numbers + net.record_numbers(draft) + repeated)

    def embedding(self, table: Matrix, ids: Indices) -> Floats:
        return unpack_matrix(table, ids)

    def put_rows(self, x: Floats, start: int, values: Floats) -> Floats:
        result = x.copy()
        result[start : start + len(values)] = values
        return result

    def take_rows(self, x: Floats, rows: Indices) -> Floats:
        return x[rows]

    def linear(self, x: Floats, weight: Linear, residual: Floats | None = None, prompt: RowMask | None = None) -> Floats:  # noqa: ARG002
        return self._linear(x, weight, slice(None), residual)

    def linear_columns(self, x: Floats, weight: Linear, columns: Indices) -> Floats:
        return self._linear(x, weight, columns, None)

    def _linear(self, x: Floats, weight: Linear, columns: Indices | slice, residual: Floats | None) -> Floats:
        if x.shape[-1] != weight.matrix.shape[1]:
            raise ShapeError(f"rows of {x.shape[-1]} features meet a linear layer of {weight.matrix.shape[1]}")
        y: Floats = x @ unpack_matrix(weight.matrix, columns).T
        if weight.bias is not None:
            y = y + weight.bias.to_float32()[columns]
        return y if residual is None else y + residual

    def rms_norm(self, x: Floats, norm: RmsNorm) -> Floats:
        scale = 1 / np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + np.float32(norm.eps))
        return cast(Floats, x * scale * norm.weight)

    def layer_norm(self, x: Floats, norm: LayerNorm) -> Floats:
        centred = x - x.mean(axis=-1, keepdims=True)
        scale = 1 / np.sqrt(np.mean(np.square(centred), axis=-1, keepdims=True) + np.float32(norm.eps))
        return cast(Floats, centred * scale * norm.weight + norm.bias)

    def gated_rms_norm(self, x: Floats, gate: Floats, norm: RmsNorm) -> Floats:
        return self.rms_norm(x, norm) * silu(gate)

    def silu_mul(self, gate: Floats, up: Floats) -> Floats:
        return silu(gate) * up

    def sigmoid_mul(self, gate: Floats, x: Floats) -> Floats:
        return sigmoid(gate) * x

    def gelu(self, x: Floats, kind: Gelu) -> Floats:
        if kind == "tanh":
            inner = np.float32(np.sqrt(2 / np.pi)) * (x + np.float32(0.044715) * x * x * x)
            return cast(Floats, np.float32(0.5) * x * (1 + np.tanh(inner)))
        return (x * normal_cdf(x.astype(np.float64))).astype(np.float32)

    def rotary(self, x: Floats, table: RotaryTable) -> Floats:
        cos, sin = table.cos[:, None, :], table.sin[:, None, :]  # (T, 1, rotary_dim / 2)
        half = cos.shape[-1]
        first, second, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
        return np.concatenate([first * cos - second * sin, second * cos + first * sin, rest], axis=-1)

    def attention(self, q: Floats, k: Floats, v: Floats, batch: Ragged, caches: Sequence[KVCache]) -> Floats:
        y = np.empty_like(q)
        for segment, cache in zip(batch.segments, cast(Sequence[ReferenceKVCache], caches), strict=True):
            past = cache.length
            cache.append(k[segment.rows], v[segment.rows])
            future = np.arange(cache.length)[None, :] > past + np.arange(segment.length)[:, None]
            y[segment.rows] = attend(q[segment.rows], cache.keys, cache.values, future)
        return y

    def full_attention(self, q: Floats, k: Floats, v: Floats, lengths: Sequence[int]) -> Floats:
        ends = np.cumsum(lengths)[:-1]
        parts = zip(*(np.split(x, ends) for x in (q, k, v)), strict=True)
        return np.concatenate([attend(q_run, k_run, v_run, None) for q_run, k_run, v_run in parts])

    def causal_conv1d(self, x: Floats, net: DeltaNet, batch: Ragged, states: Sequence[DeltaState]) -> Floats:
        kernel = net.conv.shape[1]
        y = np.empty_like(x)
        for segment, state in zip(batch.segments, cast(Sequence[ReferenceDeltaState], states), strict=True):
            inputs = np.concatenate([state.window, x[segment.rows]])  # (kernel - 1 + L, channels)
            taps = np.lib.stride_tricks.sliding_window_view(inputs, kernel, axis=0)  # (L, channels, kernel)
            y[segment.rows] = silu(np.einsum("lck,ck->lc", taps, net.conv))
            state.window = inputs[len(inputs) - (kernel - 1) :].copy()
            state.draft = Draft(inputs) if segment.draft else None
        return y

    def gated_delta_rule(self, qkv: Floats, a: Floats, b: Floats, net: DeltaNet, batch: Ragged, states: Sequence[DeltaState]) -> Floats:
        q, updates = delta_inputs(qkv, a, b, net)
        y = np.empty((len(qkv), net.value_heads, net.value_dim), np.float32)
        for segment, state in zip(batch.segments, cast(Sequence[ReferenceDeltaState], states), strict=True):
            if state.draft is not None:
                rows = segment.rows
                state.draft.state = state.state
                state.draft.updates = Updates(updates.k[rows], updates.v[rows], updates.decay[rows], updates.beta[rows])
            for token in range(segment.start, segment.start + segment.length):
                state.state = updates.apply(state.state, token)
                y[token] = np.einsum("hkv,hk->hv", state.state, q[token])
        return y


def sigmoid(x: Floats) -> Floats:
    return cast(Floats, np.float32(0.5) * (1 + np.tanh(np.float32(0.5) * x)))


def silu(x: Floats) -> Floats:
    return x * sigmoid(x)


def softplus(x: Floats) -> Floats:
    return np.logaddexp(np.float32(0), x)


def normal_cdf(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The standard normal distribution function; `math.erf` per element, exact to double precision."""
    flat = [0.5 * (1 + math.erf(value / math.sqrt(2))) for value in x.ravel().tolist()]
    return np.array(flat).reshape(x.shape)


def attend(q: Floats, k: Floats, v: Floats, masked: npt.NDArray[np.bool_] | None) -> Floats:
    """Softmax attention with grouped heads. q: (L, heads, d); k, v: (S, kv_heads, d); masked: (L, S), True where not to look."""
    length, heads, dim = q.shape
    grouped = q.reshape(length, k.shape[1], -1, dim) * np.float32(dim**-0.5)
    scores = np.einsum("lgrd,sgd->grls", grouped, k, optimize=True)
    if masked is not None:
        scores = np.where(masked, -np.inf, scores)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    y: Floats = np.einsum("grls,sgd->lgrd", weights, v, optimize=True)
    return y.reshape(length, heads, dim)


def delta_inputs(qkv: Floats, a: Floats, b: Floats, net: DeltaNet) -> tuple[Floats, Updates]:
    """Split and prepare the inputs of the delta rule: q (T, value_heads, key_dim) scaled, and the updates."""
    rows, keys = len(qkv), net.key_heads * net.key_dim
    repeats = net.value_heads // net.key_heads
    q, k = (part.reshape(rows, net.key_heads, net.key_dim) for part in (qkv[:, :keys], qkv[:, keys : 2 * keys]))
    q, k = (np.repeat(l2_normalise(x), repeats, axis=1) for x in (q, k))
    v = qkv[:, 2 * keys :].reshape(rows, net.value_heads, net.value_dim)
    decay = np.exp(-np.exp(net.a_log) * softplus(a + net.dt_bias))
    return q * np.float32(net.key_dim**-0.5), Updates(k, v, decay, sigmoid(b))


def l2_normalise(x: Floats) -> Floats:
    return cast(Floats, x / np.sqrt(np.sum(np.square(x), axis=-1, keepdims=True) + np.float32(1e-6)))
