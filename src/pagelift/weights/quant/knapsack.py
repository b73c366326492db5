"""The multiple-choice knapsack: one option for each item, the least cost within a budget of bytes.

Dynamic programming over the states that no other dominates (Nemhauser and Ullmann, 1969), without those whose linear relaxation shows
that they cannot become better than a solution that is known (Dyer, Riha and Walker, 1995).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pagelift.core.errors import ConfigError

Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
TOLERANCE = 1e-9
"""Solutions that differ by this share of the cost are alike."""


@dataclass(frozen=True, slots=True)
class Option:
    """A choice for an item. size: bytes. cost: 0 or more."""

    size: int
    cost: float


def solve(items: Sequence[Sequence[Option]], budget: int) -> list[int]:
    """The place of the chosen option of each item. Raises ConfigError when even the smallest options exceed the budget."""
    if sum(min(option.size for option in options) for options in items) > budget:
        raise ConfigError(f"{budget} bytes are too few: the smallest formats of all matrices take more")
    if not items:
        return []
    useful = [_useful(options) for options in items]
    order = sorted(range(len(items)), key=lambda k: -(items[k][useful[k][-1]].size - items[k][useful[k][0]].size))
    sizes = [np.array([items[k][place].size for place in useful[k]], np.int64) for k in order]
    costs = [np.array([items[k][place].cost for place in useful[k]], np.float64) for k in order]
    chosen = _search(sizes, costs, budget)
    result = [0] * len(items)
    for k, place in zip(order, chosen, strict=True):
        result[k] = useful[k][place]
    return result


def _useful(options: Sequence[Option]) -> list[int]:
    """Options that no smaller or equal one beats, by size."""
    kept: list[int] = []
    for place in sorted(range(len(options)), key=lambda k: (options[k].size, options[k].cost)):
        if not kept or options[place].cost < options[kept[-1]].cost:
            kept.append(place)
    return kept


def _search(sizes: Sequence[Integers], costs: Sequence[Doubles], budget: int) -> list[int]:
    """The option of each item; their options are sorted by size, with falling costs."""
    bounds = [Relaxation(sizes[k:], costs[k:]) for k in range(len(sizes) + 1)]
    incumbent, best = _greedy(sizes, costs, budget)
    state_size, state_cost = np.zeros(1, np.int64), np.zeros(1)
    trail: list[tuple[Integers, Integers]] = []
    for k in range(len(sizes)):
        size = (state_size[:, None] + sizes[k]).ravel()
        cost = (state_cost[:, None] + costs[k]).ravel()
        left = budget - size
        kept = np.flatnonzero((left >= bounds[k + 1].smallest) & (cost + bounds[k + 1].least(left) < best * (1 - TOLERANCE)))
        kept = kept[np.lexsort((cost[kept], size[kept]))]
        falling = cost[kept] < np.concatenate([[np.inf], np.minimum.accumulate(cost[kept])[:-1]])
        kept = kept[falling]
        if not len(kept):
            return incumbent
        trail.append((kept // len(sizes[k]), kept % len(sizes[k])))
        state_size, state_cost = size[kept], cost[kept]
    place = int(np.argmin(state_cost))
    chosen = []
    for parents, options in reversed(trail):
        chosen.append(int(options[place]))
        place = int(parents[place])
    return chosen[::-1]


class Relaxation:
    """The least cost of some items when options may be mixed, as a function of the bytes: convex and piecewise linear.

    smallest: the bytes that they take at least.
    """

    def __init__(self, sizes: Sequence[Integers], costs: Sequence[Doubles]) -> None:
        self.smallest = int(sum(int(size[0]) for size in sizes))
        steps = [_hull(size, cost) for size, cost in zip(sizes, costs, strict=True)]
        more = np.concatenate([step[0] for step in steps]) if steps else np.empty(0)
        less = np.concatenate([step[1] for step in steps]) if steps else np.empty(0)
        order = np.argsort(less / more)  # the steepest fall first
        self._bytes = self.smallest + np.concatenate([[0.0], np.cumsum(more[order])])
        self._costs = float(sum(float(cost[0]) for cost in costs)) + np.concatenate([[0.0], np.cumsum(less[order])])

    def least(self, nbytes: Integers) -> Doubles:
        result: Doubles = np.interp(nbytes, self._bytes, self._costs)
        return result


def _hull(size: Integers, cost: Doubles) -> tuple[Doubles, Doubles]:
    """Steps (bytes more, cost less as a negative number) along the lower convex hull of one item's options."""
    corners = _corners(size, cost)
    return np.diff(size[corners]).astype(np.float64), np.diff(cost[corners])


def _corners(size: Integers, cost: Doubles) -> list[int]:
    """The options on the lower convex hull."""
    corners = [0]
    for k in range(1, len(size)):
        while len(corners) > 1:
            a, b = corners[-2], corners[-1]
            if (cost[b] - cost[a]) * (size[k] - size[b]) < (cost[k] - cost[b]) * (size[b] - size[a]):
                break
            corners.pop()
        corners.append(k)
    return corners


def _greedy(sizes: Sequence[Integers], costs: Sequence[Doubles], budget: int) -> tuple[list[int], float]:
    """A good solution: the steps of all hulls, the steepest fall first, as long as they fit; an item whose step does not fit stays."""
    chosen = [0] * len(sizes)
    left = budget - sum(int(size[0]) for size in sizes)
    steps = []
    for k, (size, cost) in enumerate(zip(sizes, costs, strict=True)):
        corners = _corners(size, cost)
        for a, b in itertools.pairwise(corners):
            steps.append(((cost[b] - cost[a]) / (size[b] - size[a]), k, a, b))
    for _, k, a, b in sorted(steps):
        more = int(sizes[k][b] - sizes[k][a])
        if chosen[k] == a and more <= left:
            chosen[k] = b
            left -= more
    return chosen, float(sum(costs[k][place] for k, place in enumerate(chosen)))
