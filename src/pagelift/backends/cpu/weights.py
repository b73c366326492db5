"""Checkpoint tensors as the kernels read them: in place, where the file is mapped, until they have a copy of their own."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pagelift.backends.cpu._kernels import Weight
from pagelift.backends.tensors import Dense, HostTensor, Matrix


def weight_of(matrix: Matrix, bias: HostTensor | None = None) -> Weight:
    """The kernels' view of a matrix (out, in). Only the bias is copied, to float32."""
    floats = None if bias is None else bias.to_float32()
    out_features, in_features = matrix.shape
    if isinstance(matrix, Dense):
        return Weight.dense(out_features, in_features, matrix.values.dtype, _bytes(matrix.values), floats)
    shape = (out_features, in_features, matrix.bits, matrix.group_size)
    return Weight.packed(shape, matrix.scales.dtype, _bytes(matrix.codes), _bytes(matrix.scales), _bytes(matrix.offsets), floats)


def identity(matrix: Matrix) -> tuple[str, list[int | str]]:
    """The name of a matrix's tensor in its checkpoint, "" for one that was made of others, and its format."""
    if isinstance(matrix, Dense):
        return matrix.values.name, [*matrix.shape, matrix.values.dtype, 0, 0]
    return matrix.codes.name, [*matrix.shape, matrix.scales.dtype, matrix.bits, matrix.group_size]


def release(matrix: Matrix) -> None:
    """Tell the system that a matrix's pages of the file are not needed any more; they can still be read."""
    for tensor in (matrix.values,) if isinstance(matrix, Dense) else (matrix.codes, matrix.scales, matrix.offsets):
        tensor.release()


def _bytes(tensor: HostTensor) -> npt.NDArray[np.uint8]:
    """A flat view; bytes, because tensors in a file need not be aligned."""
    return np.ascontiguousarray(tensor.array).reshape(-1).view(np.uint8)
