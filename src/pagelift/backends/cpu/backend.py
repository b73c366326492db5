"""The operations of the protocol on our own kernels. Arrays are NumPy's, float32 and dense; strided views are copied first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pagelift.backends.batch import Ragged, RowMask
from pagelift.backends.cpu import _kernels
from pagelift.backends.cpu.machine import operations
from pagelift.backends.cpu.tile_cache import TileCache
from pagelift.backends.cpu.weights import identity, release, weight_of
from pagelift.backends.protocol import AttentionHeads, Backend, DeltaNet, Gelu, Indices, LayerNorm, Norm, RmsNorm, RotaryTable
from pagelift.backends.tensors import Floats, Linear, Matrix

KvType = Literal["f32", "bf16", "int8"]
KV_SIZE: dict[KvType, int] = {"f32": 4, "bf16": 2, "int8": 1}
KV_BLOCK = 64  # tokens that are allocated together
Segments = list[tuple[int, int, bool]]


class CpuDeltaState:
    """State of one gated DeltaNet layer, with the kernels that replay its drafts."""

    def __init__(self, operations: _kernels.Operations, state: _kernels.DeltaState) -> None:
        self._operations = operations
        self.state = state

    @property
    def nbytes(self) -> int:
        return self.state.nbytes

    def keep(self, count: int, block: int) -> None:
        self._operations.keep(self.state, count, block)

    def copy(self) -> CpuDeltaState:
        return CpuDeltaState(self._operations, self.state.copy())


class CpuBackend(Backend):
    """Our kernels in C++. Activations are float32 between operations.

    precision: "fast" lays linear layers out for matrix instructions when they are loaded (the file's pages are released); packed
    ones then take their input in 8 bits with a scale per group. Where the machine has a matrix unit for bf16, rows of prompts and
    rows of dense layers are rounded to that instead. "exact" takes weights as they lie in the file, and float32 throughout.
    threads: all processors that this process may use by default; backends of the same settings share theirs. level: the
    instruction set (portable, avx2, avx512, avx512vnni, amx, neon), by default what PAGELIFT_CPU_LEVEL names, else the best one.
    Results do not depend on `threads`, bit for bit.
    """

    name = "cpu"

    def __init__(
        self,
        threads: int | None = None,
        level: str | None = None,
        kv: KvType | None = None,
        precision: Literal["fast", "exact"] = "fast",
    ) -> None:
        self._run = operations(threads, level)
        self._exact = precision == "exact"
        self._kept: TileCache | None = None
        self._kv: KvType = kv or ("f32" if self._exact else "bf16")

    @property
    def level(self) -> str:
        """The instruction set in use."""
        return self._run.level

    def load_linear(self, linear: Linear) -> _kernels.Weight:
        weight = weight_of(linear.matrix, linear.bias)
        name, form = identity(linear.matrix)
        if self._exact or (self._kept is not None and self._kept.load(name, form, weight)):
            return weight
        if self._run.tile(weight):
            release(linear.matrix)
            if self._kept is not None:
                self._kept.keep(name, form, weight)
        return weight

    @contextmanager
    def kept_weights(self, folder: Path, fingerprint: str, source: Path) -> Iterator[None]:
        if self._exact:
            yield
            return
        with TileCache(folder, fingerprint, source, self._run) as cache:
            self._kept = cache
            try:
                yield
            finally:
                self._kept = None

    def load_embedding(self, matrix: Matrix) -> _kernels.Weight:
        return weight_of(matrix)

    def from_numpy(self, array: npt.NDArray[Any]) -> Floats:
        return np.ascontiguousarray(array, np.float32)

    def to_numpy(self, array: Floats) -> Floats:
        return array

    def new_kv_cache(self, heads: AttentionHeads) -> _kernels.KvCache:
        return _kernels.KvCache(self._kv, heads.kv_heads, heads.head_dim)

    def new_delta_state(self, net: DeltaNet) -> CpuDeltaState:
        shape = (net.key_heads, net.value_heads, net.key_dim, net.value_dim, net.conv.shape[1])
        return CpuDeltaState(self._run, _kernels.DeltaState(*shape))

    def kv_bytes(self, heads: AttentionHeads, tokens: int) -> int:
        # Whole blocks of tokens, padded features.
        width = _round_up(heads.head_dim, 32) + _round_up(heads.head_dim, 16)
        token = width * KV_SIZE[self._kv] + (8 if self._kv == "int8" else 0)  # of a KV head; 8-bit codes have two scales
        return heads.kv_heads * _round_up(tokens, KV_BLOCK) * token

    def state_bytes(self, net: DeltaNet, draft: int = 0) -> int:
        state = net.value_heads * net.key_dim * _round_up(net.value_dim, 32)
        twice = 2 if draft else 1  # the record has the state before the draft, and room that grows by doubling the window
        return 4 * (twice * (state + net.window_numbers) + net.record_numbers(draft))

    def embedding(self, table: _kernels.Weight, ids: Indices) -> Floats:
        y = np.empty((len(ids), table.shape[1]), np.float32)
        self._run.embedding(table, _ids(ids), y)
        return y

    def put_rows(self, x: Floats, start: int, values: Floats) -> Floats:
        x[start : start + len(values)] = values
        return x

    def take_rows(self, x: Floats, rows: Indices) -> Floats:
        return x[rows]

    def linear(self, x: Floats, weight: _kernels.Weight, residual: Floats | None = None, prompt: RowMask | None = None) -> Floats:
        y = np.empty((x.shape[0], weight.shape[0]), np.float32)
        self._run.linear(x, weight, None, residual, prompt, y)
        return y

    def linear_columns(self, x: Floats, weight: _kernels.Weight, columns: Indices) -> Floats:
        y = np.empty((x.shape[0], len(columns)), np.float32)
        self._run.linear(x, weight, _ids(columns), None, None, y)
        return y

    def rms_norm(self, x: Floats, norm: RmsNorm) -> Floats:
        y = np.empty(x.shape, np.float32)
        self._run.rms_norm(x, norm.weight, norm.eps, y)
        return y

    def layer_norm(self, x: Floats, norm: LayerNorm) -> Floats:
        y = np.empty(x.shape, np.float32)
        self._run.layer_norm(x, norm.weight, norm.bias, norm.eps, y)
        return y

    def gated_rms_norm(self, x: Floats, gate: Floats, norm: RmsNorm) -> Floats:
        y = np.empty(x.shape, np.float32)
        self._run.gated_rms_norm(x, gate, norm.weight, norm.eps, y)
        return y

    def silu_mul(self, gate: Floats, up: Floats) -> Floats:
        y = np.empty(up.shape, np.float32)
        self._run.silu_mul(gate, up, y)
        return y

    def sigmoid_mul(self, gate: Floats, x: Floats) -> Floats:
        y = np.empty(x.shape, np.float32)
        self._run.sigmoid_mul(gate, x, y)
        return y

    def gelu(self, x: Floats, kind: Gelu) -> Floats:
        y = np.empty(x.shape, np.float32)
        self._run.gelu(x, kind == "erf", y)
        return y

    def rotary(self, x: Floats, table: RotaryTable) -> Floats:
        return self._heads(x, None, table, 1.0, x.shape[2])

    def attention(self, q: Floats, k: Floats, v: Floats, batch: Ragged, caches: Sequence[Any]) -> Floats:
        y = np.empty(q.shape, np.float32)
        self._run.attention(q * _scale(q.shape[2]), k, v, _segments(batch), caches, y)
        return y

    def full_attention(self, q: Floats, k: Floats, v: Floats, lengths: Sequence[int]) -> Floats:
        rows, heads, dim = q.shape
        qkv = np.stack([q, k, v], axis=1).reshape(rows, 3 * heads * dim)
        unturned = np.empty((rows, 0), np.float32)
        return self.picture_attention(qkv, heads, RotaryTable(unturned, unturned), lengths).reshape(q.shape)

    def causal_conv1d(self, x: Floats, net: DeltaNet, batch: Ragged, states: Sequence[Any]) -> Floats:
        y = np.empty(x.shape, np.float32)
        self._run.causal_conv1d(x, net.conv, _segments(batch), [state.state for state in states], y)
        return y

    def gated_delta_rule(self, qkv: Floats, a: Floats, b: Floats, net: DeltaNet, batch: Ragged, states: Sequence[Any]) -> Floats:
        y = np.empty((len(qkv), net.value_heads, net.value_dim), np.float32)
        gates = (a, b, net.a_log, net.dt_bias)
        self._run.gated_delta_rule(qkv, gates, _segments(batch), [state.state for state in states], y)
        return y

    def norm_linears(self, x: Floats, norm: Norm, weights: Sequence[_kernels.Weight], prompt: RowMask | None = None) -> list[Floats]:
        rows = x.shape[0]
        y = [np.empty((rows, weight.shape[0]), np.float32) for weight in weights]
        self._run.norm_linears(x, _norm(norm), weights, prompt, y)
        return y

    def swiglu_block(
        self, x: Floats, norm: Norm, weights: tuple[_kernels.Weight, _kernels.Weight, _kernels.Weight], prompt: RowMask | None = None
    ) -> Floats:
        y = np.empty(x.shape, np.float32)
        self._run.swiglu_block(x, _norm(norm), weights, prompt, y)
        return y

    def gelu_block(
        self, x: Floats, norm: Norm, weights: tuple[_kernels.Weight, _kernels.Weight], kind: Gelu, prompt: RowMask | None = None
    ) -> Floats:
        y = np.empty(x.shape, np.float32)
        self._run.gelu_block(x, _norm(norm), weights, kind == "erf", prompt, y)
        return y

    def head_attention(
        self, qkv: tuple[Floats, Floats, Floats], heads: AttentionHeads, table: RotaryTable, batch: Ragged, caches: Sequence[Any]
    ) -> Floats:
        y = np.empty((qkv[0].shape[0], heads.heads * heads.head_dim), np.float32)
        norms = (heads.q_norm.weight, heads.q_norm.eps, heads.k_norm.weight, heads.k_norm.eps)
        self._run.head_attention(qkv, heads.heads, norms, (table.cos, table.sin), _segments(batch), caches, y)
        return y

    def delta_net(self, projected: tuple[Floats, Floats, Floats, Floats], net: DeltaNet, batch: Ragged, states: Sequence[Any]) -> Floats:
        qkv, z, a, b = projected
        y = np.empty(z.shape, np.float32)
        weights = (net.conv, net.norm.weight, net.norm.eps)
        gates = (a, b, net.a_log, net.dt_bias)
        self._run.delta_net((qkv, z), gates, weights, _segments(batch), [state.state for state in states], y)
        return y

    def picture_attention(self, qkv: Floats, heads: int, table: RotaryTable, lengths: Sequence[int]) -> Floats:
        y = np.empty((qkv.shape[0], qkv.shape[1] // 3), np.float32)
        self._run.picture_attention(qkv, heads, (table.cos, table.sin), lengths, "f32" if self._exact else "bf16", y)
        return y

    def _heads(self, x: Floats, norm: RmsNorm | None, table: RotaryTable, scale: float, dim: int) -> Floats:
        """The first `dim` features of each head of x (T, heads, features), normalised, rotated and scaled."""
        y = np.empty((x.shape[0], x.shape[1], dim), np.float32)
        weight, eps = (norm.weight, norm.eps) if norm else (None, 0.0)
        self._run.prepare_heads(x, weight, eps, (table.cos, table.sin), scale, y)
        return y


class ExactCpuBackend(CpuBackend):
    """The cpu backend with float32 throughout: for comparisons, and where its speed does not matter."""

    name = "cpu-exact"

    def __init__(self, threads: int | None = None, level: str | None = None) -> None:
        super().__init__(threads, level, precision="exact")


def _round_up(number: int, to: int) -> int:
    return -(-number // to) * to


def _scale(dim: int) -> float:
    return float(np.float32(dim**-0.5))


def _norm(norm: Norm) -> tuple[Any, Any, float]:
    return norm.weight, norm.bias if isinstance(norm, LayerNorm) else None, norm.eps


def _ids(ids: Indices) -> npt.NDArray[np.int64]:
    return np.ascontiguousarray(ids, np.int64)


def _segments(batch: Ragged) -> Segments:
    return [(segment.start, segment.length, segment.draft) for segment in batch.segments]
