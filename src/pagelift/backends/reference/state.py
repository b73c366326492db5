"""Caches of the reference backend, as plain float32 arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pagelift.backends.protocol import AttentionHeads, DeltaNet
from pagelift.backends.tensors import Floats
from pagelift.core.errors import EngineError

FIRST_ROOM = 16
"""Tokens for which a new KV cache has room."""


class ReferenceKVCache:
    """Keys and values (length, kv_heads, head_dim) in arrays that double when they are full."""

    def __init__(self, heads: AttentionHeads) -> None:
        self.length = 0
        self._keys = np.zeros((FIRST_ROOM, heads.kv_heads, heads.head_dim), np.float32)
        self._values = np.zeros_like(self._keys)

    @property
    def nbytes(self) -> int:
        return self._keys.nbytes + self._values.nbytes

    @property
    def keys(self) -> Floats:
        return self._keys[: self.length]

    @property
    def values(self) -> Floats:
        return self._values[: self.length]

    def append(self, keys: Floats, values: Floats) -> None:
        end = self.length + len(keys)
        if end > len(self._keys):
            room = np.zeros((max(end, 2 * len(self._keys)) - len(self._keys), *self._keys.shape[1:]), np.float32)
            self._keys, self._values = np.concatenate([self._keys, room]), np.concatenate([self._values, room])
        self._keys[self.length : end], self._values[self.length : end] = keys, values
        self.length = end

    def keep(self, count: int, block: int) -> None:
        if not 0 <= count <= block <= self.length:
            raise EngineError(f"cannot keep {count} of a block of {block} in a cache of {self.length} tokens")
        self.length += count - block

    def copy(self) -> ReferenceKVCache:
        new = object.__new__(ReferenceKVCache)
        new.length, new._keys, new._values = self.length, self._keys.copy(), self._values.copy()
        return new


@dataclass(frozen=True, slots=True)
class Updates:
    """What the delta rule writes, per token of one segment: k, v (L, value_heads, dim); decay, beta (L, value_heads)."""

    k: Floats
    v: Floats
    decay: Floats
    beta: Floats

    def apply(self, state: Floats, token: int) -> Floats:
        """The state (value_heads, key_dim, value_dim) after one more token."""
        decayed = state * self.decay[token, :, None, None]
        error = self.v[token] - np.einsum("hkv,hk->hv", decayed, self.k[token])
        updated: Floats = decayed + np.einsum("hk,hv->hkv", self.k[token], self.beta[token, :, None] * error)
        return updated


@dataclass(slots=True)
class Draft:
    """Record of a drafted block: convolution inputs with the window before them, state before it, and its updates."""

    inputs: Floats
    state: Floats | None = None
    updates: Updates | None = None


@dataclass(slots=True)
class ReferenceDeltaState:
    """window: the last kernel - 1 convolution inputs (kernel - 1, channels). state: (value_heads, key_dim, value_dim)."""

    window: Floats
    state: Floats
    draft: Draft | None = None

    @classmethod
    def zero(cls, net: DeltaNet) -> ReferenceDeltaState:
        channels, kernel = net.conv.shape
        state = np.zeros((net.value_heads, net.key_dim, net.value_dim), np.float32)
        return cls(np.zeros((kernel - 1, channels), np.float32), state)

    @property
    def nbytes(self) -> int:
        total = self.window.nbytes + self.state.nbytes
        if self.draft is not None:
            u = self.draft.updates
            arrays = [self.draft.inputs, self.draft.state] + ([u.k, u.v, u.decay, u.beta] if u else [])
            total += sum(a.nbytes for a in arrays if a is not None)
        return total

    def keep(self, count: int, block: int) -> None:
        draft = self.draft
        if draft is None or draft.state is None or draft.updates is None or not 0 <= count <= block == len(draft.updates.k):
            raise EngineError(f"no block of {block} tokens is recorded of which {count} could be kept")
        self.window = draft.inputs[count : count + len(self.window)].copy()
        self.state = draft.state
        for token in range(count):
            self.state = draft.updates.apply(self.state, token)
        self.draft = None

    def copy(self) -> ReferenceDeltaState:
        if self.draft is not None:
            raise EngineError("a state with an undecided draft cannot be copied")
        return replace(self, window=self.window.copy(), state=self.state.copy())
