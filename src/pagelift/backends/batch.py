"""The ragged batch: the tokens of several sequences as rows of one flat array, without padding.

A step may hold the prefill of one document, the next token of another and a block of drafted tokens of a third:

    rows      0 .................. 511 | 512 | 513 ... 520
    segment   sequence a, 512 tokens   | b, 1| c, 8 drafted
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pagelift.backends.cache import SequenceCache
from pagelift.core.errors import EngineError

RowMask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Segment:
    """Consecutive rows of one sequence: its tokens `cache.length` to `cache.length + length`.

    start: first row in the batch. draft: the caller will decide afterwards, with `cache.keep`, how many of these tokens
    stay; the caches then record what that takes. prompt: how many of the first tokens belong to a prompt; a backend may compute
    those by other kernels than tokens of an answer, but a token of either kind always by the same.
    """

    cache: SequenceCache
    start: int
    length: int
    draft: bool = False
    prompt: int = 0

    @property
    def rows(self) -> slice:
        return slice(self.start, self.start + self.length)


@dataclass(frozen=True, slots=True)
class Ragged:
    """The segments of one step, in row order and without gaps; a sequence occurs at most once.

    Raises EngineError when the segments overlap, leave gaps, share a cache, or meet a cache with an undecided draft.
    """

    segments: tuple[Segment, ...]

    @classmethod
    def of(cls, parts: Sequence[tuple[SequenceCache, int, bool]], prompts: Sequence[int] = ()) -> Ragged:
        """Lay out (cache, length, draft) parts one after the other. prompts: for each, how many of its first tokens belong to a
        prompt; none if left out."""
        segments, start = [], 0
        for (cache, length, draft), prompt in zip(parts, prompts or [0] * len(parts), strict=True):
            segments.append(Segment(cache, start, length, draft, prompt))
            start += length
        return cls(tuple(segments))

    def __post_init__(self) -> None:
        end = 0
        for segment in self.segments:
            if segment.start != end or segment.length < 1:
                raise EngineError(f"segment at row {segment.start} of length {segment.length} does not follow row {end}")
            if not 0 <= segment.prompt <= segment.length:
                raise EngineError(f"{segment.prompt} of {segment.length} tokens of a segment cannot belong to a prompt")
            if segment.cache.pending:
                raise EngineError("the sequence has a drafted block; call keep() on its cache before the next step")
            end = segment.start + segment.length
        if not self.segments or len({id(s.cache) for s in self.segments}) != len(self.segments):
            raise EngineError("a step needs at least one segment and each sequence at most once")

    @property
    def rows(self) -> int:
        last = self.segments[-1]
        return last.start + last.length

    @property
    def prompt_rows(self) -> RowMask | None:
        """Which rows belong to a prompt (rows,); None where none does."""
        if not any(segment.prompt for segment in self.segments):
            return None
        mask = np.zeros(self.rows, np.bool_)
        for segment in self.segments:
            mask[segment.start : segment.start + segment.prompt] = True
        return mask

    def layer_caches(self, layer: int) -> list[Any]:
        """Each segment's cache of one layer; KVCache or DeltaState as the layer is."""
        return [segment.cache.layers[layer] for segment in self.segments]

    @property
    def last_rows(self) -> npt.NDArray[np.int64]:
        """Row of the last token of each segment."""
        return np.array([s.start + s.length - 1 for s in self.segments], np.int64)
