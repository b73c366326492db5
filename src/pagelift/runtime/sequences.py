"""One answer in the making: its prompt, its caches, its tokens so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from pagelift.backends import Array, SequenceCache
from pagelift.decoding import Constraint, Sampling, Token
from pagelift.models.positions import Integers, text_positions
from pagelift.models.prompt import Prompt

FinishReason = Literal["stop", "length", "cancelled"]
"""stop: the model ended its turn, or the grammar its answer. length: max_tokens or the model's context was reached. cancelled: the
caller gave up."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a model.

    constraint: what the answer may look like; it is advanced, so each request needs its own. hints: texts that the answer may
    copy from, such as the words of each page in reading order; they make it faster and never change it.
    """

    prompt: Prompt
    sampling: Sampling = field(default_factory=Sampling)
    constraint: Constraint | None = None
    hints: tuple[str, ...] = ()


class Sequence:
    """A prompt and the answer that grows behind it.

    limit: the most tokens of the answer. computed: how many tokens the caches have seen. output: tokens of the answer, without
    the one that ended it. features: encoded pictures by their index in the prompt, kept only while their rows are being computed.
    """

    def __init__(self, request: Request, cache: SequenceCache, limit: int, stop_tokens: frozenset[int] = frozenset()) -> None:
        self.request = request
        self.prompt = request.prompt
        self.sampling = request.sampling
        self.constraint = request.constraint
        self.cache = cache
        self.limit = limit
        self.stop_tokens = stop_tokens
        self.generator = request.sampling.generator()
        self.computed = 0
        self.output: list[Token] = []
        self.finish_reason: FinishReason | None = None
        self.features: dict[int, Array] = {}
        self._ids = np.empty(0, np.int64)
        self._force()

    @property
    def length(self) -> int:
        """Tokens of prompt and answer so far."""
        return len(self.prompt) + len(self.output)

    @property
    def waiting(self) -> int:
        """Tokens that the caches have not seen: the rest of the prompt, and tokens of the answer since the last step."""
        return self.length - self.computed

    @property
    def prefilling(self) -> bool:
        return self.computed < len(self.prompt)

    def tokens(self, count: int) -> Integers:
        """The ids of the next `count` tokens to compute."""
        past = len(self.prompt)
        begin, end = self.computed, self.computed + count
        answer = [token.id for token in self.output[max(begin - past, 0) : max(end - past, 0)]]
        return np.concatenate([self.prompt.tokens[begin:end], np.array(answer, np.int64)])

    def positions(self, count: int) -> Integers:
        """Their positions (3, count)."""
        past = len(self.prompt)
        begin, end = self.computed, self.computed + count
        first = max(begin - past, 0)
        answer = text_positions(self.prompt.next_position + first, max(end - past, 0) - first)
        return np.concatenate([self.prompt.positions[:, begin:end], answer], axis=1)

    def advance(self, token: Token) -> None:
        """Take a drawn token, and behind it everything that the grammar leaves no choice about."""
        if token.id in self.stop_tokens:
            self.finish_reason = "stop"
            return
        if self.constraint is not None:
            self.constraint.accept([token.id])
        self._append(token)
        self._force()

    def _append(self, token: Token) -> None:
        self.output.append(token)
        if self.constraint is not None and self.constraint.finished:
            self.finish_reason = "stop"
        elif len(self.output) >= self.limit:
            self.finish_reason = "length"

    def _force(self) -> None:
        while self.constraint is not None and self.finish_reason is None and (forced := self.constraint.forced()):
            for index in forced:
                if self.finish_reason is None:
                    self.advance_forced(index)

    def advance_forced(self, index: int) -> None:
        if index in self.stop_tokens:
            self.finish_reason = "stop"
            return
        assert self.constraint is not None
        self.constraint.accept([index])
        self._append(Token(index, 0.0, forced=True))
