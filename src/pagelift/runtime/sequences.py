"""One answer in the making: its prompt, its caches, its tokens so far."""

from __future__ import annotations

from typing import Literal

import numpy as np

from pagelift.backends import Array, SequenceCache
from pagelift.models.positions import Integers, text_positions
from pagelift.models.prompt import Prompt
from pagelift.runtime.sampling import Sampling, Token

FinishReason = Literal["stop", "length", "cancelled"]
"""stop: the model ended its turn. length: max_tokens or the model's context was reached. cancelled: the caller gave up."""


class Sequence:
    """A prompt and the answer that grows behind it.

    computed: how many of its tokens the caches have seen. output: tokens of the answer, without the one that ended it.
    features: encoded pictures by their index in the prompt, kept only while their rows are being computed.
    """

    def __init__(self, prompt: Prompt, sampling: Sampling, cache: SequenceCache) -> None:
        self.prompt = prompt
        self.sampling = sampling
        self.cache = cache
        self.generator = sampling.generator()
        self.computed = 0
        self.output: list[Token] = []
        self.finish_reason: FinishReason | None = None
        self.features: dict[int, Array] = {}

    @property
    def length(self) -> int:
        """Tokens of prompt and answer so far."""
        return len(self.prompt) + len(self.output)

    @property
    def waiting(self) -> int:
        """Tokens that the caches have not seen: the rest of the prompt, or the token generated last."""
        return self.length - self.computed

    @property
    def prefilling(self) -> bool:
        return self.computed < len(self.prompt)

    def tokens(self, count: int) -> Integers:
        """The ids of the next `count` tokens to compute."""
        past = len(self.prompt)
        if self.prefilling:
            return self.prompt.tokens[self.computed : self.computed + count]
        return np.array([token.id for token in self.output[self.computed - past : self.computed - past + count]], np.int64)

    def positions(self, count: int) -> Integers:
        """Their positions (3, count)."""
        if self.prefilling:
            return self.prompt.positions[:, self.computed : self.computed + count]
        return text_positions(self.prompt.next_position + self.computed - len(self.prompt), count)
