"""MLX affine format: w = scale * code + offset, codes of a few bits, one scale and offset for each group of one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pagelift.backends.tensors import AnyArray, Floats, FloatType, HostTensor, Packed
from pagelift.weights.quant.formats import Format

Codes = npt.NDArray[np.uint8]
SMALLEST_SCALE = np.float32(1e-7)
PACKED_TOGETHER = 1 << 22
"""Codes whose single bits are in memory at a time, a byte each."""


@dataclass(frozen=True, slots=True)
class Grid:
    """scales, offsets: (out, groups) float32 whose values the file's type can hold."""

    scales: Floats
    offsets: Floats


@dataclass(frozen=True, slots=True)
class Rounded:
    """A matrix on its grid. codes: (out, in)."""

    codes: Codes
    grid: Grid
    form: Format

    def values(self) -> Floats:
        """The matrix (out, in) that the codes stand for, in float32."""
        grouped = self.codes.reshape(*self.grid.scales.shape, self.form.group_size).astype(np.float32)
        grouped *= self.grid.scales[:, :, None]
        grouped += self.grid.offsets[:, :, None]
        return grouped.reshape(self.codes.shape)

    def packed(self, kind: FloatType = "bf16") -> Packed:
        """As it lies in a file, scales and offsets in `kind`."""
        words = HostTensor(pack_codes(self.codes, self.form.bits), "u32")
        return Packed(words, to_float(self.grid.scales, kind), to_float(self.grid.offsets, kind), self.form.bits, self.form.group_size)


def round_to_nearest(weight: Floats, form: Format, kind: FloatType = "bf16") -> Rounded:
    """What `mx.quantize` gives for a weight (out, in), whose values `kind` can hold.

    The end of the range that is farther from zero is met exactly, and zero is a point of the grid where the range holds it. Codes are
    chosen before scales and offsets are rounded to `kind` (mlx, `affine_quantize` in mlx/fast.cpp).
    """
    groups = grouped(weight, form.group_size)
    scales, offsets = nearest_range(groups.min(axis=2), groups.max(axis=2), form.bits)
    codes = nearest_codes(groups, Grid(scales, offsets), form.bits)
    return Rounded(codes.reshape(weight.shape), Grid(rounded(scales, kind), rounded(offsets, kind)), form)


def joined(parts: Sequence[Rounded]) -> Rounded:
    """Rows below each other."""
    if len(parts) == 1:
        return parts[0]
    scales, offsets = (np.concatenate([getattr(part.grid, name) for part in parts]) for name in ("scales", "offsets"))
    return Rounded(np.concatenate([part.codes for part in parts]), Grid(scales, offsets), parts[0].form)


def joined_packed(parts: Sequence[Packed]) -> Packed:
    """Rows below each other."""
    first = parts[0]
    if len(parts) == 1:
        return first
    codes, scales, offsets = (
        HostTensor(np.concatenate([getattr(part, name).array for part in parts]), getattr(first, name).dtype)
        for name in ("codes", "scales", "offsets")
    )
    return Packed(codes, scales, offsets, first.bits, first.group_size)


def nearest_range(low: Floats, high: Floats, bits: int) -> tuple[Floats, Floats]:
    """Scales and offsets for groups whose values lie from `low` to `high`."""
    steps = np.float32(2**bits - 1)
    down = np.abs(low) > np.abs(high)
    scales = np.maximum((high - low) / steps, SMALLEST_SCALE)
    scales = np.where(down, scales, -scales)
    edge = np.where(down, low, high)
    at_zero = np.rint(edge / scales)
    some = at_zero != 0
    scales = np.where(some, edge / np.where(some, at_zero, np.float32(1)), scales)
    return scales, np.where(some, edge, np.float32(0))


def nearest_codes(groups: Floats, grid: Grid, bits: int) -> Codes:
    """The codes (out, groups, group_size) whose values are nearest."""
    scales = np.where(grid.scales == 0, np.float32(1), grid.scales)
    codes = (groups - grid.offsets[:, :, None]) / scales[:, :, None]
    np.rint(codes, out=codes)
    np.clip(codes, 0, 2**bits - 1, out=codes)
    return codes.astype(np.uint8)


def grouped(weight: Floats, group_size: int) -> Floats:
    """A view (out, groups, group_size)."""
    return weight.reshape(len(weight), -1, group_size)


def pack_codes(codes: Codes, bits: int) -> npt.NDArray[np.uint32]:
    """Codes (rows, in) as words (rows, in * bits / 32): each row a little-endian bit stream."""
    step = max(1, PACKED_TOGETHER // codes.shape[1])
    words = np.empty((len(codes), codes.shape[1] * bits // 32), np.uint32)
    for k in range(0, len(codes), step):
        pieces = np.unpackbits(codes[k : k + step, :, None], axis=2, count=bits, bitorder="little")  # (rows, in, bits)
        words[k : k + step] = np.packbits(pieces.reshape(len(pieces), -1), axis=1, bitorder="little").view("<u4")
    return words


def rounded(values: Floats, kind: FloatType) -> Floats:
    """The nearest values that `kind` can hold."""
    return to_float(values, kind).to_float32()


def to_float(values: Floats, kind: FloatType) -> HostTensor:
    """float32 values in a type of a file, rounded to nearest, ties to even."""
    if kind == "bf16":
        return HostTensor(to_bfloat16(values), "bf16")
    return HostTensor(values.astype(np.float16 if kind == "f16" else np.float32), kind)


def to_bfloat16(values: Floats) -> AnyArray:
    """The bits of finite numbers as bfloat16."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    carry = (bits >> np.uint32(16)) & np.uint32(1)
    return ((bits + (np.uint32(0x7FFF) + carry)) >> np.uint32(16)).astype(np.uint16)
