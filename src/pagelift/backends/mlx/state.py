"""Caches of the mlx backend.

MLX arrays are values: an update gives a new array, which takes over the memory of the old one when nobody else refers to it.
So a copy of a cache is free until one of the two is written to, and an update without copies is in place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import mlx.core as mx

from pagelift.backends.mlx.delta import Updates, run_delta_rule
from pagelift.backends.protocol import AttentionHeads, DeltaNet
from pagelift.core.errors import EngineError

FIRST_ROOM = 256
"""Tokens for which a new KV cache has room."""


class MlxKVCache:
    """Keys and values as (1, kv_heads, room, head_dim), the layout of MLX's attention; the room grows by half when it is used up."""

    def __init__(self, heads: AttentionHeads, dtype: mx.Dtype) -> None:
        self.length = 0
        self._shape = (1, heads.kv_heads, 0, heads.head_dim)
        self._dtype = dtype
        self._keys: mx.array | None = None
        self._values: mx.array | None = None

    @property
    def arrays(self) -> list[mx.array]:
        return [array for array in (self._keys, self._values) if array is not None]

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)

    def append(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        """Add keys and values (L, kv_heads, head_dim). Returns all of both as (1, kv_heads, length, head_dim)."""
        end = self.length + keys.shape[0]
        self._keys, self._values = self._written(self._keys, keys, end), self._written(self._values, values, end)
        self.length = end
        return self._keys[:, :, :end], self._values[:, :, :end]

    def _written(self, old: mx.array | None, rows: mx.array, end: int) -> mx.array:
        room = old.shape[2] if old is not None else 0
        if old is None or end > room:
            shape = (*self._shape[:2], max(end, FIRST_ROOM, room + room // 2) - room, self._shape[3])
            more = mx.zeros(shape, self._dtype)
            old = more if old is None else mx.concatenate([old, more], axis=2)
        update = rows.astype(self._dtype).swapaxes(0, 1)[None]
        result: mx.array = mx.slice_update(old, update, mx.array([self.length]), axes=(2,))
        return result

    def keep(self, count: int, block: int) -> None:
        if not 0 <= count <= block <= self.length:
            raise EngineError(f"cannot keep {count} of a block of {block} in a cache of {self.length} tokens")
        self.length += count - block

    def copy(self) -> MlxKVCache:
        new = object.__new__(MlxKVCache)
        new.__dict__.update(self.__dict__)
        return new


@dataclass(slots=True)
class Draft:
    """Record of a drafted block: convolution inputs with the window before them, state before it, and its updates."""

    inputs: mx.array
    state: mx.array | None = None
    updates: Updates | None = None


@dataclass(slots=True)
class MlxDeltaState:
    """window: the last kernel - 1 convolution inputs (kernel - 1, channels). state: (value_heads, value_dim, key_dim) float32."""

    window: mx.array
    state: mx.array
    draft: Draft | None = None

    @classmethod
    def zero(cls, net: DeltaNet, dtype: mx.Dtype) -> MlxDeltaState:
        channels, kernel = net.conv.shape
        state = cls(mx.zeros((kernel - 1, channels), dtype), mx.zeros((net.value_heads, net.value_dim, net.key_dim)))
        mx.eval(state.arrays)
        return state

    @property
    def arrays(self) -> list[mx.array]:
        found = [self.window, self.state]
        if self.draft is not None:
            u = self.draft.updates
            found += [self.draft.inputs, *([self.draft.state] if self.draft.state is not None else [])]
            found += [u.k, u.v, u.log_decay, u.beta] if u else []
        return found

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)

    def slide(self, inputs: mx.array, end: int) -> None:
        """The window becomes the inputs just before row `end`, copied: a view would keep all of the inputs in memory."""
        self.window = mx.contiguous(inputs[end - self.window.shape[0] : end])

    def keep(self, count: int, block: int) -> None:
        draft = self.draft
        if draft is None or draft.state is None or draft.updates is None or not 0 <= count <= block == len(draft.updates.k):
            raise EngineError(f"no block of {block} tokens is recorded of which {count} could be kept")
        self.slide(draft.inputs, count + self.window.shape[0])
        self.state = draft.state
        if count:
            kept = draft.updates[:count]
            _, self.state = run_delta_rule(kept.k, kept, draft.state)
        self.draft = None
        mx.async_eval(self.window, self.state)  # type: ignore[no-untyped-call]

    def copy(self) -> MlxDeltaState:
        if self.draft is not None:
            raise EngineError("a state with an undecided draft cannot be copied")
        return replace(self)
