"""Linear layers in 8 bits and bf16: how near they are to float32, on every instruction set; one row has the same bits in any call."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operands import matrix, normal

from pagelift.backends import HostTensor, Linear, open_backend
from pagelift.core.errors import ShapeError

cpu = pytest.importorskip("pagelift.backends.cpu")
REFERENCE = open_backend("reference")
PACKED = [f"{bits}/{group}/bf16" for bits in (2, 3, 4, 5, 6, 8) for group in (32, 64, 128)] + ["4/64/f16", "8/32/f32"]
LIMIT = 1e-2
"""Of the root mean square of the result."""
LIMIT_BF16 = 3e-3

each_level = pytest.mark.parametrize("level", cpu.supported_levels())
each_kind = pytest.mark.parametrize("kind", [*PACKED, "bf16", "f16"])


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.sqrt(((found - expected) ** 2).mean() / (expected**2).mean()))


@each_level
@each_kind
@pytest.mark.parametrize("rows", [1, 2, 7, 16, 33, 300])
def test_near_to_float32(level: str, kind: str, rows: int) -> None:
    rng = np.random.default_rng(rows)
    in_features = 384 if "/" in kind else 333
    x, residual = normal(rng, rows, in_features), normal(rng, rows, 147)
    layer = Linear(matrix(rng, 147, in_features, kind), HostTensor(normal(rng, 147), "f32"))
    one = cpu.CpuBackend(2, level)
    found = one.linear(x, one.load_linear(layer), residual) - residual
    assert difference(found, REFERENCE.linear(x, layer)) < LIMIT


@each_level
def test_outliers_spoil_only_their_own_group(level: str) -> None:
    rng = np.random.default_rng(0)
    layer = Linear(matrix(rng, 64, 512, "4/64/bf16"))
    x = normal(rng, 4, 512)
    x[:, 100] = 300.0
    one = cpu.CpuBackend(1, level)
    loud = np.zeros_like(x)
    loud[:, 64:128] = x[:, 64:128]
    weight = one.load_linear(layer)
    found = one.linear(x, weight) - one.linear(loud, weight)
    assert difference(found, REFERENCE.linear(x - loud, layer)) < LIMIT


@each_level
@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize("rows", [1, 33, 300])
def test_rows_of_a_prompt(level: str, kind: str, rows: int) -> None:
    """Nearer, where they are rounded to bf16; otherwise they are computed as all others are."""
    rng = np.random.default_rng(rows)
    x, layer = normal(rng, rows, 640), Linear(matrix(rng, 300, 640, kind))
    one = cpu.CpuBackend(2, level)
    weight = one.load_linear(layer)
    found = one.linear(x, weight, prompt=np.ones(rows, np.bool_))
    if level == "amx":
        assert difference(found, REFERENCE.linear(x, layer)) < LIMIT_BF16
    else:
        assert np.array_equal(found, one.linear(x, weight))


@each_level
@settings(max_examples=15, deadline=None)
@given(kind=st.sampled_from(PACKED), rows=st.integers(1, 140), seed=st.integers(0, 99), threads=st.integers(1, 3))
def test_rows_of_prompts_and_answers_side_by_side(level: str, kind: str, rows: int, seed: int, threads: int) -> None:
    """A row has the bits of its kind, whatever stands beside it, for any number of threads."""
    rng = np.random.default_rng(seed)
    layer, x, prompt = Linear(matrix(rng, 350, 256, kind)), normal(rng, rows, 256), rng.integers(0, 2, rows).astype(np.bool_)
    residual = normal(rng, rows, 350)
    one, other = cpu.CpuBackend(2, level), cpu.CpuBackend(threads, level)
    kinds = [one.linear(x, one.load_linear(layer), residual, np.full(rows, kind)) for kind in (False, True)]
    together = other.linear(x, other.load_linear(layer), residual, prompt)
    assert np.array_equal(together, np.where(prompt[:, None], kinds[1], kinds[0]))


def test_a_mask_has_one_value_per_row() -> None:
    rng = np.random.default_rng(0)
    one = cpu.CpuBackend(1)
    weight = one.load_linear(Linear(matrix(rng, 20, 64, "4/64/bf16")))
    with pytest.raises(ShapeError, match="mask"):
        one.linear(normal(rng, 3, 64), weight, prompt=np.ones(2, np.bool_))


@each_level
@settings(max_examples=15, deadline=None)
@given(kind=st.sampled_from([*PACKED, "bf16"]), rows=st.integers(1, 140), seed=st.integers(0, 99), out_features=st.integers(1, 90))
def test_a_row_has_the_same_bits_in_any_call(level: str, kind: str, rows: int, seed: int, out_features: int) -> None:
    rng = np.random.default_rng(seed)
    one = cpu.CpuBackend(2, level)
    weight = one.load_linear(Linear(matrix(rng, out_features, 256, kind), HostTensor(normal(rng, out_features), "f32")))
    x = normal(rng, rows, 256)
    together = one.linear(x, weight)
    first, count = int(rng.integers(rows)), int(rng.integers(1, 20))
    assert np.array_equal(one.linear(x[first : first + count], weight), together[first : first + count])
    columns = rng.integers(0, out_features, 5)
    assert np.array_equal(one.linear_columns(x, weight, columns), together[:, columns])


@each_level
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_so(level: str, value: float) -> None:
    rng = np.random.default_rng(0)
    one = cpu.CpuBackend(1, level)
    for kind in ("4/64/bf16", "bf16"):
        x = normal(rng, 3, 128)
        x[1, 70] = value
        y = one.linear(x, one.load_linear(Linear(matrix(rng, 20, 128, kind))))
        assert not np.isfinite(y[1]).any()
        assert np.isfinite(y[[0, 2]]).all()


@each_level
@pytest.mark.parametrize("size", [0.0, 1e-42, 1e-30, 1e30])
def test_rows_of_any_size(level: str, size: float) -> None:
    rng = np.random.default_rng(0)
    layer = Linear(matrix(rng, 20, 128, "6/64/bf16"))
    one = cpu.CpuBackend(1, level)
    x = normal(rng, 2, 128) * np.float32(size)
    expected = REFERENCE.linear(x, layer)
    assert np.abs(one.linear(x, one.load_linear(layer)) - expected).max() <= LIMIT * np.abs(expected).max() + 1e-37


def test_weights_in_tiles_have_let_the_file_go() -> None:
    released = []
    rng = np.random.default_rng(0)
    made = matrix(rng, 20, 128, "4/64/bf16")
    parts = [HostTensor(t.array, t.dtype, lambda: released.append(1)) for t in (made.codes, made.scales, made.offsets)]
    one = cpu.CpuBackend(1)
    weight = one.load_linear(Linear(type(made)(*parts, 4, 64)))
    assert len(released) == 3
    x = normal(rng, 2, 128)
    before = one.linear(x, weight)
    made.codes.array[:] = 0
    assert np.array_equal(one.linear(x, weight), before)


@each_level
def test_many_threads_of_python_share_the_kernels(level: str) -> None:
    """Each thread that touches tile registers has to configure them."""
    rng = np.random.default_rng(0)
    one = cpu.CpuBackend(2, level)
    weights = [one.load_linear(Linear(matrix(rng, 200, 256, kind))) for kind in ("4/64/bf16", "3/32/bf16", "bf16")]
    x = normal(rng, 40, 256)
    expected = [one.linear(x, weight) for weight in weights]
    wrong = []

    def work() -> None:
        for _ in range(20):
            for weight, y in zip(weights, expected, strict=True):
                if not np.array_equal(one.linear(x, weight), y):
                    wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_multiplies_too() -> None:
    script = """
import os, numpy as np
from pagelift.backends import Dense, HostTensor, Linear
from pagelift.backends.cpu import CpuBackend
one = CpuBackend(2)
x = np.ones((40, 256), np.float32)
weight = one.load_linear(Linear(Dense(HostTensor(np.full((200, 256), 0x3F80, np.uint16), "bf16"))))
assert (one.linear(x, weight) == 256).all()
child = os.fork()
if child == 0:
    os._exit(0 if (one.linear(x, weight) == 256).all() else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", script], timeout=60, check=False).returncode == 0


def test_the_environment_names_the_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGELIFT_CPU_LEVEL", "portable")
    assert cpu.CpuBackend(1).level == "portable"
    assert cpu.CpuBackend(1, cpu.supported_levels()[-1]).level == cpu.supported_levels()[-1]


def test_dense_float32_is_not_rounded() -> None:
    rng = np.random.default_rng(0)
    layer = Linear(matrix(rng, 30, 100, "f32"))
    x = normal(rng, 3, 100)
    one = cpu.CpuBackend(1)
    assert difference(one.linear(x, one.load_linear(layer)), REFERENCE.linear(x, layer)) < 1e-6
