"""How much there is to do, by kind of work, and how long the rest will take.

A kind of work goes on as fast as it went so far. One that has not been seen yet is taken to cost what its price says, in multiply-adds of
running the model; prices are what one core with AVX2 needs.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

from pagelift.weights.quant.formats import Module

Rounding = Literal["nearest", "least_squares", "gptq"]
Kind = Literal["run", "errors", "nearest", "least_squares", "gptq"]
"""run, errors, gptq: in multiply-adds. nearest, least_squares: in weights that are rounded."""
Work: TypeAlias = Mapping[Kind, float]
PRICES: dict[Kind, float] = {"run": 1, "errors": 1, "nearest": 500, "least_squares": 4500, "gptq": 1}
LOADING = 64
"""Bringing a matrix into memory as floats takes as long as so many tokens through it."""
COMPENSATION = 6000
"""What compensation does to a weight beside products of matrices takes as long as so many multiply-adds."""


class Progress(Protocol):
    """Told what is going on."""

    def begin(self, stages: Sequence[tuple[str, Work]]) -> None:
        """What there is to do in all, as far as it is known."""
        ...

    def stage(self, name: str, work: Work) -> None:
        """A stage begins."""
        ...

    def advance(self, kind: Kind, amount: float) -> None:
        """Some work was done since the last call of any of these."""
        ...

    def skip(self, work: Work) -> None:
        """Work of this stage had been done before."""
        ...


class Unwatched:
    """Nobody wants to know."""

    def begin(self, stages: Sequence[tuple[str, Work]]) -> None: ...

    def stage(self, name: str, work: Work) -> None: ...

    def advance(self, kind: Kind, amount: float) -> None: ...

    def skip(self, work: Work) -> None: ...


def together(works: Iterable[Work]) -> dict[Kind, float]:
    """All of it, without kinds of which there is nothing."""
    total: defaultdict[Kind, float] = defaultdict(float)
    for work in works:
        for kind, amount in work.items():
            total[kind] += amount
    return {kind: amount for kind, amount in total.items() if amount}


def priced(work: Work) -> float:
    """Work in multiply-adds of running the model, by the prices."""
    return sum(PRICES[kind] * amount for kind, amount in work.items())


def rounding_work(module: Module, rounding: Rounding, heard: bool) -> dict[Kind, float]:
    """Rounding a matrix once. heard: moments of its inputs are known; without them there is nothing to compensate by."""
    if rounding != "gptq":
        return {rounding: float(module.parameters)}
    if not heard:
        return {"least_squares": float(module.parameters)}
    return {"gptq": module.parameters * (module.in_features / 2 + COMPENSATION)}


def factor_work(features: int) -> float:
    """What compensation needs of the moments of so many inputs, counted once for a part; in multiply-adds of `gptq`."""
    return features**3 / 6


class Forecast:
    """Seconds that the rest of a job takes. stages: all that are known. clock: the time in seconds."""

    def __init__(self, stages: Sequence[tuple[str, Work]] = (), clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._left = {name: dict(work) for name, work in stages}
        self._seconds: defaultdict[Kind, float] = defaultdict(float)
        self._amounts: defaultdict[Kind, float] = defaultdict(float)
        self._stage = ""
        self._before = clock()

    def enter(self, name: str, work: Work) -> None:
        """A stage begins; those that were planned before it are over."""
        names = list(self._left)
        for over in names[: names.index(name) + 1] if name in names else [self._stage]:
            self._left.pop(over, None)
        self._left = {name: dict(work), **self._left}
        self._stage, self._before = name, self._clock()

    def advance(self, kind: Kind, amount: float) -> None:
        """Some work of this stage was done since the last call of anything."""
        self._seconds[kind] += self._clock() - self._before
        self._amounts[kind] += amount
        self.skip({kind: amount})

    def skip(self, work: Work) -> None:
        """Work of this stage had been done before."""
        left = self._left[self._stage]
        for kind, amount in work.items():
            left[kind] = max(0.0, left.get(kind, 0.0) - amount)
        self._before = self._clock()

    @property
    def is_founded(self) -> bool:
        """Whether every kind of work that this stage has left was seen."""
        return all(self._amounts[kind] > 0 for kind, left in self._left[self._stage].items() if left > 0)

    @property
    def stage_left(self) -> float:
        """Seconds that the rest of this stage takes; 0 while nothing was seen."""
        return self._takes(self._left.get(self._stage, {}))

    @property
    def job_left(self) -> float:
        """Seconds that the rest of all stages takes; 0 while nothing was seen."""
        return sum(map(self._takes, self._left.values()))

    def _takes(self, work: Work) -> float:
        return sum(amount * self._pace(kind) for kind, amount in work.items())

    def _pace(self, kind: Kind) -> float:
        """Seconds for one unit; of a kind that was not seen, by its price and the pace of all that were."""
        if self._amounts[kind] > 0:
            return self._seconds[kind] / self._amounts[kind]
        known = priced(self._amounts)
        return PRICES[kind] * sum(self._seconds.values()) / known if known else 0.0
