"""The operations that models are written against.

A backend subclasses `Backend`. The abstract methods are its primitive operations; a class that lacks one cannot be made, and
the error names it. The methods below "Fused operations" have a default composition of primitives and are overridden where a
backend has one kernel for the whole. `pagelift.backends.reference` is the oracle for both.

Conventions, for every operation:
* An `Array` belongs to the backend. Models use only `.shape`, `.reshape`, basic slicing and `+` on it.
* T is the number of rows of the step. Activations are (T, features), row-major, of the backend's own float type; heads are a
  view (T, heads, head_dim) of that. Row indices and token ids are NumPy integers on the host.
* No operation changes an operand, except the caches it is given, which it advances.
* The result for a row depends on that row's own segment, and on whether it belongs to a prompt, only; never on what else is in the
  batch or on the number of threads. `prompt` of linear layers says which rows do, None for none: a backend may have other kernels
  for them, which gain where rows are many.
* Weight handles (`LinearHandle`, `EmbeddingHandle`) are opaque; only the backend that made them can use them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from pagelift.backends.batch import Ragged, RowMask
from pagelift.backends.cache import DeltaState, KVCache
from pagelift.backends.tensors import Floats, Linear, Matrix

Array: TypeAlias = Any
LinearHandle: TypeAlias = Any
EmbeddingHandle: TypeAlias = Any
Indices: TypeAlias = npt.NDArray[np.integer[Any]]
Gelu = Literal["tanh", "erf"]


@dataclass(frozen=True, slots=True)
class RmsNorm:
    """y = x / sqrt(mean(x^2) + eps) * weight. weight: (features,), always the factor itself, never w of 1 + w."""

    weight: Array
    eps: float


@dataclass(frozen=True, slots=True)
class LayerNorm:
    """y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias."""

    weight: Array
    bias: Array
    eps: float


Norm: TypeAlias = RmsNorm | LayerNorm


@dataclass(frozen=True, slots=True)
class RotaryTable:
    """Cosines and sines (T, rotary_dim / 2) of a step's rotary angles, the same for all heads and layers."""

    cos: Array
    sin: Array


@dataclass(frozen=True, slots=True)
class AttentionHeads:
    """Shape of a full-attention layer with its per-head norms. gated: q comes with a sigmoid gate, per head [q | gate]."""

    heads: int
    kv_heads: int
    head_dim: int
    q_norm: RmsNorm
    k_norm: RmsNorm
    gated: bool = True


@dataclass(frozen=True, slots=True)
class DeltaNet:
    """Shape and small weights of a gated DeltaNet layer.

    conv: (channels, kernel), channels = 2 * key_heads * key_dim + value_heads * value_dim in the order q, k, v.
    a_log, dt_bias: (value_heads,). norm: over value_dim. Value head h reads key head h // (value_heads / key_heads).
    """

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    conv: Array
    a_log: Array
    dt_bias: Array
    norm: RmsNorm

    @property
    def channels(self) -> int:
        return 2 * self.key_heads * self.key_dim + self.value_heads * self.value_dim

    @property
    def window_numbers(self) -> int:
        """Numbers of the convolution's window."""
        kernel: int = self.conv.shape[1]
        return (kernel - 1) * self.channels

    def record_numbers(self, draft: int) -> int:
        """Numbers that are recorded of an undecided draft of so many tokens, beside the state before it."""
        updates = self.key_heads * self.key_dim + self.value_heads * (self.value_dim + 2)
        return self.window_numbers + draft * (self.channels + updates) if draft else 0


