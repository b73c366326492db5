"""What a sequence remembers between steps: keys and values of full attention, convolution and recurrent state of linear attention.

Storage belongs to the backend; the classes here say what every backend's storage can do. An operation appends to it, so the
caches of a batch advance layer by layer during a step, and `SequenceCache.advance` closes the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from pagelift.core.errors import EngineError


@runtime_checkable
class KVCache(Protocol):
    """Keys and values of one full-attention layer of one sequence. Grows with the sequence; memory never shrinks below `length`."""

    @property
    def length(self) -> int:
        """Tokens held."""
        ...

    @property
    def nbytes(self) -> int:
        """Bytes allocated for this layer; parts shared with a copy are counted in both."""
        ...

    def truncate(self, length: int) -> None:
        """Forget all tokens from `length` on. Raises EngineError when fewer are held."""
        ...

    def copy(self) -> KVCache:
        """An independent cache with the same content; the common prefix may be shared until one of them writes."""
        ...


@runtime_checkable
class DeltaState(Protocol):
    """State of one gated DeltaNet layer of one sequence: the last inputs of the convolution and the recurrent state in float32.

    For a draft segment the state also records the convolution's inputs and per token k, v, decay and beta, together with the
    state before the block, until `keep` is called.
    """

    @property
    def nbytes(self) -> int:
        """Bytes allocated, records of a draft included."""
        ...

    def keep(self, count: int) -> None:
        """Make the state that of the recorded block's first `count` tokens by replaying their updates; drop the record.

        No weights are touched. Raises EngineError when there is no record or it is shorter than `count`.
        """
        ...

    def copy(self) -> DeltaState:
        """An independent state with the same content. Raises EngineError while a draft is undecided."""
        ...


LayerCache: TypeAlias = KVCache | DeltaState


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
        self.length += count - self.pending
        for layer in self.layers:
            if isinstance(layer, KVCache):
                layer.truncate(self.length)
            else:
                layer.keep(count)
        self.pending = 0

    def copy(self) -> SequenceCache:
        """A snapshot that continues independently. Raises EngineError while a drafted block is pending."""
        if self.pending:
            raise EngineError("a sequence with a drafted block cannot be copied; call keep() first")
        return SequenceCache([layer.copy() for layer in self.layers], self.length)
