"""Rounding with compensation: the error of each column is made good by the columns behind it.

The output error of a layer is tr(D H D^T) with D the error of its weights and H the second moments of its inputs. Columns are rounded
one after the other; each time the columns that are still free move so that H's error is least (Frantar et al., GPTQ, 2022, which
follows Hassibi and Stork, Optimal Brain Surgeon, 1993). With U upper triangular and U^T U = H^-1, rounding column j with an error of e_j
moves column k > j by -e_j U_jk / U_jj, and adds (e_j / U_jj)^2 to the output error.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pagelift.backends.tensors import Floats, FloatType
from pagelift.weights.quant.affine import Codes, Grid, Rounded, joined
from pagelift.weights.quant.formats import Format
from pagelift.weights.quant.least_squares import fit_grid

DAMPING = 0.01
"""Share of the mean of H's diagonal that is added to it."""
MAX_DAMPINGS = 6
BLOCK, SMALL_BLOCK = 256, 32
"""Columns that are finished before all columns behind them move; and those after which the rest of the block moves."""
ROWS = 4096
PANEL = 512
Reals = npt.NDArray[np.float32] | npt.NDArray[np.float64]
DOUBLE_UP_TO = 4096
"""Matrices of more inputs are decomposed in single precision, or they would take twice the memory."""


def compensation(moments: Floats) -> Floats:
    """U (in, in), upper triangular with U^T U = H^-1 for the damped second moments H of a layer's inputs.

    Features that never occur get the mean moment and depend on nothing. Damping grows tenfold while H is not positive definite.
    """
    diagonal = np.diag(moments)
    dead = diagonal <= 0
    mean = float(diagonal[~dead].mean()) if not dead.all() else 1.0
    for power in range(MAX_DAMPINGS):
        backwards = moments[::-1, ::-1]  # H = R R^T with R upper triangular, so U = R^-1
        work: Reals = backwards.astype(np.float64) if len(moments) <= DOUBLE_UP_TO else backwards.copy()
        work[dead[::-1], :] = 0
        work[:, dead[::-1]] = 0
        np.einsum("ii->i", work)[:] += np.where(dead[::-1], mean, 0.0) + DAMPING * mean * 10**power
        try:
            factor_in_place(work)
        except np.linalg.LinAlgError:
            continue
        invert_in_place(work)
        return np.ascontiguousarray(work[::-1, ::-1], np.float32)
    return np.diag(1 / np.sqrt(np.maximum(diagonal, mean))).astype(np.float32)


def factor_in_place(matrix: Reals) -> None:
    """A symmetric matrix becomes its lower Cholesky factor, by panels so that little more memory is taken. Raises LinAlgError."""
    size = len(matrix)
    for start in range(0, size, PANEL):
        end = min(start + PANEL, size)
        corner = np.linalg.cholesky(matrix[start:end, start:end])
        matrix[start:end, start:end] = corner
        matrix[start:end, end:] = 0
        matrix[end:, start:end] = matrix[end:, start:end] @ np.linalg.inv(corner).T
        for first in range(end, size, PANEL):
            last = min(first + PANEL, size)
            matrix[first:, first:last] -= matrix[first:, start:end] @ matrix[first:last, start:end].T


def invert_in_place(matrix: Reals) -> None:
    """A lower triangular matrix becomes its inverse, by halves: [[A, 0], [B, C]]^-1 = [[A^-1, 0], [-C^-1 B A^-1, C^-1]]."""
    size = len(matrix)
    if size <= 64:
        matrix[:] = np.tril(np.linalg.inv(matrix))
        return
    half = size // 2
    invert_in_place(matrix[:half, :half])
    invert_in_place(matrix[half:, half:])
    matrix[half:, :half] = -(matrix[half:, half:] @ matrix[half:, :half]) @ matrix[:half, :half]


def round_with_compensation(weight: Floats, form: Format, upper: Floats, kind: FloatType = "bf16") -> Rounded:
    """A weight (out, in) rounded column by column. upper: of `compensation`.

    The grid of a group is fitted when its first column is reached, to the weights as they have moved by then, each feature weighted
    by what its error costs, 1 / U_jj^2.
    """
    parts = [_round_rows(weight[k : k + ROWS], form, upper, kind) for k in range(0, len(weight), ROWS)]
    return joined(parts)


def _round_rows(weight: Floats, form: Format, upper: Floats, kind: FloatType) -> Rounded:
    columns = np.ascontiguousarray(weight.T)  # (in, out): a column lies together
    features, rows = columns.shape
    codes = np.empty((features, rows), np.uint8)
    scales, offsets = (np.empty((rows, features // form.group_size), np.float32) for _ in range(2))
    cost: Floats = np.square(1 / np.diag(upper), dtype=np.float32)
    for start in range(0, features, BLOCK):
        end = min(start + BLOCK, features)
        errors = np.empty((end - start, rows), np.float32)
        for first in range(start, end, SMALL_BLOCK):
            if first % form.group_size == 0:
                span = slice(first, first + form.group_size)
                grid = fit_grid(np.ascontiguousarray(columns[span].T)[:, None, :], form.bits, _relative(cost[span])[None, :], kind)
                group = first // form.group_size
                scales[:, group], offsets[:, group] = grid.scales[:, 0], grid.offsets[:, 0]
            last = first + SMALL_BLOCK
            for j in range(first, last):
                codes[j], value = _nearest(columns[j], grid, form.bits)
                error = errors[j - start]
                np.subtract(columns[j], value, out=error)
                error /= upper[j, j]
                columns[j + 1 : last] -= upper[j, j + 1 : last, None] * error
            columns[last:end] -= upper[first:last, last:end].T @ errors[first - start : last - start]
        columns[end:] -= upper[start:end, end:].T @ errors
    return Rounded(np.ascontiguousarray(codes.T), Grid(scales, offsets), form)


def _nearest(column: Floats, grid: Grid, bits: int) -> tuple[Codes, Floats]:
    """The nearest codes of one column (out,), and their values."""
    scales, offsets = grid.scales[:, 0], grid.offsets[:, 0]
    codes = np.clip(np.rint((column - offsets) / np.where(scales == 0, np.float32(1), scales)), 0, 2**bits - 1)
    return codes.astype(np.uint8), (codes * scales + offsets).astype(np.float32)


def _relative(cost: Floats) -> Floats:
    relative: Floats = cost / cost.max()
    return relative


def output_error(weight: Floats, values: Floats, moments: Floats) -> float:
    """tr(D H D^T) of D = weight - values: the sum of squared errors of the layer's outputs over the inputs that H is of."""
    difference = weight - values
    return float(np.einsum("oi,oi->", difference @ moments, difference, dtype=np.float64))
