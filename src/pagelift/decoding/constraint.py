"""What the generation loop asks a grammar, token by token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Allowed:
    """The tokens that may come next.

    mask: one bit per token id, little-endian in uint32 words, (ceil(vocabulary / 32),). ids: the same as sorted ids when they are
    few, so that only their rows of the output head need to be computed; else None.
    """

    mask: npt.NDArray[np.uint32]
    ids: npt.NDArray[np.int64] | None = None


class Constraint(Protocol):
    """The state of one constrained answer. Tokens are ids of the model's tokenizer; stop tokens are allowed where it may end."""

    @property
    def finished(self) -> bool:
        """Whether the answer is complete, so that nothing but a stop token may follow."""
        ...

    def forced(self) -> Sequence[int]:
        """The tokens that follow in any case, in the tokenizer's own tokenization of that text; empty when there is a choice.

        They are not accepted by asking.
        """
        ...

    def allowed(self) -> Allowed:
        """The tokens that may come next, stop tokens included where the answer may end."""
        ...

    def accept(self, tokens: Sequence[int]) -> None:
        """Advance by tokens that were generated. Raises EngineError when one is not allowed."""
        ...

    def prefix(self, tokens: Sequence[int]) -> int:
        """How many of these tokens, from the first on, could be accepted one after the other. The state stays."""
        ...

    def rollback(self, count: int) -> None:
        """Take back the last `count` accepted tokens."""
        ...

    def copy(self) -> Constraint:
        """An independent state with the same past."""
        ...


Mask = npt.NDArray[np.bool_]


def unpack_mask(mask: npt.NDArray[np.uint32], vocabulary: int) -> Mask:
    """A bit mask as booleans (vocabulary,); ids beyond the mask are not allowed."""
    bits: npt.NDArray[Any] = np.unpackbits(mask.view(np.uint8), bitorder="little")[:vocabulary].view(np.bool_)
    return bits if len(bits) == vocabulary else np.concatenate([bits, np.zeros(vocabulary - len(bits), bool)])
