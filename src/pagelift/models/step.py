"""One step of a language model: what goes in, and what every model offers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pagelift.backends import Array, Indices, Ragged, SequenceCache
from pagelift.core.errors import EngineError
from pagelift.models.config import ModelConfig
from pagelift.models.positions import Grid


@dataclass(frozen=True, slots=True)
class PictureRows:
    """Picture features (N, hidden) that replace the embeddings of the step's rows start to start + N."""

    start: int
    features: Array


@dataclass(frozen=True, slots=True)
class Step:
    """tokens: (T,) ids; positions: (3, T) in time, height and width; both for the rows of `batch`, as NumPy integers.

    pictures: features for placeholder rows; a picture that is cut by a chunk of prefill comes as two.
    Raises EngineError when the parts do not fit each other.
    """

    tokens: Indices
    positions: Indices
    batch: Ragged
    pictures: tuple[PictureRows, ...] = ()

    def __post_init__(self) -> None:
        rows = self.batch.rows
        if self.tokens.shape != (rows,) or self.positions.shape != (3, rows):
            raise EngineError(f"a step of {rows} rows got tokens {self.tokens.shape} and positions {self.positions.shape}")
        for picture in self.pictures:
            if picture.start < 0 or picture.start + picture.features.shape[0] > rows:
                raise EngineError(f"picture features for rows {picture.start} and on do not fit a step of {rows} rows")


class Model(Protocol):
    """A vision-language model on a backend. One instance serves any number of sequences, one step at a time."""

    config: ModelConfig

    def new_cache(self) -> SequenceCache:
        """The empty cache of a new sequence."""
        ...

    def cache_bytes(self, tokens: int, draft: int = 0) -> int:
        """What the cache of one sequence takes at most with so many tokens, by the backend's formula. draft: of them undecided ones."""
        ...

    def forward(self, step: Step) -> Array:
        """Run the decoder over a step and advance the caches: hidden rows (T, hidden) before the last norm."""
        ...

    def logits(self, hidden: Array, rows: Indices, tokens: Indices | None = None) -> npt.NDArray[np.float32]:
        """Logits of the chosen rows: (rows, vocabulary), or (rows, tokens) for only those tokens."""
        ...

    def encode(self, patches: npt.NDArray[np.float32], grids: Sequence[Grid]) -> Array:
        """Features (tokens, hidden) of pictures, all one after the other, from their patches (patches, patch_features)."""
        ...


class Head(Protocol):
    """The output head of a model on a backend, without the model."""

    vocab_size: int

    def logits(self, hidden: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Logits (rows, vocabulary) of hidden rows (rows, hidden) before the last norm."""
        ...
