"""Rounding with compensation: the error of each column is made good by the columns behind it.

The output error of a layer is tr(D H D^T) with D the error of its weights and H the second moments of its inputs. Columns are rounded
one after the other; each begins from where the output error is least for what the columns before it have lost (Frantar et al., GPTQ,
2022, which follows Hassibi and Stork, Optimal Brain Surgeon, 1993). With H = V C V^T, V upper triangular with ones on its diagonal and C
diagonal, column k begins from w_k + sum over j < k of D_j V_jk, and rounding it with an error of e adds C_kk e^2 to the output error
(Chee et al., QuIP, 2023, show that it is the same; nothing has to be inverted for it).
"""

from __future__ import annotations

from dataclasses import dataclass

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
"""Columns that get what all columns before them have lost in one product; within a group, so many at a time."""
ROWS = 4096
PANEL = 512
Reals = npt.NDArray[np.float32] | npt.NDArray[np.float64]
DOUBLE_UP_TO = 4096
"""Matrices of more inputs are decomposed in single precision, or they would take twice the memory."""


@dataclass(frozen=True, slots=True)
class Compensation:
    """shares: (in, in), V without its diagonal; column k makes good shares[j, k] of what column j < k lost. costs: (in,), diagonal of C."""

    shares: Floats
    costs: Floats


def compensation(moments: Floats) -> Compensation:
    """The compensation for the damped second moments H (in, in) of a layer's inputs.

    Features that never occur get the mean moment and depend on nothing. Damping grows tenfold while H is not positive definite.
    """
    diagonal = np.diag(moments)
    dead = diagonal <= 0
    mean = float(diagonal[~dead].mean()) if not dead.all() else 1.0
    for power in range(MAX_DAMPINGS):
        backwards = moments[::-1, ::-1]  # H = R R^T with R upper triangular
        work: Reals = backwards.astype(np.float64) if len(moments) <= DOUBLE_UP_TO else backwards.copy()
        work[dead[::-1], :] = 0
        work[:, dead[::-1]] = 0
        np.einsum("ii->i", work)[:] += np.where(dead[::-1], mean, 0.0) + DAMPING * mean * 10**power
        try:
            factor_in_place(work)
        except np.linalg.LinAlgError:
            continue
        shares = np.ascontiguousarray(work[::-1, ::-1], np.float32)
        roots = np.diag(shares).copy()
        shares /= roots
        np.fill_diagonal(shares, 0)
        return Compensation(shares, np.square(roots))
    return Compensation(np.zeros_like(moments, np.float32), np.maximum(diagonal, mean).astype(np.float32))


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


def round_with_compensation(weight: Floats, form: Format, by: Compensation, kind: FloatType = "bf16") -> Rounded:
    """A weight (out, in) rounded column by column.

    The grid of a group is fitted when its first column is reached, to the weights as they have moved by then, each feature weighted
    by what its error costs.
    """
    parts = [_round_rows(weight[k : k + ROWS], form, by, kind) for k in range(0, len(weight), ROWS)]
    return joined(parts)


def _round_rows(weight: Floats, form: Format, by: Compensation, kind: FloatType) -> Rounded:
    lost = np.ascontiguousarray(weight.T)  # (in, out): what finished columns have lost, and the weights of the others
    features, rows = lost.shape
    codes = np.empty((features, rows), np.uint8)
    scales, offsets = (np.empty((rows, features // form.group_size), np.float32) for _ in range(2))
    for start in range(0, features, BLOCK):
        end = min(start + BLOCK, features)
        moved = lost[start:end] + by.shares[:start, start:end].T @ lost[:start]
        for first in range(start, end, form.group_size):
            span = slice(first, first + form.group_size)
            own = moved[first - start : first - start + form.group_size]
            own += by.shares[start:first, span].T @ lost[start:first]
            cost = by.costs[span] / by.costs[span].max()
            grid = fit_grid(np.ascontiguousarray(own.T)[:, None, :], form.bits, cost[None, :], kind)
            group = first // form.group_size
            scales[:, group], offsets[:, group] = grid.scales[:, 0], grid.offsets[:, 0]
            _round_group(own, lost[span], by.shares[span, span], (codes[span], grid, form.bits))
    return Rounded(np.ascontiguousarray(codes.T), Grid(scales, offsets), form)


def _round_group(moved: Floats, lost: Floats, shares: Floats, result: tuple[Codes, Grid, int]) -> None:
    """The columns of one group (group_size, out), one after the other. moved: as they are by the columns before the group.

    lost: their weights, which become what they lose. result: the codes, which are written, the grid and its bits.
    """
    codes, grid, bits = result
    scales, offsets = np.where(grid.scales[:, 0] == 0, np.float32(1), grid.scales[:, 0]), grid.offsets[:, 0]
    for first in range(0, len(moved), SMALL_BLOCK):
        last = first + SMALL_BLOCK
        moved[first:last] += shares[:first, first:last].T @ lost[:first]
        for j in range(first, last):
            column = moved[j]
            column += shares[first:j, j] @ lost[first:j]
            column -= offsets
            column /= scales
            np.rint(column, out=column)
            np.clip(column, 0, 2**bits - 1, out=column)
            codes[j] = column
            column *= grid.scales[:, 0]
            column += offsets
            lost[j] -= column


def output_error(weight: Floats, values: Floats, moments: Floats) -> float:
    """tr(D H D^T) of D = weight - values: the sum of squared errors of the layer's outputs over the inputs that H is of."""
    difference = weight - values
    return float(np.einsum("oi,oi->", difference @ moments, difference, dtype=np.float64))
