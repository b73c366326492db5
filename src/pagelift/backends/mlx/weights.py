"""Checkpoint tensors on MLX's device: dense or packed, in the layout in which they lie in the file."""

from __future__ import annotations

from dataclasses import dataclass, replace

import mlx.core as mx
import numpy as np

from pagelift.backends.protocol import Indices
from pagelift.backends.tensors import Dense, DType, HostTensor, Matrix
from pagelift.core.errors import ShapeError

DTYPES: dict[DType, mx.Dtype] = {"f32": mx.float32, "f16": mx.float16, "bf16": mx.bfloat16, "u32": mx.uint32}
WIDENED = 1 << 24
"""Numbers of a dense matrix that are converted at a time when it is not of the type of the activations."""


@dataclass(frozen=True, slots=True)
class DenseWeight:
    """A matrix (out, in) of floats, of the type it has in the file."""

    values: mx.array

    @property
    def shape(self) -> tuple[int, int]:
        out_features, in_features = self.values.shape
        return out_features, in_features

    def take(self, rows: mx.array) -> DenseWeight:
        return DenseWeight(self.values[rows])

    def unpack(self, dtype: mx.Dtype) -> mx.array:
        return self.values.astype(dtype)

    def product(self, x: mx.array) -> mx.array:
        """x (T, in) @ matrix.T in the type of x. Operands of MLX must be of one type, so others are converted piece by piece."""
        out_features, in_features = self.shape
        step = out_features if self.values.dtype == x.dtype else max(1, WIDENED // in_features)
        pieces = [x @ self.values[start : start + step].astype(x.dtype).T for start in range(0, out_features, step)]
        return pieces[0] if len(pieces) == 1 else mx.concatenate(pieces, axis=1)


@dataclass(frozen=True, slots=True)
class PackedWeight:
    """A matrix in MLX affine format. The codes are the file's; scales and offsets are of the type of the activations."""

    codes: mx.array
    scales: mx.array
    offsets: mx.array
    bits: int
    group_size: int

    @property
    def shape(self) -> tuple[int, int]:
        out_features, groups = self.scales.shape
        return out_features, groups * self.group_size

    def take(self, rows: mx.array) -> PackedWeight:
        return replace(self, codes=self.codes[rows], scales=self.scales[rows], offsets=self.offsets[rows])

    def unpack(self, dtype: mx.Dtype) -> mx.array:
        values: mx.array = mx.dequantize(self.codes, self.scales, self.offsets, group_size=self.group_size, bits=self.bits)
        return values.astype(dtype)

    def product(self, x: mx.array) -> mx.array:
        """x (T, in) @ matrix.T."""
        y: mx.array = mx.quantized_matmul(x, self.codes, self.scales, self.offsets, group_size=self.group_size, bits=self.bits)
        return y


Weight = DenseWeight | PackedWeight


class Uploaded:
    """A checkpoint's matrix on the device; remembers where it came from, so that tied layers can share it."""

    def __init__(self, matrix: Matrix, dtype: mx.Dtype) -> None:
        self.source = matrix
        self.weight = upload_matrix(matrix, dtype)


@dataclass(frozen=True, slots=True)
class MlxLinear:
    """A linear layer. bias: (out,) or None."""

    matrix: Uploaded
    bias: mx.array | None


def upload(tensor: HostTensor, dtype: mx.Dtype | None = None) -> mx.array:
    """Copy a tensor to the device, converted to `dtype` if given, and release its pages of the file."""
    array = mx.array(tensor.array)
    if tensor.dtype == "bf16":
        array = array.view(mx.bfloat16)
    array = array.astype(dtype or array.dtype)
    mx.eval(array)
    tensor.release()
    return array


def upload_matrix(matrix: Matrix, dtype: mx.Dtype) -> Weight:
    """Copy a matrix to the device. dtype: of the activations."""
    if isinstance(matrix, Dense):
        return DenseWeight(upload(matrix.values))
    scales, offsets = upload(matrix.scales, dtype), upload(matrix.offsets, dtype)
    return PackedWeight(upload(matrix.codes), scales, offsets, matrix.bits, matrix.group_size)


def indices(rows: Indices, size: int) -> mx.array:
    """Row numbers on the device. Raises ShapeError for one outside 0 ... size - 1, which MLX would read past the end for."""
    if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < size:
        raise ShapeError(f"rows {rows.min()} to {rows.max()} of an array of {size}")
    return mx.array(rows.astype(np.int32))
