"""From logits to the next token, and how sure the model was."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pagelift.core.errors import ConfigError, EngineError

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
    """A generated token. logprob: natural logarithm of its probability at temperature 1. top: likeliest ids with theirs."""

    id: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


def sample(logits: Logits, sampling: Sampling, generator: np.random.Generator) -> Token:
    """Choose a token by logits (vocabulary,). Raises EngineError when they are not numbers."""
    with np.errstate(invalid="ignore"):  # infinities are found by their sum
        shifted = logits.astype(np.float64)
        shifted -= shifted.max()
    if not math.isfinite(total := float(np.exp(shifted).sum())):
        raise EngineError("the model's output is not a number; the weights are damaged or the backend is at fault")
    logprobs = shifted - math.log(total)
    index = int(logits.argmax()) if sampling.temperature == 0 else _draw(shifted / sampling.temperature, sampling.top_p, generator)
    return Token(index, float(logprobs[index]), _likeliest(logprobs, sampling.top_logprobs))


def _draw(scaled: npt.NDArray[np.float64], top_p: float, generator: np.random.Generator) -> int:
    """One draw from the softmax of `scaled` (maximum 0), cut to its top_p part."""
    order = np.argsort(-scaled, kind="stable")
    weights = np.exp(scaled[order])
    sums = np.cumsum(weights)
    kept = int(np.searchsorted(sums, top_p * sums[-1])) + 1 if top_p < 1 else len(sums)
    place = np.searchsorted(sums[:kept], generator.random() * sums[kept - 1], side="right")
    return int(order[min(int(place), kept - 1)])


def _likeliest(logprobs: npt.NDArray[np.float64], count: int) -> tuple[tuple[int, float], ...]:
    if not count:
        return ()
    best = np.argpartition(-logprobs, min(count, len(logprobs)) - 1)[:count]
    return tuple((int(i), float(logprobs[i])) for i in sorted(best, key=lambda i: (-logprobs[i], i)))
