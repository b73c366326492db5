"""What a sequence remembers between steps: keys and values of full attention, convolution and recurrent state of linear attention.

Storage belongs to the backend; the classes here say what every backend's storage can do. An operation appends to it, so the
caches of a batch advance layer by layer during a step, and `SequenceCache.advance` closes the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pagelift.core.errors import EngineError


class LayerCache(Protocol):
    """What one layer remembers of one sequence."""

    @property
    def nbytes(self) -> int:
        """Bytes allocated, records of a draft included; parts shared with a copy are counted in both."""
        ...

    def keep(self, count: int, block: int) -> None:
        """Of the last `block` tokens, which came as a draft, the first `count` stay; the others never happened.

        Raises EngineError when no such block is recorded or 0 <= count <= block does not hold.
        """
        ...

    def copy(self) -> LayerCache:
        """An independent cache with the same content; what both have in common may be shared until one of them writes.

        Raises EngineError while a draft is undecided.
        """
        ...


class KVCache(LayerCache, Protocol):
    """Keys and values of one full-attention layer. Grows with the sequence; `keep` truncates it."""

    @property
    def length(self) -> int:
        """Tokens held."""
        ...


class DeltaState(LayerCache, Protocol):
    """State of one gated DeltaNet layer: the last inputs of its convolution, and the recurrent state in float32.

    For a draft segment it also records the convolution's inputs, the recurrent state before the block and per token k, v, decay
    and beta. `keep` replays the updates of the tokens that stay, bit for bit what a step of just those tokens would have left,
    without touching weights.
    """


class SequenceCache:
    """The caches of all layers of one sequence, and how many tokens they have seen."""

    def __init__(self, layers: Sequence[LayerCache], length: int = 0) -> None:
        self.layers = tuple(layers)
        self.length = length
        self.pending = 0
        """Tokens of a drafted block that `keep` has not decided on yet; they are already counted in `length`."""

    @property
    def nbytes(self) -> int:
        return sum(layer.nbytes for layer in self.layers)

    def advance(self, length: int, draft: bool) -> None:
        """Close a step in which all layers have taken `length` tokens. Called by the model only."""
        self.length += length
        self.pending = length if draft else 0

    def keep(self, count: int) -> None:
        """Decide on the drafted block: its first `count` tokens stay, the others never happened.

        Raises EngineError when no block is pending or `count` is not within it.
        """
        if not self.pending or not 0 <= count <= self.pending:
            raise EngineError(f"cannot keep {count} tokens of a drafted block of {self.pending}")
        for layer in self.layers:
            layer.keep(count, self.pending)
        self.length += count - self.pending
        self.pending = 0

    def copy(self) -> SequenceCache:
        """A snapshot that continues independently. Raises EngineError while a drafted block is pending."""
        if self.pending:
            raise EngineError("a sequence with a drafted block cannot be copied; call keep() first")
        return SequenceCache([layer.copy() for layer in self.layers], self.length)
