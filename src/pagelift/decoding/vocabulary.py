"""A model's tokenizer as grammars need it: built once per model, shared by all its grammars."""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Protocol, TypeVar

import llguidance
import numpy as np
import numpy.typing as npt

CACHED_GRAMMARS = 64

T = TypeVar("T")


class TextTokenizer(Protocol):
    """What a vocabulary asks of a tokenizer; `pagelift.weights.Tokenizer` is one."""

    special_ids: frozenset[int]
    stop_tokens: frozenset[int]

    @property
    def vocab_size(self) -> int: ...

    def encode(self, text: str) -> list[int]: ...

    def token_bytes(self, index: int) -> bytes: ...


class Vocabulary:
    """The tokens of a model with what was compiled for them. Cheap to make; the index of tokens is built when it is first used.

    tokenizer: text to ids and back. size: rows of the model's output head, at least the tokenizer's; ids beyond its tokens are
    never allowed. stop_tokens: ids that end an answer, the tokenizer's own unless given. Safe to share between threads.
    """

    def __init__(self, tokenizer: TextTokenizer, size: int | None = None, stop_tokens: Iterable[int] | None = None) -> None:
        self.tokenizer = tokenizer
        self.size = max(size or 0, tokenizer.vocab_size)
        self.stop_tokens = tuple(sorted(tokenizer.stop_tokens if stop_tokens is None else stop_tokens))
        self._lock = threading.RLock()
        self._engine: Any = None
        self._holding: dict[bytes, npt.NDArray[np.int64]] = {}
        self._grammars: OrderedDict[Hashable, Any] = OrderedDict()

    @functools.cached_property
    def token_bytes(self) -> list[bytes]:
        """What every id adds to an answer; b"" for special tokens and for ids without a token."""
        known, special = self.tokenizer.vocab_size, self.tokenizer.special_ids
        return [self.tokenizer.token_bytes(i) if i < known and i not in special else b"" for i in range(self.size)]

    @property
    def engine(self) -> Any:
        """llguidance's index of the tokens. Takes two seconds for a vocabulary of 248,000, the first time."""
        with self._lock:
            if self._engine is None:
                self._engine = llguidance.LLTokenizer(
                    llguidance.TokenizerWrapper(_Wrapped(self)),
                    n_vocab=self.size,
                    eos_token=list(self.stop_tokens),
                    slices=llguidance.LLTokenizer.json_slices(),
                )
            return self._engine

    @functools.cached_property
    def by_first_byte(self) -> list[npt.NDArray[np.int64]]:
        """Ids of the tokens that begin with each byte, 256 sorted arrays."""
        found: list[list[int]] = [[] for _ in range(256)]
        for index, token in enumerate(self.token_bytes):
            if token:
                found[token[0]].append(index)
        return [np.asarray(ids, np.int64) for ids in found]

    def holding(self, sign: bytes) -> npt.NDArray[np.int64]:
        """Ids of the tokens with `sign` anywhere in them, sorted."""
        with self._lock:
            if sign not in self._holding:
                self._holding[sign] = np.asarray([i for i, token in enumerate(self.token_bytes) if sign in token], np.int64)
            return self._holding[sign]

    def cached(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` gave for this key, made once; the least recently used entry goes when there are too many."""
        with self._lock:
            if key not in self._grammars:
                self._grammars[key] = make()
            self._grammars.move_to_end(key)
            while len(self._grammars) > CACHED_GRAMMARS:
                self._grammars.popitem(last=False)
            found: T = self._grammars[key]
            return found


class _Wrapped:
    """The tokenizer in the form that llguidance takes."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        tokenizer = vocabulary.tokenizer
        self.tokens = list(vocabulary.token_bytes)
        for special in tokenizer.special_ids:
            if special < min(tokenizer.vocab_size, vocabulary.size):
                self.tokens[special] = tokenizer.token_bytes(special)
        self.eos_token_id = vocabulary.stop_tokens[0] if vocabulary.stop_tokens else 0
        self.bos_token_id = None
        self.special_token_ids = sorted(tokenizer.special_ids | set(vocabulary.stop_tokens))
        self._encode = tokenizer.encode

    def __call__(self, text: str) -> list[int]:
        return self._encode(text if isinstance(text, str) else bytes(text).decode(errors="replace"))
