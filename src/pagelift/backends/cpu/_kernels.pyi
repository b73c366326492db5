"""The extension (csrc/bind). Results are written to the last argument; shapes are checked, ShapeError names what does not fit."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pagelift.backends.batch import RowMask
from pagelift.backends.tensors import Floats

Bytes = npt.NDArray[np.uint8]
Ids = npt.NDArray[np.int64]
NormWeights = tuple[Any, Any, float]  # weight, bias or None (then rms_norm), eps
Segments = Sequence[tuple[int, int, bool]]

class Weight:
    """A linear layer or embedding table that points into the given arrays. type: f32, f16 or bf16, of values or of scales."""

    @staticmethod
    def dense(out: int, in_: int, type: str, values: Bytes, bias: Floats | None) -> Weight: ...
    @staticmethod
    def packed(format: tuple[int, int, int, int], type: str, codes: Bytes, scales: Bytes, offsets: Bytes, bias: Floats | None) -> Weight:
        """format: out, in, bits, group size."""

    def take_tiles(self, tiles: Bytes) -> None:
        """From now on the weights are these tiles, made before of the same matrix; the arrays are let go."""

    @property
    def tiles(self) -> Bytes | None:
        """The weights as laid out for matrix instructions, a view; None where they are not."""

    @property
    def shape(self) -> tuple[int, int]: ...

class KvCache:
    def __init__(self, type: str, kv_heads: int, dim: int) -> None: ...
    @property
    def length(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def keep(self, count: int, block: int) -> None: ...
    def copy(self) -> KvCache: ...

class DeltaState:
    def __init__(self, key_heads: int, value_heads: int, key_dim: int, value_dim: int, kernel: int) -> None: ...
    @property
    def nbytes(self) -> int: ...
    def copy(self) -> DeltaState: ...

def supported_levels() -> list[str]:
    """The levels that this machine can run, from the plainest to the best."""

class Operations:
    """The kernels of one level (None: the best that the machine has) on a pool of threads."""

    def __init__(self, threads: int, level: str | None = None) -> None: ...
    @property
    def threads(self) -> int: ...
    @property
    def level(self) -> str: ...
    def bandwidth_gbs(self, nbytes: int, /) -> float:
        """Measured by reading so many bytes, with all threads."""

    def matmul_gflops(self, kind: str, /) -> float:
        """Measured for int8, bf16 or f32, with all threads; 0 where the level has no instruction for it."""

    def tile(self, weight: Weight, /) -> bool:
        """Lay a linear layer out for matrix instructions; it lets its arrays go then. False where it stays as it is."""

    def linear(
        self, x: Floats, weight: Weight, columns: Ids | None, residual: Floats | None, prompt: RowMask | None, y: Floats, /
    ) -> None: ...
    def embedding(self, weight: Weight, ids: Ids, y: Floats, /) -> None: ...
    def rms_norm(self, x: Floats, weight: Floats, eps: float, y: Floats, /) -> None: ...
    def layer_norm(self, x: Floats, weight: Floats, bias: Floats, eps: float, y: Floats, /) -> None: ...
    def gated_rms_norm(self, x: Floats, gate: Floats, weight: Floats, eps: float, y: Floats, /) -> None: ...
    def silu_mul(self, gate: Floats, x: Floats, y: Floats, /) -> None: ...
    def sigmoid_mul(self, gate: Floats, x: Floats, y: Floats, /) -> None:
        """gate may have more features than x; the last ones count."""

    def gelu(self, x: Floats, exact: bool, y: Floats, /) -> None: ...
    def norm_linears(self, x: Floats, norm: NormWeights, weights: Sequence[Weight], prompt: RowMask | None, y: Sequence[Floats], /) -> None:
        """y: one result per layer."""

    def swiglu_block(
        self, x: Floats, norm: NormWeights, weights: tuple[Weight, Weight, Weight], prompt: RowMask | None, y: Floats, /
    ) -> None:
        """weights: gate, up, down."""

    def gelu_block(
        self, x: Floats, norm: NormWeights, weights: tuple[Weight, Weight], exact: bool, prompt: RowMask | None, y: Floats, /
    ) -> None: ...
    def prepare_heads(self, x: Floats, norm: Floats | None, eps: float, table: tuple[Floats, Floats], scale: float, y: Floats, /) -> None:
        """y (T, heads, dim): the first dim features of each head of x (T, heads, any), normalised, rotated and scaled."""

    def attention(self, q: Floats, k: Floats, v: Floats, segments: Segments, caches: Sequence[KvCache], y: Floats, /) -> None:
        """q is already scaled."""

    def head_attention(
        self,
        qkv: tuple[Floats, Floats, Floats],
        heads: int,
        norms: tuple[Floats, float, Floats, float],
        table: tuple[Floats, Floats],
        segments: Segments,
        caches: Sequence[KvCache],
        y: Floats,
        /,
    ) -> None:
        """qkv: projections of T tokens, q with a gate where it is twice as wide. norms: of q and k, each with its eps."""

    def picture_attention(
        self, qkv: Floats, heads: int, table: tuple[Floats, Floats], lengths: Sequence[int], type: str, y: Floats, /
    ) -> None:
        """qkv: features [q | k | v] of (N, 3 * heads * dim). table: (N, half) each. type: f32, bf16 or int8, while they are looked at."""

    def causal_conv1d(self, x: Floats, weight: Floats, segments: Segments, states: Sequence[DeltaState], y: Floats, /) -> None: ...
    def gated_delta_rule(
        self, qkv: Floats, gates: tuple[Any, Any, Any, Any], segments: Segments, states: Sequence[DeltaState], y: Floats, /
    ) -> None:
        """gates: a, b (T, value_heads), a_log, dt_bias (value_heads,)."""

    def delta_net(
        self,
        projected: tuple[Floats, Floats],
        gates: tuple[Any, Any, Any, Any],
        weights: tuple[Any, Any, float],
        segments: Segments,
        states: Sequence[DeltaState],
        y: Floats,
        /,
    ) -> None:
        """projected: qkv and z. gates: as above. weights: of the convolution and of the norm, and its eps."""

    def keep(self, state: DeltaState, count: int, block: int, /) -> None:
        """Decide on a state's draft."""
