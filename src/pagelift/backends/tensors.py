"""Weights as they lie in a checkpoint file, before a backend takes them over.

All arrays are NumPy views of the mapped file: nothing is copied or converted here. bfloat16 has no NumPy type and is
carried as uint16 with `dtype` "bf16".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from pagelift.core.errors import WeightsError

FloatType = Literal["f32", "f16", "bf16"]
DType = Literal["f32", "f16", "bf16", "u32"]
AnyArray: TypeAlias = npt.NDArray[Any]
Floats: TypeAlias = npt.NDArray[np.float32]

CARRIER: dict[DType, type[np.generic]] = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16, "u32": np.uint32}
"""The NumPy type that carries each element type."""

BITS = (2, 3, 4, 5, 6, 8)
GROUP_SIZES = (32, 64, 128)


def _nothing() -> None:
    """The release of a tensor that is not mapped from a file."""


@dataclass(frozen=True, slots=True)
class HostTensor:
    """One tensor of a checkpoint.

    array: read-only view of type CARRIER[dtype]. release: tells the system that the mapped pages are not needed any more,
    for a backend that has made its own copy; the array stays readable afterwards. name: in the file, "" for what was made of others.
    """

    array: AnyArray
    dtype: DType
    release: Callable[[], None] = _nothing
    name: str = ""

    def __post_init__(self) -> None:
        if self.array.dtype != CARRIER[self.dtype]:
            raise WeightsError(f"a {self.dtype} tensor must be carried as {CARRIER[self.dtype].__name__}, not {self.array.dtype}")

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def to_float32(self) -> Floats:
        """The values as a new float32 array of the same shape."""
        if self.dtype == "bf16":
            return (self.array.astype(np.uint32) << 16).view(np.float32)
        return self.array.astype(np.float32)


@dataclass(frozen=True, slots=True)
class Dense:
    """A matrix (out, in) of floats."""

    values: HostTensor

    def __post_init__(self) -> None:
        if self.values.array.ndim != 2 or self.values.dtype == "u32":
            raise WeightsError(f"a dense matrix is two-dimensional and of floats, not {self.values.dtype} {self.values.shape}")

    @property
    def shape(self) -> tuple[int, int]:
        out_features, in_features = self.values.shape
        return out_features, in_features


@dataclass(frozen=True, slots=True)
class Packed:
    """A matrix (out, in) in MLX affine format: w = scale * code + offset, one scale and offset per group of one row.

    codes: (out, in * bits / 32) u32, each row a little-endian bit stream of in codes. scales, offsets: (out, in / group_size)
    floats (MLX calls the offsets `biases`).
    """

    codes: HostTensor
    scales: HostTensor
    offsets: HostTensor
    bits: int
    group_size: int

    def __post_init__(self) -> None:
        if self.bits not in BITS or self.group_size not in GROUP_SIZES:
            raise WeightsError(f"{self.bits} bits in groups of {self.group_size} is not one of {BITS} bits in groups of {GROUP_SIZES}")
        out_features, in_features = self.shape
        groups = (out_features, in_features // self.group_size)
        words = (out_features, in_features * self.bits // 32)
        if self.codes.dtype != "u32" or self.codes.shape != words or self.scales.shape != groups or self.offsets.shape != groups:
            raise WeightsError(
                f"packed matrix does not fit {self.bits} bits in groups of {self.group_size}: codes {self.codes.dtype} "
                f"{self.codes.shape}, scales {self.scales.shape}, biases {self.offsets.shape}"
            )
        if self.scales.dtype == "u32" or self.scales.dtype != self.offsets.dtype:
            raise WeightsError(f"scales are {self.scales.dtype} and biases {self.offsets.dtype}; both must be of one float type")

    @property
    def shape(self) -> tuple[int, int]:
        if self.scales.array.ndim != 2:
            raise WeightsError(f"scales of a packed matrix are two-dimensional, not {self.scales.shape}")
        out_features, groups = self.scales.shape
        return out_features, groups * self.group_size


Matrix: TypeAlias = Dense | Packed


@dataclass(frozen=True, slots=True)
class Linear:
    """A linear layer y = x @ matrix.T + bias. bias: (out,) or None."""

    matrix: Matrix
    bias: HostTensor | None = None
