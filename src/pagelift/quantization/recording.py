"""What goes into the linear layers of a model while it runs: a reader that can swap matrices, and a backend that looks on.

Where a backend's arrays are NumPy's, linear layers are products of NumPy in float32: its libraries multiply many rows several times as
fast as kernels that are made for the few rows of decoding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from pagelift.backends import Array, Backend, Dense, Linear, LinearHandle, Matrix, Norm, RowMask
from pagelift.backends.tensors import Floats
from pagelift.weights import Checkpoint, WeightReader

Listener = Callable[[Sequence[str], Array], None]
"""Called with the names of the modules that share an input, and the input (rows, in)."""


LARGE = 1 << 27
"""Matrices of more numbers, which only embeddings and heads have, stay as they lie in the file: as floats they would fill the memory."""
TIED_HEAD = "lm_head"
"""The one layer that models build without the reader, from the embeddings."""


@dataclass(frozen=True, slots=True)
class NamedLinear(Linear):
    """A linear layer that knows its module."""

    name: str = ""


@dataclass(frozen=True, slots=True)
class NamedHandle:
    """A linear layer that knows its module. handle: of the backend, or the transposed matrix (in, out) and the bias."""

    name: str
    handle: LinearHandle | tuple[Floats, Floats | None]


def unheard(names: Sequence[str], x: Array) -> None:
    """The listener that takes no notes."""


class SwappingReader(WeightReader):
    """A checkpoint some of whose matrices are others. swapped: by canonical module name."""

    def __init__(self, checkpoint: Checkpoint, quantization: Mapping[str, Any], swapped: Mapping[str, Matrix]) -> None:
        super().__init__(checkpoint, quantization)
        self._swapped = swapped

    def linear(self, name: str, out_features: int, in_features: int, bias: bool = False) -> Linear:
        found = super().linear(name, out_features, in_features, bias)
        return NamedLinear(found.matrix, found.bias, name)

    def embedding(self, name: str, rows: int, features: int) -> Matrix:
        return self._swapped[name] if name in self._swapped else super().embedding(name, rows, features)


class Listening:
    """A backend that tells a listener what every linear layer gets. Fused operations that contain linear layers are taken apart."""

    def __init__(self, backend: Backend, listener: Listener) -> None:
        self._backend = backend
        self._listener = listener
        self._in_numpy = isinstance(backend.from_numpy(np.zeros(1, np.float32)), np.ndarray)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def load_linear(self, linear: Linear) -> NamedHandle:
        name = linear.name if isinstance(linear, NamedLinear) else TIED_HEAD
        if not self._in_numpy or not isinstance(linear.matrix, Dense) or math.prod(linear.matrix.shape) > LARGE:
            return NamedHandle(name, self._backend.load_linear(linear))
        bias = None if linear.bias is None else linear.bias.to_float32()
        values = linear.matrix.values
        return NamedHandle(name, ((values.array if values.dtype == "f32" else values.to_float32()).T, bias))

    def linear(self, x: Array, weight: NamedHandle, residual: Array | None = None, prompt: RowMask | None = None) -> Array:
        self._listener([weight.name], x)
        return self._product(x, weight, residual, prompt)

    def norm_linears(self, x: Array, norm: Norm, weights: Sequence[NamedHandle], prompt: RowMask | None = None) -> list[Array]:
        normed = self._backend.norm(x, norm)
        self._listener([weight.name for weight in weights], normed)
        return [self._product(normed, weight, None, prompt) for weight in weights]

    def swiglu_block(
        self, x: Array, norm: Norm, weights: tuple[NamedHandle, NamedHandle, NamedHandle], prompt: RowMask | None = None
    ) -> Array:
        return Backend.swiglu_block(cast(Backend, self), x, norm, weights, prompt)

    def gelu_block(self, x: Array, norm: Norm, weights: tuple[NamedHandle, NamedHandle], kind: Any, prompt: RowMask | None = None) -> Array:
        return Backend.gelu_block(cast(Backend, self), x, norm, weights, kind, prompt)

    def logits(self, x: Array, norm: Norm, head: NamedHandle, rows: Any, tokens: Any = None) -> Array:
        return Backend.logits(cast(Backend, self), x, norm, head, rows, tokens)

    def _product(self, x: Array, weight: NamedHandle, residual: Array | None, prompt: RowMask | None) -> Array:
        if not isinstance(weight.handle, tuple):
            return self._backend.linear(x, weight.handle, residual, prompt)
        matrix, bias = weight.handle
        y = x @ matrix
        if bias is not None:
            y += bias
        if residual is not None:
            y += residual
        return y
