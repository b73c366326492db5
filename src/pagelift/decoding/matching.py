"""The state of one answer under a grammar."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pagelift.core import EngineError
from pagelift.decoding.constraint import Allowed
from pagelift.decoding.guards import Guard
from pagelift.decoding.vocabulary import Vocabulary

_log = logging.getLogger(__name__)
FEW = 4096
"""Up to so many allowed tokens are also listed by id."""


class GrammarConstraint:
    """`Constraint` over a matcher of llguidance and a guard, which narrows the choice where an answer would run on.

    wider: makes a matcher that takes over, from the beginning, when this one meets a limit of its own; None when there is none.
    """

    def __init__(self, matcher: Any, vocabulary: Vocabulary, guard: Guard, wider: Callable[[], Any] | None = None) -> None:
        self._matcher = matcher
        self._vocabulary = vocabulary
        self._guard = guard
        self._wider = wider
        self._tokens: list[int] = []
        self._ended = 0  # stop tokens that were accepted

    @property
    def finished(self) -> bool:
        return self._ended > 0 or bool(self._matcher.is_stopped())

    def forced(self) -> Sequence[int]:
        if self.finished:
            return ()
        tokens = self._matcher.compute_ff_tokens()
        if self._replaced():
            return ()
        return tokens[: self._matcher.validate_tokens(tokens)] if tokens else ()

    def allowed(self) -> Allowed:
        words = -(-self._vocabulary.size // 32)
        if self.finished:
            return _allowed(np.asarray(self._vocabulary.stop_tokens, np.int64), words)
        mask = np.frombuffer(self._matcher.compute_bitmask(), np.uint32)[:words]
        if self._replaced():
            mask = np.frombuffer(self._matcher.compute_bitmask(), np.uint32)[:words]
        narrowing = self._guard.narrowing()
        if narrowing:
            ids = _ids(mask)
            kept = self._guard.narrow(ids, narrowing)
            if len(kept) < len(ids):
                return _allowed(kept, words)
        return Allowed(mask, _few(mask))

    def accept(self, tokens: Sequence[int]) -> None:
        for count, token in enumerate(tokens):
            if self._ended or (token in self._vocabulary.stop_tokens and not self._matcher.is_accepting()):
                self._refuse(token, count)
            if token in self._vocabulary.stop_tokens:
                self._ended += 1
            elif self._matcher.try_consume_tokens([token]) or (self._replaced() and self._matcher.try_consume_tokens([token])):
                self._guard.accept(token)
                self._tokens.append(token)
            else:
                self._refuse(token, count)

    def _refuse(self, token: int, accepted: int) -> None:
        self.rollback(accepted)
        raise EngineError(f"token {token} is not what the grammar allows here; only tokens from `allowed` can be accepted")

    def prefix(self, tokens: Sequence[int]) -> int:
        if self._ended or not tokens:
            return 0
        if len(tokens) == 1 and not self._guard.narrowing():
            return self._plain_prefix(tokens)
        ahead = self.copy()
        for count, token in enumerate(tokens):
            if ahead._guard.narrowing() and not ahead._admits(token):
                return count
            if not ahead._plain_prefix([token]):
                return count
            ahead.accept([token])
        return len(tokens)

    def _plain_prefix(self, tokens: Sequence[int]) -> int:
        """Whether the next token could be accepted, whatever the guard says."""
        if tokens[0] in self._vocabulary.stop_tokens:
            return int(not self._ended and bool(self._matcher.is_accepting()))
        count = 0 if self._ended else int(self._matcher.validate_tokens([tokens[0]]))
        return int(self._matcher.validate_tokens([tokens[0]])) if self._replaced() else count

    def _admits(self, token: int) -> bool:
        return bool(self.allowed().mask[token // 32] >> np.uint32(token % 32) & 1)

    def rollback(self, count: int) -> None:
        taken = min(count, self._ended)
        self._ended -= taken
        if count > taken:
            self._guard.rollback(count - taken)
            del self._tokens[taken - count :]
            if not self._matcher.rollback(count - taken):
                raise EngineError(f"cannot take back {count} tokens: {self._matcher.get_error()}")

    def copy(self) -> GrammarConstraint:
        other = GrammarConstraint(self._matcher.deep_copy(), self._vocabulary, self._guard.copy(), self._wider)
        other._tokens, other._ended = list(self._tokens), self._ended
        return other

    def _replaced(self) -> bool:
        """Whether the matcher had failed and another has taken over. Raises EngineError when none can."""
        if not self._matcher.is_error():
            return False
        fault = self._matcher.get_error().splitlines()[0][:200]
        wider, self._wider = self._wider, None
        matcher = None if wider is None else wider()
        if matcher is None or not matcher.consume_tokens(self._tokens):
            raise EngineError(f"the grammar failed after {len(self._tokens)} tokens: {fault}")
        _log.warning(
            "the grammar met a limit after %d tokens, any JSON may follow and is validated at the end: %s", len(self._tokens), fault
        )
        self._matcher = matcher
        return True


def _allowed(ids: npt.NDArray[np.int64], words: int) -> Allowed:
    """These tokens alone."""
    mask = np.zeros(words, np.uint32)
    np.bitwise_or.at(mask, ids // 32, np.uint32(1) << (ids % 32).astype(np.uint32))
    return Allowed(mask, ids if len(ids) <= FEW else None)


def _ids(mask: npt.NDArray[np.uint32], words: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.int64]:
    """The ids of the bits that are set. words: the indices of the words that are not zero, where they are known."""
    words = np.flatnonzero(mask) if words is None else words
    bits = np.unpackbits(mask[words].view(np.uint8), bitorder="little").reshape(len(words), 32)
    rows, columns = np.nonzero(bits)
    return (words[rows] * 32 + columns).astype(np.int64)


def _few(mask: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64] | None:
    """The ids of the bits that are set, None when there are many."""
    words = np.flatnonzero(mask)
    ids = _ids(mask, words) if len(words) <= FEW else None
    return ids if ids is not None and len(ids) <= FEW else None
