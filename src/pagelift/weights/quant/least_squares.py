"""Scale and offset of each group by weighted least squares.

Rounding to nearest spans a group's whole range. The error that matters is weighted: sum h (w - scale * code - offset)^2, where h is how
strongly each input feature varies. For given codes the best scale and offset are a weighted linear regression of the weights on their
codes; for a given grid the best codes are the nearest. Both in turns never raise the error (Lloyd, Least Squares Quantization in
PCM, 1982); they begin from several ranges, because the end depends on the beginning.
"""

from __future__ import annotations

import numpy as np

from pagelift.backends.tensors import Floats, FloatType
from pagelift.weights.quant.affine import Grid, Rounded, grouped, joined, nearest_codes, nearest_range, round_to_nearest, rounded
from pagelift.weights.quant.formats import Format

SHRINKS = (1.0, 0.85, 0.7)
"""Shares of a group's range that beginnings span: few large weights may be cut off where that serves the others."""
TURNS = 2
ROWS = 1 << 18
"""Weights that are worked on together: what is made of them has to stay in the processor's cache."""


def round_by_least_squares(weight: Floats, form: Format, importance: Floats | None = None, kind: FloatType = "bf16") -> Rounded:
    """A weight (out, in) on the best grids found. importance: (in,) of each input feature, 0 or more; None for all alike.

    No group has a larger weighted error than `round_to_nearest` gives it.
    """
    step = max(1, ROWS // weight.shape[1])
    weights = _group_importance(importance, weight.shape[1], form.group_size)
    parts = [_round_rows(weight[k : k + step], form, weights, kind) for k in range(0, len(weight), step)]
    return joined(parts)


def _round_rows(weight: Floats, form: Format, importance: Floats, kind: FloatType) -> Rounded:
    groups = grouped(weight, form.group_size)
    best = round_to_nearest(weight, form, kind)
    codes, scales, offsets = best.codes.reshape(groups.shape), best.grid.scales, best.grid.offsets
    error = _errors(groups, codes, best.grid, importance)
    grid = fit_grid(groups, form.bits, importance, kind)
    found = nearest_codes(groups, grid, form.bits)
    better = _errors(groups, found, grid, importance) < error
    codes = np.where(better[:, :, None], found, codes)
    grid = Grid(np.where(better, grid.scales, scales), np.where(better, grid.offsets, offsets))
    return Rounded(codes.reshape(weight.shape), grid, form)


def fit_grid(groups: Floats, bits: int, importance: Floats, kind: FloatType) -> Grid:
    """The best grids found for groups (out, groups, group_size). importance: (groups, group_size)."""
    low, high = groups.min(axis=2), groups.max(axis=2)
    best_scales, best_offsets = nearest_range(low, high, bits)
    least = np.full(low.shape, np.inf, np.float32)
    for shrink in SHRINKS:
        scales, offsets = nearest_range(low * np.float32(shrink), high * np.float32(shrink), bits)
        grid = Grid(scales, offsets)
        for turn in range(TURNS + 1):
            codes = nearest_codes(groups, grid, bits)
            held = Grid(rounded(grid.scales, kind), rounded(grid.offsets, kind))
            error = _errors(groups, codes, held, importance)
            better = error < least
            least = np.where(better, error, least)
            best_scales, best_offsets = np.where(better, held.scales, best_scales), np.where(better, held.offsets, best_offsets)
            if turn < TURNS:
                grid = regress(groups, codes.astype(np.float32), importance, grid)
    return Grid(rounded(best_scales, kind), rounded(best_offsets, kind))


def regress(groups: Floats, codes: Floats, importance: Floats, before: Grid) -> Grid:
    """The weighted regression of each group on its codes; the grid from before where all codes of a group are one."""
    total = importance.sum(axis=1)
    share = importance / np.where(total > 0, total, np.float32(1))[:, None]
    mean_code = np.einsum("ogi,gi->og", codes, share)
    mean_weight = np.einsum("ogi,gi->og", groups, share)
    centred = codes - mean_code[:, :, None]
    spread = np.einsum("ogi,ogi,gi->og", centred, centred, share)
    together = np.einsum("ogi,ogi,gi->og", centred, groups, share)
    clear = (spread > 1e-6) & (np.abs(together) > 0)
    scales = np.where(clear, together / np.where(clear, spread, np.float32(1)), before.scales)
    offsets = np.where(clear, mean_weight - scales * mean_code, before.offsets)
    return Grid(scales.astype(np.float32), offsets.astype(np.float32))


def _errors(groups: Floats, codes: Floats | np.ndarray, grid: Grid, importance: Floats) -> Floats:
    """Weighted squared error of each group (out, groups)."""
    difference = codes.astype(np.float32)
    difference *= grid.scales[:, :, None]
    difference += grid.offsets[:, :, None]
    difference -= groups
    error: Floats = np.einsum("ogi,ogi,gi->og", difference, difference, importance)
    return error


def _group_importance(importance: Floats | None, features: int, group_size: int) -> Floats:
    """(groups, group_size); groups of no importance at all count all their features alike."""
    if importance is None:
        return np.ones((features // group_size, group_size), np.float32)
    groups = importance.astype(np.float32).reshape(-1, group_size)
    largest = groups.max(axis=1, keepdims=True)
    return np.where(largest > 0, groups / np.where(largest > 0, largest, np.float32(1)), np.float32(1))
