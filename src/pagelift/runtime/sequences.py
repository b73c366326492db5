"""One answer in the making: its prompt, its caches, its tokens so far."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from pagelift.backends import Array, SequenceCache
from pagelift.decoding import Constraint, Drafter, Sampling, Token
from pagelift.models.positions import Integers, text_positions
from pagelift.models.prompt import Prompt
from pagelift.runtime.prefixes import Point, Trunk

FinishReason = Literal["stop", "length", "cancelled", "error"]
"""stop: the model ended its turn, or the grammar its answer. length: max_tokens or the model's context was reached. cancelled: the
caller gave up. error: see `Sequence.error`."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a model.

    constraint: what the answer may look like; it is advanced, so each request needs its own. hints: texts that the answer may
    copy from, such as the words of each page in reading order, and answers from elsewhere as JSON; they make it faster and never
    change it.
    """

    prompt: Prompt
    sampling: Sampling = field(default_factory=Sampling)
    constraint: Constraint | None = None
    hints: tuple[str, ...] = ()


@dataclass(slots=True)
class Counts:
    """What an answer has cost. passes: steps that it took part in; prefill_passes: those of them that gave no token. drafted,
    accepted: tokens that were guessed, and guessed right; what the grammar forces is in neither. cached_tokens: of the prompt, not
    computed again. cache_bytes: of the caches at the end. Times in seconds; in a step with others the part by rows.
    """

    passes: int = 0
    prefill_passes: int = 0
    drafted: int = 0
    accepted: int = 0
    cached_tokens: int = 0
    pictures: int = 0
    encode_s: float = 0.0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    grammar_s: float = 0.0
    draft_s: float = 0.0
    settle_s: float = 0.0
    cache_bytes: int = 0

    def add_pass(self, seconds: float, prefill: bool) -> None:
        """A step took `seconds` for this answer. prefill: it gave no token."""
        self.passes += 1
        self.prefill_passes += prefill
        if prefill:
            self.prefill_s += seconds
        else:
            self.decode_s += seconds


class Sequence:
    """A prompt and the answer that grows behind it.

    limit: the most tokens of the answer. computed: how many tokens the caches have seen. output: tokens of the answer, without
    the one that ended it. features: encoded pictures by their index in the prompt, kept only while their rows are being computed.
    points: where the caches are to be kept for others; trunk, ancestor: see `prefixes`. started: whether it was decided where to
    begin. alone_until: until so many tokens are computed it gets steps of its own, because a step with others has failed.
    """

    def __init__(self, request: Request, cache: SequenceCache, limit: int, stop_tokens: frozenset[int]) -> None:
        self.prompt = request.prompt
        self.sampling = request.sampling
        self.constraint = request.constraint
        self.cache = cache
        self.limit = limit
        self.stop_tokens = stop_tokens
        self.generator = request.sampling.generator()
        self.drafter: Drafter | None = None
        self.points: list[Point] = []
        self.trunk = Trunk()
        self.ancestor: Point | None = None
        self.started = False
        self.computed = 0
        self.alone_until = 0
        self.restarts = 0
        self.output: list[Token] = []
        self.finish_reason: FinishReason | None = None
        self.error: Exception | None = None
        self.features: dict[int, Array] = {}
        self.counts = Counts()

    @property
    def length(self) -> int:
        """Tokens of prompt and answer so far."""
        return len(self.prompt) + len(self.output)

    @property
    def waiting(self) -> int:
        """Tokens that the caches have not seen: the rest of the prompt, and tokens of the answer since the last step."""
        return self.length - self.computed

    @property
    def room(self) -> int:
        """Tokens that the answer may still get."""
        return self.limit - len(self.output)

    @property
    def prefilling(self) -> bool:
        return self.computed < len(self.prompt)

    @property
    def chunk(self) -> int:
        """The most tokens that the next step may take: up to where the caches are to be kept."""
        end = next((point.length for point in self.points if point.length > self.computed), self.length)
        return end - self.computed

    def tokens(self, count: int, draft: Iterable[int] = ()) -> Integers:
        """The ids of the next `count` tokens to compute, and a draft behind them."""
        past = len(self.prompt)
        begin, end = self.computed, self.computed + count
        answer = [token.id for token in self.output[max(begin - past, 0) : max(end - past, 0)]]
        return np.concatenate([self.prompt.tokens[begin:end], np.array([*answer, *draft], np.int64)])

    def positions(self, count: int) -> Integers:
        """The positions (3, count) of the next tokens."""
        past = len(self.prompt)
        begin, end = self.computed, self.computed + count
        first = max(begin - past, 0)
        answer = text_positions(self.prompt.next_position + first, max(end - past, 0) - first)
        return np.concatenate([self.prompt.positions[:, begin:end], answer], axis=1)

    def begin(self) -> None:
        """Take what the grammar forces at the start. Raises EngineError."""
        self._finish_if(self.constraint is not None and self.constraint.finished)
        self._force()

    def draw(self, token: Token) -> None:
        """Take a drawn token, and behind it everything that the grammar leaves no choice about. Raises EngineError."""
        self._take(token)
        self._force()

    def append(self, token: Token, finished: bool) -> None:
        """Take a token that the constraint has accepted already. finished: whether the grammar ends with it."""
        self.output.append(token)
        if self.drafter is not None:
            self.drafter.extend([token.id])
        self._finish_if(finished)
        if len(self.output) >= self.limit and self.finish_reason is None:
            self.finish_reason = "length"

    def fail(self, error: Exception) -> None:
        """End with an error."""
        self.error, self.finish_reason = error, "error"

    def release(self) -> None:
        """Let go of what only an answer in the making needs; readers may keep the sequence for its tokens and counts."""
        self.counts.cache_bytes = self.cache.nbytes
        self.cache, self.features, self.drafter, self.trunk = SequenceCache([]), {}, None, Trunk()

    def restart(self, cache: SequenceCache) -> None:
        """Forget what the caches hold; the tokens stay and will be computed again."""
        self.cache, self.computed, self.features, self.started = cache, 0, {}, False
        self.trunk, self.ancestor = Trunk(), None

    def _take(self, token: Token) -> None:
        if token.id in self.stop_tokens:
            self.finish_reason = "stop"
            return
        if self.constraint is not None:
            self.constraint.accept([token.id])
        self.append(token, self.constraint is not None and self.constraint.finished)

    def _force(self) -> None:
        while self.constraint is not None and self.finish_reason is None and (forced := self.constraint.forced()):
            for index in forced:
                if self.finish_reason is None:
                    self._take(Token(index, 0.0, forced=True))

    def _finish_if(self, finished: bool) -> None:
        if finished:
            self.finish_reason = "stop"
