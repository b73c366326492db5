"""Models without weights, whose logits depend on all tokens before, and a grammar on llguidance to check the loop with."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import llguidance
import numpy as np
from llguidance import LLMatcher, LLTokenizer

from pagelift.backends import Array, Indices, SequenceCache
from pagelift.core.errors import EngineError
from pagelift.decoding import Allowed, Constraint
from pagelift.models import Grid, ModelConfig, Step
from pagelift.weights import Tokenizer

FOLDER = Path(__file__).parent.parent / "golden" / "document"
Next = Callable[[tuple[int, ...]], np.ndarray]
"""Logits (vocabulary,) behind these tokens."""


class Memory:
    """A layer's cache that holds the tokens themselves."""

    def __init__(self, tokens: Sequence[int] = ()) -> None:
        self.tokens = list(tokens)

    @property
    def nbytes(self) -> int:
        return 8 * len(self.tokens)

    @property
    def length(self) -> int:
        return len(self.tokens)

    def keep(self, count: int, block: int) -> None:
        del self.tokens[len(self.tokens) - block + count :]

    def copy(self) -> Memory:
        return Memory(self.tokens)


class FakeModel:
    """Says what `next_logits` tells it. steps: what it was shown; asked: rows and tokens of each call of the head."""

    def __init__(self, config: ModelConfig, next_logits: Next) -> None:
        self.config = config
        self.next_logits = next_logits
        self.steps: list[Step] = []
        self.asked: list[tuple[int, int]] = []
        self.encoded = 0

    def new_cache(self) -> SequenceCache:
        return SequenceCache([Memory()])

    def cache_bytes(self, tokens: int, draft: int = 0) -> int:  # noqa: ARG002
        return 8 * tokens

    def forward(self, step: Step) -> Array:
        self.steps.append(step)
        self._past: list[tuple[list[int], int]] = []
        for segment in step.batch.segments:
            memory = segment.cache.layers[0]
            for token in step.tokens[segment.rows]:
                memory.tokens.append(int(token))
                self._past.append((memory.tokens, len(memory.tokens)))
            segment.cache.advance(segment.length, segment.draft)
        return np.zeros((step.batch.rows, 1), np.float32)

    def logits(self, hidden: Array, rows: Indices, tokens: Indices | None = None) -> np.ndarray:  # noqa: ARG002
        pasts = [self._past[int(row)] for row in rows]
        found = np.stack([self.next_logits(tuple(tokens[:end])) for tokens, end in pasts]).astype(np.float32)
        self.asked.append((len(rows), found.shape[1] if tokens is None else len(tokens)))
        return found if tokens is None else found[:, tokens]

    def encode(self, patches: np.ndarray, grids: Sequence[Grid]) -> Array:  # noqa: ARG002
        self.encoded += len(grids)
        return np.zeros((sum(grid.merged(2).patches for grid in grids), 1), np.float32)


def hashed(vocabulary: int, seed: int = 0) -> Next:
    """Logits that look random and depend on every token before."""

    def logits(past: tuple[int, ...]) -> np.ndarray:
        return np.random.default_rng(zlib.crc32(np.array((seed, *past), np.int64).tobytes())).normal(size=vocabulary) * 2

    return logits


def spoken(tokenizer: Tokenizer, text: str, vocabulary: int, stop: int) -> Next:
    """Logits that write `text` behind any prompt, byte for byte, whatever tokens the bytes so far came in: the model prefers what
    agrees with the rest of the text, the canonical token most. The text begins with a brace, and no prompt has one."""
    wanted = text.encode()

    @cache
    def behind(done: bytes) -> np.ndarray:
        logits = np.zeros(vocabulary, np.float32)
        if not wanted.startswith(done) or done == wanted:
            logits[stop] = 9
            return logits
        rest = wanted[len(done) :]
        for token in range(tokenizer.vocab_size):
            if token not in tokenizer.special_ids and (b := tokenizer.token_bytes(token)) and rest.startswith(b):
                logits[token] = 5
        logits[tokenizer.encode(rest.decode(errors="ignore"))[0]] = 9
        return logits

    def logits(past: tuple[int, ...]) -> np.ndarray:
        said = b"".join(tokenizer.token_bytes(token) for token in past)
        place = said.find(b"{")
        return behind(said[place:] if place >= 0 else b"")

    return logits


class _Wrapped:
    """What llguidance asks of a tokenizer."""

    def __init__(self, tokenizer: Tokenizer, stop: int) -> None:
        self.eos_token_id = stop
        self.bos_token_id = None
        self.tokens = [tokenizer.token_bytes(i) or f"<{i}>".encode() for i in range(tokenizer.vocab_size)]
        self.special_token_ids = sorted(tokenizer.special_ids)
        self._tokenizer = tokenizer

    def __call__(self, text: str | bytes) -> list[int]:
        return self._tokenizer.encode(text if isinstance(text, str) else text.decode(errors="ignore"))


@cache
def engine(tokenizer: Tokenizer, stop: int) -> LLTokenizer:
    return LLTokenizer(llguidance.TokenizerWrapper(_Wrapped(tokenizer, stop)))


class Guided:
    """A constraint straight on llguidance; few: up to so many allowed tokens are given as ids."""

    def __init__(self, tokenizer: Tokenizer, schema: Any, few: int = 64) -> None:
        self._stop = min(tokenizer.stop_tokens)
        self._engine = engine(tokenizer, self._stop)
        options = {"item_separator": ", ", "key_separator": ": ", "whitespace_flexible": False}
        self._few = few
        self._matcher = LLMatcher(self._engine, LLMatcher.grammar_from_json_schema(json.dumps(schema), options))
        if self._matcher.is_error():
            raise EngineError(self._matcher.get_error())

    @property
    def finished(self) -> bool:
        return bool(self._matcher.is_stopped())

    def forced(self) -> list[int]:
        return [] if self.finished else list(self._matcher.compute_ff_tokens())

    def allowed(self) -> Allowed:
        mask = np.frombuffer(self._matcher.compute_bitmask(), np.uint32)
        ids = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
        return Allowed(mask, ids if len(ids) <= self._few else None)

    def accept(self, tokens: Sequence[int]) -> None:
        if self.prefix(tokens) < len(tokens) or not self._matcher.consume_tokens(list(tokens)):
            raise EngineError("not allowed")

    def prefix(self, tokens: Sequence[int]) -> int:
        return int(self._matcher.validate_tokens(list(tokens)))

    def rollback(self, count: int) -> None:
        if count and not self._matcher.rollback(count):
            raise EngineError(self._matcher.get_error())

    def copy(self) -> Constraint:
        new = object.__new__(Guided)
        new.__dict__.update(self.__dict__)
        new._matcher = self._matcher.deep_copy()
        return new


def plain(model: FakeModel, prompt: Sequence[int], constraint: Constraint, most: int, stop_tokens: frozenset[int]) -> list[int]:
    """Masked greedy decoding in the plainest way: one token at a time, the whole head, nothing drafted or kept."""
    past, output = list(prompt), []
    while len(output) < most and not constraint.finished:
        forced = constraint.forced()
        if forced:
            token = int(forced[0])
        else:
            logits = model.next_logits(tuple(past)).astype(np.float32)
            allowed = np.unpackbits(constraint.allowed().mask.view(np.uint8), bitorder="little")[: len(logits)].astype(bool)
            token = int(np.where(allowed, logits, -np.inf).argmax())
        if token in stop_tokens:
            break
        constraint.accept([token])
        past.append(token)
        output.append(token)
    return output
