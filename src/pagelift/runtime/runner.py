"""The generation loop: schedule, run, settle.

Each step takes some tokens of some sequences through the model: the next chunk of a prompt, or the tokens that an answer got last
with a draft behind them. How prompts are cut into steps, what is drafted and what else runs changes nothing about an answer.
"""

from __future__ import annotations

import time
from collections.abc import Sequence as Many
from dataclasses import dataclass, field

import numpy as np

from pagelift.backends import Array, Ragged
from pagelift.core.errors import EngineError
from pagelift.decoding import Codec, Constraint, Drafter, Sampling
from pagelift.models import Model, PictureRows, Step
from pagelift.models.pictures import Picture
from pagelift.models.prompt import Prompt
from pagelift.runtime.blocks import LONGEST_BLOCK, Allowance, Block, build_block, settle
from pagelift.runtime.heads import LogitsOf, Wanted, evaluate_head
from pagelift.runtime.prefixes import PrefixCache, picture_key
from pagelift.runtime.schedule import Work, schedule
from pagelift.runtime.sequences import Request, Sequence
from pagelift.runtime.settings import RuntimeSettings

MOST_RESTARTS = 3
FEWEST = 8
"""Tokens of a draft that are looked for in any case."""


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
    """Generates for any number of sequences on one model. Not safe for threads, except for `make`.

    codec: the tokenizer, without which nothing is drafted.
    """

    model: Model
    stop_tokens: frozenset[int]
    settings: RuntimeSettings = field(default_factory=RuntimeSettings)
    codec: Codec | None = None
    active: list[Sequence] = field(default_factory=list)
    counters: Counters = field(default_factory=Counters)
    prefixes: PrefixCache = field(init=False)

    def __post_init__(self) -> None:
        self.prefixes = PrefixCache(self.settings.prefix_bytes)

    def add(self, prompt: Prompt, sampling: Sampling, constraint: Constraint | None = None, hints: Many[str] = ()) -> Sequence:
        """Take on a prompt. Raises EngineError when it leaves no room for an answer in the model's context."""
        sequence = self.make(Request(prompt, sampling, constraint, tuple(hints)))
        self.admit(sequence)
        return sequence

    def make(self, request: Request) -> Sequence:
        """A sequence that takes no part in steps yet. Raises EngineError as `add` does."""
        most, size = self.model.config.text.max_positions, len(request.prompt)
        if size >= most:
            raise EngineError(f"the prompt has {size} tokens and the model's context {most}; give fewer or smaller pages")
        sequence = Sequence(request, self.model.new_cache(), min(request.sampling.max_tokens, most - size), self.stop_tokens)
        sequence.points = self.prefixes.points(request.prompt)
        if self.codec is not None and self.settings.draft_rows and (request.hints or request.constraint is not None):
            sequence.drafter = Drafter(self.codec, request.hints)
        return sequence

    def cache_bytes(self, sequence: Sequence) -> int:
        """The most that the caches of a sequence will take."""
        draft = LONGEST_BLOCK if sequence.drafter is not None else 0
        return self.model.cache_bytes(len(sequence.prompt) + sequence.limit, draft)

    def admit(self, sequence: Sequence) -> None:
        """Let a sequence take part in the next steps."""
        try:
            sequence.begin()
        except Exception as error:  # noqa: BLE001 - the boundary of a request
            sequence.fail(error)
        self.active.append(sequence)
        self.drop_finished()

    def cancel(self, sequence: Sequence) -> None:
        """Give a sequence up before the next step. Does nothing once it is finished."""
        if sequence.finish_reason is None:
            sequence.finish_reason = "cancelled"
            self.drop_finished()

    def step(self) -> list[Sequence]:
        """One pass over the weights. Returns the sequences that got tokens or finished."""
        ready = [sequence for sequence in self.active if sequence.started or self._start(sequence)]
        work = schedule(ready, self.settings.step_tokens, self.settings.mixed_tokens)
        total, writing = sum(item.count for item in work), sum(item.finishes for item in work)
        blocks = [(item, self._block(item, Allowance.of(item.count, total, writing, self.settings.draft_rows))) for item in work]
        runs = [(item, block) for item, block in blocks if block is not None]
        if runs:
            try:
                logits = self.run(runs)
            except Exception as error:  # noqa: BLE001 - whoever is at fault, the others go on
                self._recover(runs, error)
            else:
                for (item, block), found in zip(runs, logits, strict=True):
                    self._settle(item.sequence, block, found)
        self.drop_finished()
        return [item.sequence for item in work if item.sequence.finish_reason or not item.sequence.prefilling]

    def _start(self, sequence: Sequence) -> bool:
        """Begin a prompt where the known part of it ends; False while another sequence is about to make more of it known."""
        lengths = {point.key: point.length for point in sequence.points}
        for other in self.active:
            if other.started and other.prefilling:
                common = max((lengths.get(point.key, 0) for point in other.points), default=0)
                if common > other.computed:
                    return False
        found = self.prefixes.find(sequence.points)
        if found is not None:
            point, sequence.cache = found
            sequence.computed = sequence.counts.cached_tokens = point.length
            sequence.ancestor = point
        sequence.started = True
        return True

    def run(self, runs: Many[tuple[Work, Block]]) -> list[LogitsOf]:
        """One step through the model; the caches advance. Returns for each block the logits behind its choices."""
        parts = [(item.sequence.cache, block.rows, bool(block.tokens)) for item, block in runs]
        prompts = [min(max(len(s.prompt) - s.computed, 0), block.rows) for s, block in ((item.sequence, block) for item, block in runs)]
        batch = Ragged.of(parts, prompts)
        starts = [segment.start for segment in batch.segments]
        pictures = [rows for (item, _), start in zip(runs, starts, strict=True) for rows in self._pictures(item, start)]
        start = time.perf_counter()
        tokens = np.concatenate([item.sequence.tokens(block.known, block.tokens) for item, block in runs])
        positions = np.concatenate([item.sequence.positions(block.rows) for item, block in runs], axis=1)
        hidden = self.model.forward(Step(tokens, positions, batch, tuple(pictures)))
        logits = self._logits(hidden, runs, starts)
        seconds = time.perf_counter() - start
        self.counters.passes += 1
        self.counters.tokens += len(tokens)
        self.counters.forward_s += seconds
        for item, block in runs:
            item.sequence.counts.add_pass(seconds * block.rows / len(tokens), prefill=not block.choices)
        return logits

    def _logits(self, hidden: Array, runs: Many[tuple[Work, Block]], starts: Many[int]) -> list[LogitsOf]:
        wanted = [
            Wanted(start + choice.row, choice.allowed) for (_, block), start in zip(runs, starts, strict=True) for choice in block.choices
        ]
        found = evaluate_head(self.model, hidden, wanted)
        return [{c.row: found[start + c.row] for c in block.choices} for (_, block), start in zip(runs, starts, strict=True)]

    def _block(self, item: Work, allowance: Allowance) -> Block | None:
        """What the step computes for one sequence; None when its grammar fails."""
        sequence = item.sequence
        if not item.finishes:
            return Block(item.count)
        start = time.perf_counter()
        try:
            room = min(allowance.room, max(2 * allowance.free, FEWEST), sequence.room)
            proposal = sequence.drafter.propose(sequence.constraint, room) if sequence.drafter and room > 0 else None
            drafted = time.perf_counter()
            block = build_block(sequence, proposal, allowance)
        except Exception as error:  # noqa: BLE001 - the boundary of a request
            sequence.fail(error)
            return None
        sequence.counts.draft_s += drafted - start
        sequence.counts.grammar_s += time.perf_counter() - drafted
        return block

    def _settle(self, sequence: Sequence, block: Block, logits: LogitsOf) -> None:
        """Take what the step has brought."""
        start = time.perf_counter()
        try:
            kept = settle(sequence, block, logits) if block.choices else 0
            if block.tokens:
                sequence.cache.keep(block.known + kept)
            sequence.computed += block.known + kept
            self._keep_prefix(sequence)
        except Exception as error:  # noqa: BLE001 - the boundary of a request
            sequence.fail(error)
        sequence.counts.settle_s += time.perf_counter() - start

    def _keep_prefix(self, sequence: Sequence) -> None:
        for point in sequence.points:
            if point.length == sequence.computed:
                self.prefixes.keep(point, sequence.cache, sequence.trunk, sequence.ancestor)
                sequence.ancestor = point

    def _recover(self, runs: Many[tuple[Work, Block]], error: Exception) -> None:
        """After a step that failed: a sequence alone is at fault; of several each starts again, by itself until it is past this."""
        for item, block in runs:
            sequence = item.sequence
            block.close(sequence)
            sequence.restarts += 1
            if len(runs) == 1 or sequence.restarts > MOST_RESTARTS:
                sequence.fail(error)
            else:
                sequence.alone_until = sequence.computed + block.known
                sequence.restart(self.model.new_cache())

    def _pictures(self, item: Work, row: int) -> list[PictureRows]:
        """Features for the placeholders among the tokens of one segment, whose first row is `row`; pictures are encoded when reached."""
        sequence, found = item.sequence, []
        begin, end = sequence.computed, sequence.computed + item.count
        for index, placed in enumerate(sequence.prompt.pictures):
            first, last = max(begin, placed.start), min(end, placed.start + placed.tokens)
            if first >= last:
                continue
            if index not in sequence.features:
                sequence.features[index] = self._encode(sequence, placed.picture)
            features = sequence.features[index][first - placed.start : last - placed.start]
            found.append(PictureRows(row + first - begin, features))
            if last == placed.start + placed.tokens:
                del sequence.features[index]
        return found

    def _encode(self, sequence: Sequence, picture: Picture) -> Array:
        key = picture_key(picture) if self.settings.prefix_bytes else b""
        features = self.prefixes.features(key)
        if features is None:
            start = time.perf_counter()
            features = self.model.encode(picture.patches(), [picture.grid])
            for counts in (self.counters, sequence.counts):
                counts.pictures += 1
                counts.encode_s += time.perf_counter() - start
            self.prefixes.keep_features(key, features)
        return features

    def drop_finished(self) -> None:
        """Let sequences go that are finished, and their memory."""
        for sequence in self.active:
            if sequence.finish_reason is not None:
                sequence.release()
        self.active = [sequence for sequence in self.active if sequence.finish_reason is None]
