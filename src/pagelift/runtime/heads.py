"""The output head for just the rows, and where few tokens are allowed just the tokens, that an answer can use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from pagelift.backends import Array
from pagelift.decoding import Allowed
from pagelift.decoding.constraint import unpack_mask
from pagelift.models import Model

Ids = npt.NDArray[np.int64]
Logits = tuple[npt.NDArray[np.float32], Ids | None]
"""Logits of one row, and the tokens that they belong to in ascending order; None for all of them, with -inf where not allowed."""
LogitsOf = Mapping[int, Callable[[], Logits]]
"""Logits by row, picked from the computed ones when they are asked for."""
LARGE_PART = 8
"""The whole head is evaluated when the tokens of all rows together are more than one in so many."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A row of a step's hidden rows whose logits are needed, and for which tokens; None for all."""

    row: int
    allowed: Allowed | None


def evaluate_head(model: Model, hidden: Array, wanted: Sequence[Wanted]) -> LogitsOf:
    """Logits by row, picked from the computed ones when they are asked for."""
    vocabulary = model.config.text.vocab_size
    whole: list[Wanted] = []
    few: list[tuple[int, Ids]] = []
    for item in wanted:
        if item.allowed is None or item.allowed.ids is None:
            whole.append(item)
        else:
            few.append((item.row, item.allowed.ids))
    union = np.unique(np.concatenate([ids for _, ids in few])) if few else np.empty(0, np.int64)
    if len(union) * LARGE_PART > vocabulary:
        whole += [item for item in wanted if item.allowed is not None and item.allowed.ids is not None]
        few = []
    found: dict[int, Callable[[], Logits]] = {}
    if whole:
        logits = model.logits(hidden, np.array([item.row for item in whole]))
        found |= {item.row: partial(_masked, row, item.allowed) for item, row in zip(whole, logits, strict=True)}
    if few and len(union):
        logits = model.logits(hidden, np.array([row for row, _ in few]), union)
        found |= {row: partial(_picked, values, union, ids) for (row, ids), values in zip(few, logits, strict=True)}
    elif few:
        found |= {row: partial(_picked, np.empty(0, np.float32), union, ids) for row, ids in few}
    return found


def _masked(row: npt.NDArray[np.float32], allowed: Allowed | None) -> Logits:
    if allowed is None:
        return row, None
    if allowed.ids is not None:
        return row[allowed.ids], allowed.ids
    forbidden = unpack_mask(allowed.mask, len(row))
    np.logical_not(forbidden, out=forbidden)
    np.putmask(row, forbidden, -np.inf)  # the row is nobody else's, and a copy of it would take longer than all the rest
    return row, None


def _picked(values: npt.NDArray[np.float32], union: Ids, ids: Ids) -> Logits:
    return values[np.searchsorted(union, ids)], ids
