"""Reading of packed matrices (MLX affine format), one bit at a time and therefore for every width alike."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pagelift.backends.protocol import Indices
from pagelift.backends.tensors import AnyArray, Dense, Floats, HostTensor, Matrix


def unpack_codes(codes: AnyArray, bits: int) -> npt.NDArray[np.uint8]:
    """codes: (rows, words) uint32, each row a little-endian bit stream. Returns (rows, words * 32 / bits) values below 2**bits."""
    stream = np.unpackbits(np.ascontiguousarray(codes).astype("<u4").view(np.uint8), axis=1, bitorder="little")
    weights = (1 << np.arange(bits)).astype(np.uint8)
    values: npt.NDArray[np.uint8] = (stream.reshape(len(codes), -1, bits) * weights).sum(axis=2, dtype=np.uint8)
    return values


def unpack_matrix(matrix: Matrix, rows: Indices | slice = slice(None)) -> Floats:
    """The chosen rows of a dense or packed matrix as float32 (rows, in)."""
    if isinstance(matrix, Dense):
        return _rows(matrix.values, rows)
    scales, offsets = _rows(matrix.scales, rows), _rows(matrix.offsets, rows)
    codes = unpack_codes(matrix.codes.array[rows], matrix.bits).astype(np.float32)
    grouped = codes.reshape(*scales.shape, matrix.group_size) * scales[:, :, None] + offsets[:, :, None]
    return grouped.reshape(len(codes), -1)


def _rows(tensor: HostTensor, rows: Indices | slice) -> Floats:
    return HostTensor(tensor.array[rows], tensor.dtype).to_float32()