class Backend(ABC):
    """One way to run models. `name` is its key in `pagelift.backends.BACKENDS`."""

    name: str

    # Weights, arrays and caches

    @abstractmethod
    def load_linear(self, linear: Linear) -> LinearHandle:
        """Take over a linear layer: keep the mapped views, or repack or upload them and call `release` on each tensor."""

    @abstractmethod
    def load_embedding(self, matrix: Matrix) -> EmbeddingHandle:
        """Take over an embedding table (vocabulary, features). With tied weights the same matrix goes to `load_linear` too."""

    def kept_weights(self, folder: Path, fingerprint: str, source: Path) -> AbstractContextManager[None]:  # noqa: ARG002
        """While it is open, weights of the checkpoint with this fingerprint are loaded in the form that this backend gave them before,
        which is kept in `folder`. Nothing is kept by a backend that uses weights as they are in the file.

        source: where the checkpoint lies; what was kept of something else that lay there is removed."""
        return nullcontext()

    @abstractmethod
    def from_numpy(self, array: npt.NDArray[Any]) -> Array:
        """A float32 host array as activations or small weights of the backend. May share memory with `array`."""

    @abstractmethod
    def to_numpy(self, array: Array) -> Floats:
        """The values in float32 on the host; waits for pending work. May share memory with `array`."""

    def evaluate(self, array: Array) -> Array:
        """The same array when it has been computed; a lazy backend waits for pending work here."""
        return array

    @abstractmethod
    def new_kv_cache(self, heads: AttentionHeads) -> KVCache:
        """An empty cache for one full-attention layer of one sequence."""

    @abstractmethod
    def new_delta_state(self, net: DeltaNet) -> DeltaState:
        """A zero state for one gated DeltaNet layer of one sequence."""

    @abstractmethod
    def kv_bytes(self, heads: AttentionHeads, tokens: int) -> int:
        """The most that the cache of one full-attention layer takes when it has grown to so many tokens."""

    @abstractmethod
    def state_bytes(self, net: DeltaNet, draft: int = 0) -> int:
        """What the state of one gated DeltaNet layer takes at most. draft: tokens of an undecided draft."""

    def end_step(self, batch: Ragged) -> None:  # noqa: B027
        """Called when all layers of a step have been asked for; a lazy backend evaluates the caches here."""

    # Rows

    @abstractmethod
    def embedding(self, table: EmbeddingHandle, ids: Indices) -> Array:
        """Rows `ids` (N,) of the table: (N, features). Ids are within the table."""

    @abstractmethod
    def put_rows(self, x: Array, start: int, values: Array) -> Array:
        """x with rows start, start + 1, ... replaced by `values` (N, features). x may be reused for the result."""

    @abstractmethod
    def take_rows(self, x: Array, rows: Indices) -> Array:
        """Rows `rows` (N,) of x: (N, features)."""

    # Linear layers

    @abstractmethod
    def linear(self, x: Array, weight: LinearHandle, residual: Array | None = None, prompt: RowMask | None = None) -> Array:
        """x (T, in) through the layer, plus `residual` (T, out) if given: (T, out)."""

    @abstractmethod
    def linear_columns(self, x: Array, weight: LinearHandle, columns: Indices) -> Array:
        """Only the outputs `columns` (N,) of the layer: (T, N). Reads only those rows of the weight."""

    # Norms and activations

    @abstractmethod
    def rms_norm(self, x: Array, norm: RmsNorm) -> Array:
        """Over the last axis of x (..., features)."""

    @abstractmethod
    def layer_norm(self, x: Array, norm: LayerNorm) -> Array:
        """Over the last axis of x (..., features)."""

    @abstractmethod
    def gated_rms_norm(self, x: Array, gate: Array, norm: RmsNorm) -> Array:
        """rms_norm(x) * silu(gate), over the last axis; x and gate of one shape."""

    @abstractmethod
    def silu_mul(self, gate: Array, up: Array) -> Array:
        """silu(gate) * up."""

    @abstractmethod
    def sigmoid_mul(self, gate: Array, x: Array) -> Array:
        """sigmoid(gate) * x."""

    @abstractmethod
    def gelu(self, x: Array, kind: Gelu) -> Array:
        """GELU by its tanh approximation or exactly."""

    # Token mixing

    @abstractmethod
    def rotary(self, x: Array, table: RotaryTable) -> Array:
        """Rotate the first rotary_dim features of every head of x (T, heads, head_dim), pairing feature i with i + rotary_dim / 2."""

    @abstractmethod
    def attention(self, q: Array, k: Array, v: Array, batch: Ragged, caches: Sequence[KVCache]) -> Array:
        """Append k and v to each segment's cache, then attend causally within each sequence; scale head_dim ** -0.5.

        q: (T, heads, head_dim); k, v: (T, kv_heads, head_dim), k already rotated. Query head h reads KV head
        h // (heads / kv_heads). caches: one per segment. Returns (T, heads, head_dim).
        """

    @abstractmethod
    def full_attention(self, q: Array, k: Array, v: Array, lengths: Sequence[int]) -> Array:
        """Attention without a mask inside each of consecutive runs of rows, as in a vision tower; scale head_dim ** -0.5.

        q, k, v: (N, heads, head_dim) with N = sum(lengths). Returns (N, heads, head_dim).
        """

    @abstractmethod
    def causal_conv1d(self, x: Array, net: DeltaNet, batch: Ragged, states: Sequence[DeltaState]) -> Array:
        """SiLU of the depthwise causal convolution of x (T, channels), continuing each segment's window: (T, channels).

        The last kernel - 1 inputs become the new window. For a draft segment the inputs are recorded.
        """

    @abstractmethod
    def gated_delta_rule(self, qkv: Array, a: Array, b: Array, net: DeltaNet, batch: Ragged, states: Sequence[DeltaState]) -> Array:
        """The gated delta rule over each segment, continuing its recurrent state: (T, value_heads, value_dim).

        qkv: (T, channels) after the convolution; a, b: (T, value_heads). Per head, in float32, with S (key_dim, value_dim):
            q = l2(q) * key_dim ** -0.5,  k = l2(k),  l2(x) = x / sqrt(sum(x^2) + 1e-6)
            beta = sigmoid(b),  decay = exp(-exp(a_log) * softplus(a + dt_bias))
            S = decay * S;  S = S + k outer (beta * (v - S^T k));  y = S^T q
        (Yang et al., Gated Delta Networks, 2024.) For a draft segment the old state and k, v, decay, beta are recorded.
        """

    # Fused operations

    def norm(self, x: Array, norm: Norm) -> Array:
        """rms_norm or layer_norm, by the type of `norm`."""
        return self.rms_norm(x, norm) if isinstance(norm, RmsNorm) else self.layer_norm(x, norm)

    def norm_linears(self, x: Array, norm: Norm, weights: Sequence[LinearHandle], prompt: RowMask | None = None) -> list[Array]:
        """Several linear layers over the same normalised rows."""
        normed = self.norm(x, norm)
        return [self.linear(normed, weight, prompt=prompt) for weight in weights]

    def swiglu_block(
        self, x: Array, norm: Norm, weights: tuple[LinearHandle, LinearHandle, LinearHandle], prompt: RowMask | None = None
    ) -> Array:
        """x + down(silu(gate(n)) * up(n)) with n = norm(x). weights: gate, up, down."""
        gate, up, down = weights
        gated, raised = self.norm_linears(x, norm, (gate, up), prompt)
        return self.linear(self.silu_mul(gated, raised), down, residual=x, prompt=prompt)

    def gelu_block(
        self, x: Array, norm: Norm, weights: tuple[LinearHandle, LinearHandle], kind: Gelu, prompt: RowMask | None = None
    ) -> Array:
        """x + second(gelu(first(norm(x)))). weights: first, second."""
        (hidden,) = self.norm_linears(x, norm, weights[:1], prompt)
        return self.linear(self.gelu(hidden, kind), weights[1], residual=x, prompt=prompt)

    def head_attention(
        self, qkv: tuple[Array, Array, Array], heads: AttentionHeads, table: RotaryTable, batch: Ragged, caches: Sequence[KVCache]
    ) -> Array:
        """From projections to the input of the output projection: norms of q and k, rotary, cached attention, gate.

        qkv: q (T, heads * head_dim), or with a gate (T, heads * 2 * head_dim); k and v (T, kv_heads * head_dim).
        Returns (T, heads * head_dim).
        """
        q, k, v = qkv
        rows, dim = q.shape[0], heads.head_dim
        q = q.reshape(rows, heads.heads, -1)
        q_rotated = self.rotary(self.rms_norm(q[..., :dim], heads.q_norm), table)
        k_rotated = self.rotary(self.rms_norm(k.reshape(rows, heads.kv_heads, dim), heads.k_norm), table)
        y = self.attention(q_rotated, k_rotated, v.reshape(rows, heads.kv_heads, dim), batch, caches)
        if heads.gated:
            y = self.sigmoid_mul(q[..., dim:], y)
        return y.reshape(rows, heads.heads * dim)

    def delta_net(self, projected: tuple[Array, Array, Array, Array], net: DeltaNet, batch: Ragged, states: Sequence[DeltaState]) -> Array:
        """From projections to the input of the output projection: convolution, gated delta rule, gated norm.

        projected: qkv (T, channels), z (T, value_heads * value_dim), a and b (T, value_heads). Returns the shape of z.
        """
        qkv, z, a, b = projected
        y = self.gated_delta_rule(self.causal_conv1d(qkv, net, batch, states), a, b, net, batch, states)
        return self.gated_rms_norm(y, z.reshape(y.shape), net.norm).reshape(z.shape)

    def picture_attention(self, qkv: Array, heads: int, table: RotaryTable, lengths: Sequence[int]) -> Array:
        """Rotary and full attention of a vision tower. qkv: (N, 3 * heads * head_dim) as [q | k | v]; returns (N, heads * head_dim)."""
        rows, width = qkv.shape[0], qkv.shape[1] // 3
        q, k, v = (qkv[:, i * width : (i + 1) * width].reshape(rows, heads, -1) for i in range(3))
        return self.full_attention(self.rotary(q, table), self.rotary(k, table), v, lengths).reshape(rows, width)

    def logits(self, x: Array, norm: Norm, head: LinearHandle, rows: Indices, tokens: Indices | None = None) -> Array:
        """Logits of the chosen rows of x: (rows, vocabulary), or (rows, tokens) for only those vocabulary entries."""
        chosen = self.norm(self.take_rows(x, rows), norm)
        return self.linear(chosen, head) if tokens is None else self.linear_columns(chosen, head, tokens)
