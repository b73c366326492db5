"""The operations of the protocol on MLX arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast
from weakref import WeakValueDictionary

import mlx.core as mx
import numpy as np
import numpy.typing as npt

from pagelift.backends.batch import Ragged, RowMask
from pagelift.backends.cache import DeltaState, KVCache
from pagelift.backends.mlx import elementwise
from pagelift.backends.mlx.delta import delta_inputs, run_delta_rule
from pagelift.backends.mlx.state import FIRST_ROOM, Draft, MlxDeltaState, MlxKVCache
from pagelift.backends.mlx.weights import DTYPES, MlxLinear, Uploaded, Weight, indices, upload
from pagelift.backends.protocol import AttentionHeads, Backend, DeltaNet, Gelu, Indices, LayerNorm, RmsNorm, RotaryTable
from pagelift.backends.tensors import Floats, FloatType, Linear, Matrix
from pagelift.core.errors import ShapeError

SCORES = 1 << 26
"""Attention scores of one call at most, about; MLX holds all of them where it has no fused kernel for the head's size."""
LONG_STEP = 64
"""Rows from which on a step's temporary memory goes back to the system, since the next long step is of another shape."""


class MlxBackend(Backend):
    """MLX on its default device.

    dtype: of the activations and the KV cache; "f32" for parity with other backends, or a 16-bit checkpoint's own type for
    speed on a GPU. The recurrent state is float32 in any case. Weights stay as they are in the file, packed or dense.

    MLX picks the kernel of a matrix product by its number of rows, so the last bits of a row may depend on what else is in the
    batch. Everything else is computed per row or per segment. Results are lazy, and MLX computes them only in the thread that
    asked for them; what `evaluate` has returned, and caches after `end_step`, may go to another thread.
    """

    name = "mlx"

    def __init__(self, dtype: FloatType = "f32") -> None:
        self._dtype = DTYPES[dtype]
        self._matrices: WeakValueDictionary[int, Uploaded] = WeakValueDictionary()

    # Weights, arrays and caches

    def load_linear(self, linear: Linear) -> MlxLinear:
        return MlxLinear(self._upload(linear.matrix), None if linear.bias is None else upload(linear.bias, self._dtype))

    def load_embedding(self, matrix: Matrix) -> Uploaded:
        return self._upload(matrix)

    def _upload(self, matrix: Matrix) -> Uploaded:
        """The matrix on the device, once, however many layers share it."""
        known = self._matrices.get(id(matrix))
        if known is None:
            known = self._matrices[id(matrix)] = Uploaded(matrix, self._dtype)
        return known

    def from_numpy(self, array: npt.NDArray[Any]) -> mx.array:
        return mx.array(np.ascontiguousarray(array, np.float32))

    def to_numpy(self, array: mx.array) -> Floats:
        return np.array(array.astype(mx.float32))

    def evaluate(self, array: mx.array) -> mx.array:
        mx.eval(array)
        return array

    def new_kv_cache(self, heads: AttentionHeads) -> MlxKVCache:
        return MlxKVCache(heads, self._dtype)

    def new_delta_state(self, net: DeltaNet) -> MlxDeltaState:
        return MlxDeltaState.zero(net, self._dtype)

    def kv_bytes(self, heads: AttentionHeads, tokens: int) -> int:
        size: int = self._dtype.size
        return 2 * heads.kv_heads * heads.head_dim * max(FIRST_ROOM, tokens + tokens // 2) * size

    def state_bytes(self, net: DeltaNet, draft: int = 0) -> int:
        state = net.value_heads * net.key_dim * net.value_dim
        return 4 * (state * (2 if draft else 1) + net.window_numbers + net.record_numbers(draft))

    def end_step(self, batch: Ragged) -> None:
        mx.eval([cast(MlxKVCache | MlxDeltaState, layer).arrays for segment in batch.segments for layer in segment.cache.layers])
        if batch.rows >= LONG_STEP:
            mx.clear_cache()

    # Rows

    def embedding(self, table: Uploaded, ids: Indices) -> mx.array:
        return table.weight.take(indices(ids, table.weight.shape[0])).unpack(self._dtype)

    def put_rows(self, x: mx.array, start: int, values: mx.array) -> mx.array:
        return mx.slice_update(x, values.astype(x.dtype), mx.array([start]), axes=(0,))

    def take_rows(self, x: mx.array, rows: Indices) -> mx.array:
        return x[indices(rows, x.shape[0])]

    # Linear layers

    def linear(
        self,
        x: mx.array,
        weight: MlxLinear,
        residual: mx.array | None = None,
        prompt: RowMask | None = None,  # noqa: ARG002 - one kernel for all rows
    ) -> mx.array:
        y = self._product(x, weight.matrix.weight, weight.bias)
        return y if residual is None else y + residual.astype(y.dtype)

    def linear_columns(self, x: mx.array, weight: MlxLinear, columns: Indices) -> mx.array:
        chosen = indices(columns, weight.matrix.weight.shape[0])
        return self._product(x, weight.matrix.weight.take(chosen), None if weight.bias is None else weight.bias[chosen])

    def _product(self, x: mx.array, weight: Weight, bias: mx.array | None) -> mx.array:
        if x.shape[-1] != weight.shape[1]:
            raise ShapeError(f"rows of {x.shape[-1]} features meet a linear layer of {weight.shape[1]}")
        y = weight.product(x.astype(self._dtype))
        return y if bias is None else y + bias

    # Norms and activations

    def rms_norm(self, x: mx.array, norm: RmsNorm) -> mx.array:
        return mx.fast.rms_norm(x, norm.weight, norm.eps).astype(x.dtype)

    def layer_norm(self, x: mx.array, norm: LayerNorm) -> mx.array:
        return mx.fast.layer_norm(x, norm.weight, norm.bias, norm.eps).astype(x.dtype)

    def gated_rms_norm(self, x: mx.array, gate: mx.array, norm: RmsNorm) -> mx.array:
        return elementwise.silu_mul(gate, mx.fast.rms_norm(x, norm.weight, norm.eps))

    def silu_mul(self, gate: mx.array, up: mx.array) -> mx.array:
        return elementwise.silu_mul(gate, up)

    def sigmoid_mul(self, gate: mx.array, x: mx.array) -> mx.array:
        return elementwise.sigmoid_mul(gate, x)

    def gelu(self, x: mx.array, kind: Gelu) -> mx.array:
        return elementwise.gelu_tanh(x) if kind == "tanh" else elementwise.gelu_erf(x)

    # Token mixing

    def rotary(self, x: mx.array, table: RotaryTable) -> mx.array:
        # mx.fast.rope counts positions itself; here each row has three of its own, which the table has merged.
        cos, sin = table.cos[:, None], table.sin[:, None]  # (T, 1, rotary_dim / 2)
        half = cos.shape[-1]
        first, second = x[..., :half], x[..., half : 2 * half]
        turned = mx.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1).astype(x.dtype)
        return mx.concatenate([turned, x[..., 2 * half :]], axis=-1)

    def attention(self, q: mx.array, k: mx.array, v: mx.array, batch: Ragged, caches: Sequence[KVCache]) -> mx.array:
        parts = []
        for segment, cache in zip(batch.segments, cast(Sequence[MlxKVCache], caches), strict=True):
            rows = segment.rows
            keys, values = cache.append(k[rows], v[rows])
            parts.append(attend(q[rows], keys, values, causal=True))
        return join(parts)

    def full_attention(self, q: mx.array, k: mx.array, v: mx.array, lengths: Sequence[int]) -> mx.array:
        if sum(lengths) != len(q):
            raise ShapeError(f"runs of {sum(lengths)} rows in all do not fit {len(q)} rows")
        ends = np.cumsum(lengths).tolist()
        runs = [slice(end - length, end) for end, length in zip(ends, lengths, strict=True)]
        return join([attend(q[run], k[run].swapaxes(0, 1)[None], v[run].swapaxes(0, 1)[None], causal=False) for run in runs])

    def causal_conv1d(self, x: mx.array, net: DeltaNet, batch: Ragged, states: Sequence[DeltaState]) -> mx.array:
        parts = []
        for segment, state in zip(batch.segments, cast(Sequence[MlxDeltaState], states), strict=True):
            inputs = mx.concatenate([state.window, x[segment.rows].astype(state.window.dtype)])  # (kernel - 1 + L, channels)
            taps = net.conv.astype(inputs.dtype)[..., None]  # (channels, kernel, 1)
            parts.append(mx.conv1d(inputs[None], taps, groups=net.channels)[0])
            state.slide(inputs, len(inputs))
            state.draft = Draft(inputs) if segment.draft else None
        return elementwise.silu(join(parts))

    def gated_delta_rule(
        self, qkv: mx.array, a: mx.array, b: mx.array, net: DeltaNet, batch: Ragged, states: Sequence[DeltaState]
    ) -> mx.array:
        q, updates = delta_inputs(qkv, a, b, net)
        parts = []
        for segment, state in zip(batch.segments, cast(Sequence[MlxDeltaState], states), strict=True):
            own = updates[segment.rows]
            if state.draft is not None:
                state.draft.state, state.draft.updates = state.state, own
            y, state.state = run_delta_rule(q[segment.rows], own, state.state)
            parts.append(y)
        return join(parts)


def join(parts: list[mx.array]) -> mx.array:
    """The rows of all parts."""
    return parts[0] if len(parts) == 1 else mx.concatenate(parts)


def attend(q: mx.array, keys: mx.array, values: mx.array, causal: bool) -> mx.array:
    """Softmax attention. q: (L, heads, dim); keys, values: (1, kv_heads, S, dim), where the queries are the last L of S if `causal`.

    Returns (L, heads, dim). Queries are cut so that the scores of a long prompt do not fill the memory.
    """
    (length, heads, dim), total = q.shape, keys.shape[2]
    queries = q.swapaxes(0, 1)[None]
    step = max(1, SCORES // (heads * total))
    parts = []
    for start in range(0, length, step):
        end = min(start + step, length)
        seen = total - length + end if causal else total
        mask = "causal" if causal and end - start > 1 else None
        now, k, v = queries[:, :, start:end], keys[:, :, :seen], values[:, :, :seen]
        parts.append(mx.fast.scaled_dot_product_attention(now, k, v, scale=dim**-0.5, mask=mask)[0].swapaxes(0, 1))
    return join(parts)
