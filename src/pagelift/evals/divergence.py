"""How far one model's distributions are from another's on the same tokens: Kullback-Leibler divergence over the whole vocabulary, in
float32 logits and float64 sums (Kullback and Leibler, 1951)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pagelift.core import Json
from pagelift.models import Head

ROWS = 32
"""Rows of logits at a time: 32 MB for a vocabulary of 248,320."""
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Divergence:
    """By token: kl of the other model from the reference in nats; whether both find the same token likeliest; log-probabilities of the
    token that stands there, of the reference and of the other."""

    kl: Floats
    same: npt.NDArray[np.bool_]
    reference: Floats
    other: Floats

    def of(self, chosen: npt.NDArray[np.bool_]) -> Divergence:
        """Some of the tokens."""
        return Divergence(self.kl[chosen], self.same[chosen], self.reference[chosen], self.other[chosen])

    def to_dict(self) -> dict[str, Json]:
        """Measures over all tokens; None where there is none."""
        if not len(self.kl):
            return dict.fromkeys(("kl_mean", "kl_median", "kl_p99", "top1", "perplexity_ratio", "perplexity"))
        return {
            "kl_mean": float(self.kl.mean()),
            "kl_median": float(np.median(self.kl)),
            "kl_p99": float(np.quantile(self.kl, 0.99)),
            "top1": float(self.same.mean()),
            "perplexity_ratio": float(np.exp((self.reference - self.other).mean())),
            "perplexity": float(np.exp(-self.other.mean())),
        }


def join(parts: Iterable[Divergence]) -> Divergence:
    """The tokens of several documents."""
    empty = np.empty(0)
    every = [Divergence(empty, empty.astype(bool), empty, empty), *parts]
    return Divergence(
        np.concatenate([part.kl for part in every]),
        np.concatenate([part.same for part in every]),
        np.concatenate([part.reference for part in every]),
        np.concatenate([part.other for part in every]),
    )


def compare_rows(heads: tuple[Head, Head], hidden: Sequence[npt.NDArray[np.float32]], targets: npt.NDArray[np.int64]) -> Divergence:
    """Two models on the same tokens. heads: of the reference and the other. hidden: the rows (n, hidden) of each. targets: (n,)."""
    parts = []
    for begin in range(0, len(targets), ROWS):
        rows = slice(begin, begin + ROWS)
        logits = [head.logits(own[rows]) for head, own in zip(heads, hidden, strict=True)]
        parts.append(compare_logits(logits[0], logits[1], targets[rows]))
    return join(parts)


def compare_logits(reference: npt.NDArray[np.float32], other: npt.NDArray[np.float32], targets: npt.NDArray[np.int64]) -> Divergence:
    """The same from logits (n, vocabulary). KL(reference || other) is exactly 0 where the logits are equal."""
    p, q = log_softmax(reference), log_softmax(other)
    kl = np.maximum((np.exp(p) * (p - q)).sum(axis=1), 0.0)  # rounding can leave a little below zero
    each = np.arange(len(targets))
    return Divergence(kl, reference.argmax(axis=1) == other.argmax(axis=1), p[each, targets], q[each, targets])


def log_softmax(logits: npt.NDArray[np.float32]) -> Floats:
    """Logarithms of the probabilities (n, vocabulary)."""
    shifted = logits.astype(np.float64)
    shifted -= shifted.max(axis=1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return shifted
