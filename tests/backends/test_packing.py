"""Packed matrices: codes laid out here bit by bit with Python's integers, following the format's definition."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pagelift.backends import HostTensor, Linear, Packed, installed_backends, open_backend
from pagelift.backends.reference import unpack_matrix
from pagelift.core.errors import WeightsError


def pack(codes: np.ndarray, bits: int) -> np.ndarray:
    """Each row as one little-endian number of len(row) * bits bits, cut into 32-bit words."""
    numbers = [sum(int(code) << (bits * i) for i, code in enumerate(row)) for row in codes]
    return np.stack([np.frombuffer(n.to_bytes(codes.shape[1] * bits // 8, "little"), "<u4") for n in numbers])


def example(bits: int, group_size: int) -> tuple[Packed, np.ndarray]:
    """A matrix (3, 256) with bf16 scales and offsets, and its values."""
    rng = np.random.default_rng(bits * group_size)
    codes = rng.integers(0, 2**bits, (3, 256))
    parts = [(rng.standard_normal((3, 256 // group_size)).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16) for _ in range(2)]
    scale, offset = (np.repeat((p.astype(np.uint32) << 16).view(np.float32), group_size, axis=1) for p in parts)
    tensors = [HostTensor(p, "bf16") for p in parts]
    return Packed(HostTensor(pack(codes, bits), "u32"), tensors[0], tensors[1], bits, group_size), scale * codes + offset


@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 8])
@pytest.mark.parametrize("group_size", [32, 64, 128])
def test_unpacks_every_width(bits: int, group_size: int) -> None:
    matrix, values = example(bits, group_size)
    assert np.allclose(unpack_matrix(matrix), values, rtol=1e-5, atol=1e-5)
    assert np.allclose(unpack_matrix(matrix, np.array([2, 0, 2])), values[[2, 0, 2]], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("bits", "group_size"), [(4, 16), (7, 64), (5, 64), (4, 32)])
def test_refuses_a_format_that_does_not_fit(bits: int, group_size: int) -> None:
    good, _ = example(4, 64)
    with pytest.raises(WeightsError):
        Packed(good.codes, good.scales, good.offsets, bits, group_size)


GOLDEN = np.load(Path(__file__).parent.parent / "golden" / "packed.npz")
"""Quantized and dequantized by mlx (scripts/make_golden_packed.py): codes, scales, biases, values per `<bits>_<group>_<type>`."""


@pytest.mark.parametrize("name", installed_backends())
@pytest.mark.parametrize("key", sorted({key.rsplit("_", 1)[0] for key in GOLDEN.files}))
def test_reads_what_mlx_writes(name: str, key: str) -> None:
    bits, group_size, dtype = key.split("_")
    codes, scales, biases, values = (GOLDEN[f"{key}_{part}"] for part in ("codes", "scales", "biases", "values"))
    matrix = Packed(HostTensor(codes, "u32"), HostTensor(scales, dtype), HostTensor(biases, dtype), int(bits), int(group_size))
    backend = open_backend(name)
    rows = backend.to_numpy(backend.embedding(backend.load_embedding(matrix), np.arange(3)))
    product = backend.to_numpy(backend.linear(backend.from_numpy(np.eye(256, dtype=np.float32)), backend.load_linear(Linear(matrix))))
    assert np.abs(rows - values).max() <= 1e-6
    # Rows of ones at single places are exact in 8 bits, but for the rounding of 1 / 127 * 127.
    assert np.abs(product.T - values).max() <= 1e-6
