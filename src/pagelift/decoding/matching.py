"""The state of one answer under a grammar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pagelift.core import EngineError
from pagelift.decoding.constraint import Allowed
from pagelift.decoding.vocabulary import Vocabulary

FEW = 4096
"""Up to so many allowed tokens are also listed by id."""


class GrammarConstraint:
    """`Constraint` over a matcher of llguidance."""

    def __init__(self, matcher: Any, vocabulary: Vocabulary, ended: int = 0) -> None:
        self._matcher = matcher
        self._vocabulary = vocabulary
        self._ended = ended  # stop tokens that were accepted

    @property
    def finished(self) -> bool:
        return self._ended > 0 or bool(self._matcher.is_stopped())

    def forced(self) -> Sequence[int]:
        if self.finished:
            return ()
        tokens = self._matcher.compute_ff_tokens()
        return tokens[: self._matcher.validate_tokens(tokens)] if tokens else ()

    def allowed(self) -> Allowed:
        words = -(-self._vocabulary.size // 32)
        if self.finished:
            mask = np.zeros(words, np.uint32)
            for token in self._vocabulary.stop_tokens:
                mask[token // 32] |= np.uint32(1 << token % 32)
        else:
            mask = np.frombuffer(self._matcher.compute_bitmask(), np.uint32)[:words]
            self._check()
        return Allowed(mask, _few(mask))

    def accept(self, tokens: Sequence[int]) -> None:
        for count, token in enumerate(tokens):
            if self._ended or (token in self._vocabulary.stop_tokens and not self._matcher.is_accepting()):
                self._refuse(token, count)
            if token in self._vocabulary.stop_tokens:
                self._ended += 1
            elif not self._matcher.try_consume_tokens([token]):
                self._refuse(token, count)

    def _refuse(self, token: int, accepted: int) -> None:
        self._check()
        self.rollback(accepted)
        raise EngineError(f"token {token} is not what the grammar allows here; only tokens from `allowed` can be accepted")

    def prefix(self, tokens: Sequence[int]) -> int:
        if self._ended:
            return 0
        stop = next((i for i, token in enumerate(tokens) if token in self._vocabulary.stop_tokens), len(tokens))
        count = int(self._matcher.validate_tokens(list(tokens[:stop]))) if stop else 0
        if count < stop or stop == len(tokens):
            return count
        ahead = self._matcher.deep_copy()
        ahead.consume_tokens(list(tokens[:stop]))
        return stop + int(bool(ahead.is_accepting()))

    def rollback(self, count: int) -> None:
        taken = min(count, self._ended)
        self._ended -= taken
        if count > taken and not self._matcher.rollback(count - taken):
            raise EngineError(f"cannot take back {count} tokens: {self._matcher.get_error()}")

    def copy(self) -> GrammarConstraint:
        return GrammarConstraint(self._matcher.deep_copy(), self._vocabulary, self._ended)

    def _check(self) -> None:
        if self._matcher.is_error():
            raise EngineError(f"the grammar failed: {self._matcher.get_error()[:300]}")


def _few(mask: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64] | None:
    """The ids of the bits that are set, None when there are many."""
    words = np.flatnonzero(mask)
    if len(words) > FEW:
        return None
    bits = np.unpackbits(mask[words].view(np.uint8), bitorder="little").reshape(len(words), 32)
    rows, columns = np.nonzero(bits)
    return (words[rows] * 32 + columns).astype(np.int64) if len(rows) <= FEW else None
