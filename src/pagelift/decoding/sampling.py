"""From logits to the next token, and how sure the model was."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pagelift.core.errors import ConfigError, EngineError

OFTEN_ENOUGH = 1024
"""So many of the likeliest tokens nearly always hold the top_p part; the rest is sorted only when they do not."""
LEAST_TEMPERATURE = 1e-30
"""Below this all but the likeliest tokens have vanished long since, and float32 ends."""
BLOCK = 512
"""Weights are summed in blocks; only the block in which a draw falls is looked at one by one."""
Logits = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How an answer is drawn, and how long it may be. Raises ConfigError for values out of range.

    temperature: 0 takes the likeliest token, the lowest id of equals. top_p: draw from the smallest set of likeliest tokens
    with at least this probability together. seed: makes draws repeatable; None does not. max_tokens: of the answer.
    top_logprobs: for so many likeliest tokens the log-probability is kept at every step.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    seed: int | None = None
    max_tokens: int = 4096
    top_logprobs: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.temperature <= 100:
            raise ConfigError(f"temperature is {self.temperature!r}; give a number from 0 to 100")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p is {self.top_p!r}; give a number above 0 and up to 1")
        if self.seed is not None and not 0 <= self.seed < 1 << 64:
            raise ConfigError(f"seed is {self.seed!r}; give an integer from 0 to 2**64 - 1")
        if self.max_tokens < 1:
            raise ConfigError(f"max_tokens is {self.max_tokens!r}; give at least 1")
        if not 0 <= self.top_logprobs <= 50:
            raise ConfigError(f"top_logprobs is {self.top_logprobs!r}; give 0 to 50")

    def generator(self) -> np.random.Generator:
        """The source of random numbers for one answer."""
        return np.random.Generator(np.random.PCG64(self.seed))


@dataclass(frozen=True, slots=True)
class Token:
    """A generated token.

    logprob: natural logarithm of its probability at temperature 1 among the tokens that were allowed; 0 for a forced token, about
    which the model was not asked. top: likeliest ids with theirs.
    """

    id: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()
    forced: bool = False


def sample(logits: Logits, sampling: Sampling, generator: np.random.Generator, ids: npt.NDArray[np.int64] | None = None) -> Token:
    """Choose a token by logits, which are those of all tokens, or of the tokens `ids`, in ascending order; -inf is never chosen.

    Takes one number from the generator unless the temperature is 0. Raises EngineError when the logits are not numbers, or none of
    the tokens is allowed.
    """
    best = logits.max(initial=-np.inf)
    if best == -np.inf:
        raise EngineError("no token may follow: the grammar of the answer has come to a dead end")
    with np.errstate(invalid="ignore"):  # infinities are found by their sum
        shifted, weights = _scratch(len(logits))
        np.subtract(logits, best, out=shifted)
        total = float(np.exp(shifted, out=weights).sum())
    if not math.isfinite(total):
        raise EngineError("the model's output is not a number; the weights are damaged or the backend is at fault")
    index = int(logits.argmax()) if sampling.temperature == 0 else _draw(shifted, sampling, generator)
    log_total = math.log(total)
    top = tuple((_name(k, ids), float(shifted[k]) - log_total) for k in _likeliest(shifted, sampling.top_logprobs))
    return Token(_name(index, ids), float(shifted[index]) - log_total, top)


_buffers = threading.local()


def _scratch(size: int) -> tuple[Logits, Logits]:
    """Two arrays of this thread to write to; fresh ones of the size of a vocabulary cost more than what is computed in them."""
    if getattr(_buffers, "size", 0) < size:
        _buffers.size, _buffers.arrays = size, (np.empty(size, np.float32), np.empty(size, np.float32))
    first, second = _buffers.arrays
    return first[:size], second[:size]


def _name(index: int, ids: npt.NDArray[np.int64] | None) -> int:
    return index if ids is None else int(ids[index])


def _draw(shifted: Logits, sampling: Sampling, generator: np.random.Generator) -> int:
    """One draw at the temperature from the top_p part. shifted: logits with the maximum 0."""
    weights = _scratch(len(shifted))[1]
    with np.errstate(over="ignore", under="ignore"):  # at a temperature near 0 all but the likeliest vanish
        np.exp(np.divide(shifted, np.float32(max(sampling.temperature, LEAST_TEMPERATURE)), out=weights), out=weights)
    if sampling.top_p < 1:
        ids = _nucleus(weights, sampling.top_p * float(weights.sum(dtype=np.float64)))
        return int(ids[_pick(weights[ids], generator.random())])
    whole = len(weights) // BLOCK * BLOCK
    sums = np.append(weights[:whole].reshape(-1, BLOCK).sum(axis=1), weights[whole:].sum())
    ends = np.cumsum(sums, dtype=np.float64)
    target = generator.random() * ends[-1]
    block = _place(ends, target)
    before = ends[block - 1] if block else 0.0
    start = block * BLOCK
    return start + _pick(weights[start : start + BLOCK], (target - before) / float(ends[block] - before))


def _pick(weights: Logits, at: float) -> int:
    """The entry in whose part of the sum of all `weights` the number `at`, from 0 to 1, lies; never one without a weight."""
    ends = np.cumsum(weights, dtype=np.float64)
    return _place(ends, at * float(ends[-1]))


def _place(ends: npt.NDArray[np.float64], target: float) -> int:
    """The first entry that ends above the target, or the last one that is not empty."""
    return int(min(np.searchsorted(ends, target, side="right"), np.searchsorted(ends, ends[-1])))


def _nucleus(weights: Logits, wanted: float) -> npt.NDArray[np.intp]:
    """The fewest ids, heaviest first, whose weights reach `wanted` together."""
    ids = np.argpartition(weights, -OFTEN_ENOUGH)[-OFTEN_ENOUGH:] if len(weights) > OFTEN_ENOUGH else np.arange(len(weights))
    if weights[ids].sum(dtype=np.float64) < wanted:
        ids = np.arange(len(weights))
    ids = ids[np.lexsort((ids, -weights[ids]))]
    return ids[: int(np.searchsorted(np.cumsum(weights[ids], dtype=np.float64), wanted)) + 1]


def _likeliest(shifted: Logits, count: int) -> list[int]:
    """The ids of the `count` highest logits, highest first, lower ids before higher of equals."""
    if not count:
        return []
    best = np.argpartition(-shifted, min(count, len(shifted)) - 1)[:count]
    return sorted((int(k) for k in best if shifted[k] > -np.inf), key=lambda k: (-shifted[k], k))
