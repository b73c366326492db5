"""Grids and codes against mlx, and the laws that hold for all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagelift.backends.reference import unpack_matrix
from pagelift.backends.tensors import BITS, GROUP_SIZES
from pagelift.core.errors import ConfigError
from pagelift.weights.quant.affine import pack_codes, round_to_nearest, rounded
from pagelift.weights.quant.formats import FORMATS, Format


def matrix(seed: int, kind: Any = "bf16") -> np.ndarray:
    """Rows of many scales, some off zero, some constant, one of zeros."""
    rng = np.random.default_rng(seed)
    weight = rng.standard_normal((24, 256)) * rng.uniform(0, 3, (24, 1)) + rng.uniform(-2, 2, (24, 1)) * (rng.random((24, 1)) < 0.3)
    weight[3], weight[4], weight[5] = 0, 1.5, -1.5
    return rounded(weight.astype(np.float32), kind)


@pytest.mark.parametrize("kind", ["bf16", "f16", "f32"])
@pytest.mark.parametrize("form", FORMATS, ids=str)
def test_round_to_nearest_has_the_bits_of_mlx(form: Format, kind: Any) -> None:
    mx = pytest.importorskip("mlx.core")
    dtype = {"bf16": mx.bfloat16, "f16": mx.float16, "f32": mx.float32}[kind]
    weight = matrix(1, kind)
    with mx.stream(mx.cpu):
        codes, scales, offsets = mx.quantize(mx.array(weight).astype(dtype), group_size=form.group_size, bits=form.bits)
        packed = round_to_nearest(weight, form, kind).packed(kind)
        assert np.array_equal(packed.codes.array, np.array(codes))
        assert np.array_equal(packed.scales.to_float32(), np.array(scales.astype(mx.float32)))
        assert np.array_equal(packed.offsets.to_float32(), np.array(offsets.astype(mx.float32)))


@given(st.integers(0, 1000), st.sampled_from(FORMATS))
def test_what_is_packed_reads_as_its_values(seed: int, form: Format) -> None:
    made = round_to_nearest(matrix(seed), form)
    assert np.array_equal(unpack_matrix(made.packed()), made.values())


@given(st.integers(0, 1000), st.sampled_from(FORMATS))
def test_no_value_is_farther_than_half_a_step(seed: int, form: Format) -> None:
    """With scales and offsets in float32, which hold what was chosen."""
    weight = matrix(seed, "f32")
    made = round_to_nearest(weight, form, "f32")
    steps = np.repeat(np.abs(made.grid.scales), form.group_size, axis=1)
    ranges = np.repeat(np.ptp(weight.reshape(24, -1, form.group_size), axis=2), form.group_size, axis=1)
    # The grid meets zero, so that its other end may lie half a step inside the range.
    assert (np.abs(made.values() - weight) <= steps * 0.501 + ranges * 0.5 / (2**form.bits - 1) + 1e-6).all()


@given(st.sampled_from(BITS), st.integers(0, 1000))
def test_codes_are_a_little_endian_bit_stream(bits: int, seed: int) -> None:
    codes = np.random.default_rng(seed).integers(0, 2**bits, (3, 64), np.uint8)
    for row, words in zip(codes, pack_codes(codes, bits), strict=True):
        stream = int.from_bytes(words.astype("<u4").tobytes(), "little")
        assert [(stream >> (bits * k)) & (2**bits - 1) for k in range(64)] == row.tolist()


def test_formats_that_mlx_has_not_are_refused() -> None:
    for bits, group_size in ((7, 64), (4, 16), (1, 32)):
        with pytest.raises(ConfigError, match=f"{bits} bits in groups of {group_size}"):
            Format(bits, group_size)


@pytest.mark.parametrize("group_size", GROUP_SIZES)
def test_bytes_are_those_of_the_packed_tensors(group_size: int) -> None:
    for bits in BITS:
        form = Format(bits, group_size)
        packed = round_to_nearest(matrix(0), form).packed()
        assert form.nbytes(24, 256) == sum(t.array.nbytes for t in (packed.codes, packed.scales, packed.offsets))
        assert form.bits_per_weight == 8 * form.nbytes(24, 256) / (24 * 256)
