"""Better allocations near a good one: bytes go from some groups of matrices to others, and what helps held-out documents stays.

The sensitivities are measured one group at a time and with noise. So each group in turn is taken to be more sensitive, or less, than it was
measured; the exact solution for that moves bytes to it, or from it, within the same budget. All these allocations run side by side
over documents that the measurement has not seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pagelift.quantization.lockstep import Doubles, Findings, Variant
from pagelift.quantization.sensitivity import Group, cheapest, costs
from pagelift.weights.quant.formats import Allocation, Format, Sizes

CHANGE = 2.0
"""How much more or less sensitive a group is taken to be."""
TRIED_BY_GROUP = 2
"""Allocations that are tried for each group in a round, at most."""
CERTAINTY = 1.0
"""A change must help by so many standard errors over documents."""


@dataclass(frozen=True, slots=True)
class Search:
    """What allocations are made from."""

    sizes: Sizes
    groups: Sequence[Group]
    errors: dict[str, dict[Format, float]]
    budget: int

    def allocation(self, factors: dict[str, float]) -> Allocation:
        return cheapest(self.sizes, costs(self.groups, factors, self.errors), self.budget)


def refine(
    search: Search, factors: dict[str, float], measure: Callable[[Sequence[Variant]], Findings], rounds: int
) -> tuple[Allocation, list[str]]:
    """The best allocation found, and a line on every change that was kept.

    measure: the divergences of variants on held-out documents. In each round every group's factor is doubled and halved; the changes
    that helped are combined, and the best of them and of their combination is kept if it helps for certain (paired over documents).
    """
    current, kept = search.allocation(factors), []
    for _ in range(rounds):
        tried = _neighbours(search, factors, current)
        if not tried:
            break
        before, *after = _by_document(measure([Variant(current), *(Variant(allocation) for _, allocation in tried)]))
        helpful = [k for k in range(len(tried)) if helps(before, after[k])]
        if not helpful:
            break
        best = min(helpful, key=lambda k: float(after[k].mean()))
        choices = [tried[best]]
        if len(helpful) > 1:
            together = dict(factors)
            for k in helpful:
                name = tried[k][0]
                together |= {group: value for group, value in name.items() if value != factors[group]}
            choices.append((together, search.allocation(together)))
            first, second = _by_document(measure([Variant(allocation) for _, allocation in choices]))
            if second.mean() < first.mean():
                choices.reverse()
        changed, current = choices[0]
        moved = [f"{group} x {changed[group] / factors[group]:g}" for group in factors if changed[group] != factors[group]]
        kept.append(f"{', '.join(moved)}: {before.mean():.5f} -> {after[best].mean():.5f} or less")
        factors = changed
    return current, kept


def helps(before: Doubles, after: Doubles) -> bool:
    """Whether the mean over documents fell by more than its standard error. before, after: one number for each document."""
    change = before - after
    error = float(change.std(ddof=1)) / math.sqrt(len(change)) if len(change) > 1 else 0.0
    return float(change.mean()) > CERTAINTY * error and float(change.mean()) > 0


def _neighbours(search: Search, factors: dict[str, float], current: Allocation) -> list[tuple[dict[str, float], Allocation]]:
    """Other factors that lead to other allocations, each allocation once."""
    found: list[tuple[dict[str, float], Allocation]] = []
    for group, factor in factors.items():
        for change in (CHANGE, 1 / CHANGE):
            other = {**factors, group: factor * change}
            allocation = search.allocation(other)
            if allocation != current and all(allocation != known for _, known in found):
                found.append((other, allocation))
    return found


def _by_document(findings: Findings) -> list[Doubles]:
    """Mean divergence of each document that has answers, for each variant."""
    return [np.array([float(tokens.mean()) for tokens in documents if len(tokens)]) for documents in findings.divergences]
