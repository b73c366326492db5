"""Intervals by drawing documents anew (Efron, Bootstrap methods, 1979). Documents are drawn, not tokens or fields, because those of one
document are right or wrong together; and the same draws serve all models, so that differences are paired."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

DRAWS = 2000
COVERED = 0.95
Floats = npt.NDArray[np.float64]
Interval = tuple[float, float]


class Shares(NamedTuple):
    """A mean over everything in all documents: sum(totals) / sum(counts). totals, counts: (documents,)."""

    totals: Floats
    counts: Floats

    @property
    def mean(self) -> float | None:
        whole = float(self.counts.sum())
        return float(self.totals.sum()) / whole if whole else None


def interval(shares: Shares, less: Shares | None = None, seed: int = 0) -> Interval | None:
    """95% interval of a mean, or of how much it is above that of `less` on the same documents. None for fewer than two documents."""
    documents = len(shares.totals)
    if documents < 2 or shares.mean is None or (less is not None and less.mean is None):
        return None
    drawn = np.random.default_rng(seed).integers(0, documents, (DRAWS, documents))
    means = _means(shares, drawn) - (0.0 if less is None else _means(less, drawn))
    tail = (1 - COVERED) / 2
    low, high = np.nanquantile(means, [tail, 1 - tail])
    return float(low), float(high)


def _means(shares: Shares, drawn: npt.NDArray[np.int64]) -> Floats:
    """The mean of every draw; not a number where nothing was drawn that counts."""
    counts = shares.counts[drawn].sum(axis=1)
    means: Floats = np.divide(shares.totals[drawn].sum(axis=1), counts, out=np.full(len(drawn), np.nan), where=counts > 0)
    return means
