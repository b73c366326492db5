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
Reals = npt.NDArray[np.float32] | npt.NDArray[np.float64]
DOUBLE_UP_TO = 4096
"""Matrices of more inputs are decomposed in single precision, or they would take twice the memory."""


def compensation(moments: Floats) -> Floats:
    """U (in, in), upper triangular with U^T U = H^-1 for the damped second moments H of a layer's inputs.

    Features that never occur get the mean moment and depend on nothing. Damping grows tenfold while H is not positive definite.
    """
    work: Reals = moments.astype(np.float64) if len(moments) <= DOUBLE_UP_TO else moments.copy()
    diagonal = np.einsum("ii->i", work)
    dead = diagonal <= 0
    mean = float(diagonal[~dead].mean()) if not dead.all() else 1.0
    work[dead, :] = 0
    work[:, dead] = 0
    diagonal[dead] = mean
    damping = DAMPING * mean
    for _ in range(MAX_DAMPINGS):
        diagonal += damping
        try:
            lower = np.linalg.cholesky(work[::-1, ::-1])  # of H read backwards: H = R R^T with R upper triangular, so U = R^-1
        except np.linalg.LinAlgError:
            damping *= 10
            continue
        break
    else:
        return np.diag(1 / np.sqrt(np.maximum(np.diag(moments), mean))).astype(np.float32)
    del work
    return invert_upper(lower[::-1, ::-1]).astype(np.float32)


def invert_upper(matrix: Reals) -> Reals:
    """The inverse of an upper triangular matrix, by halves: [[A, B], [0, C]]^-1 = [[A^-1, -A^-1 B C^-1], [0, C^-1]]."""
    size = len(matrix)
    if size <= 64:
        inverse: Reals = np.triu(np.linalg.inv(matrix))
        return inverse
    half = size // 2
    result = np.zeros_like(matrix)
    result[:half, :half] = invert_upper(matrix[:half, :half])
    result[half:, half:] = invert_upper(matrix[half:, half:])
    result[:half, half:] = -(result[:half, :half] @ matrix[:half, half:]) @ result[half:, half:]
    return result


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
