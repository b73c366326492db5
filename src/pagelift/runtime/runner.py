"""The generation loop: schedule, run, postprocess.

Each step takes some tokens of some sequences through the model: the next chunk of a prompt, or the token that was generated
last. How a prompt is cut into steps changes nothing about the answer.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from collections.abc import Sequence as Many
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from pagelift.backends import Ragged
from pagelift.core.errors import ConfigError, EngineError
from pagelift.decoding import Allowed, Constraint, Sampling, sample
from pagelift.decoding.constraint import unpack_mask
from pagelift.models import Model, PictureRows, Step
from pagelift.models.prompt import Prompt
from pagelift.runtime.sequences import Request, Sequence

STEP_TOKENS = 512


@dataclass(frozen=True, slots=True)
class Work:
    """`count` tokens of a sequence for the next step."""

    sequence: Sequence
    count: int

    @property
    def finishes(self) -> bool:
        """Whether the step reaches the sequence's last token, so that a new one can be generated."""
        return self.count == self.sequence.waiting


@dataclass(slots=True)
class Counters:
    """What a runner has done. passes: steps, each of which reads all weights once. Times in seconds."""

    passes: int = 0
    tokens: int = 0
    pictures: int = 0
    encode_s: float = 0.0
    forward_s: float = 0.0


@dataclass(slots=True)
class Runner:
    """Generates for any number of sequences on one model. step_tokens: the most tokens in a step. Not safe for threads."""

    model: Model
    stop_tokens: frozenset[int]
    step_tokens: int = STEP_TOKENS
    active: list[Sequence] = field(default_factory=list)
    counters: Counters = field(default_factory=Counters)

    def __post_init__(self) -> None:
        if self.step_tokens < 1:
            raise ConfigError(f"step_tokens is {self.step_tokens!r}; give at least 1")

    def add(self, prompt: Prompt, sampling: Sampling, constraint: Constraint | None = None, hints: Many[str] = ()) -> Sequence:
        """Take on a prompt. Raises EngineError when it leaves no room for an answer in the model's context."""
        most = self.model.config.text.max_positions
        if len(prompt) >= most:
            raise EngineError(f"the prompt has {len(prompt)} tokens and the model's context {most}; give fewer or smaller pages")
        request = Request(prompt, sampling, constraint, tuple(hints))
        limit = min(sampling.max_tokens, most - len(prompt))
        sequence = Sequence(request, self.model.new_cache(), limit, self.stop_tokens)
        if sequence.finish_reason is None:
            self.active.append(sequence)
        return sequence

    def cancel(self, sequence: Sequence) -> None:
        """Give a sequence up before the next step. Does nothing once it is finished."""
        if sequence.finish_reason is None:
            sequence.finish_reason = "cancelled"
            self._drop_finished()

    def step(self) -> list[Sequence]:
        """One pass over the weights. Returns the sequences that got a token or finished."""
        work = self.schedule()
        if not work:
            return []
        logits = self.run(work)
        return self.postprocess([item.sequence for item in work if item.finishes], logits, work)

    def schedule(self) -> list[Work]:
        """Sequences in order of arrival: first those that wait for one token, then chunks of prompts as far as the step reaches."""
        work, room = [], self.step_tokens
        for sequence in sorted(self.active, key=lambda s: s.prefilling):
            count = min(sequence.waiting, room)
            if count:
                work.append(Work(sequence, count))
                room -= count
        return work

    def run(self, work: Many[Work]) -> np.ndarray:
        """Logits (finishing sequences, vocabulary) after a step over `work`; the caches advance."""
        batch = Ragged.of([(item.sequence.cache, item.count, False) for item in work])
        pictures = [rows for item, segment in zip(work, batch.segments, strict=True) for rows in self._pictures(item, segment.start)]
        start = time.perf_counter()
        tokens = np.concatenate([item.sequence.tokens(item.count) for item in work])
        positions = np.concatenate([item.sequence.positions(item.count) for item in work], axis=1)
        hidden = self.model.forward(Step(tokens, positions, batch, tuple(pictures)))
        rows = batch.last_rows[[item.finishes for item in work]]
        logits = self.model.logits(hidden, rows) if len(rows) else np.empty((0, 0), np.float32)
        self.counters.passes += 1
        self.counters.tokens += len(tokens)
        self.counters.forward_s += time.perf_counter() - start
        return logits

    def postprocess(self, ready: Many[Sequence], logits: np.ndarray, work: Iterable[Work]) -> list[Sequence]:
        """Advance the sequences of a step and draw a token for each that is ready."""
        for item in work:
            item.sequence.computed += item.count
        for sequence, row in zip(ready, logits, strict=True):
            ids = None if sequence.constraint is None else _ids(sequence.constraint.allowed(), len(row))
            sequence.advance(sample(row if ids is None else row[ids], sequence.sampling, sequence.generator, ids))
        self._drop_finished()
        return list(ready)

    def _pictures(self, item: Work, row: int) -> list[PictureRows]:
        """Features for the placeholders among the tokens of one segment, whose first row is `row`; pictures are encoded when reached."""
        sequence, found = item.sequence, []
        begin, end = sequence.computed, sequence.computed + item.count
        for index, placed in enumerate(sequence.prompt.pictures):
            first, last = max(begin, placed.start), min(end, placed.start + placed.tokens)
            if first >= last:
                continue
            if index not in sequence.features:
                start = time.perf_counter()
                sequence.features[index] = self.model.encode(placed.picture.patches(), [placed.picture.grid])
                self.counters.pictures += 1
                self.counters.encode_s += time.perf_counter() - start
            features = sequence.features[index][first - placed.start : last - placed.start]
            found.append(PictureRows(row + first - begin, features))
            if last == placed.start + placed.tokens:
                del sequence.features[index]
        return found

    def _drop_finished(self) -> None:
        self.active = [sequence for sequence in self.active if sequence.finish_reason is None]


def _ids(allowed: Allowed, vocabulary: int) -> npt.NDArray[np.int64]:
    return np.flatnonzero(unpack_mask(allowed.mask, vocabulary)) if allowed.ids is None else allowed.ids
