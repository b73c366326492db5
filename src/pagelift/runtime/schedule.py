"""Which tokens of which answers the next step takes."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Many
from dataclasses import dataclass

from pagelift.runtime.sequences import Sequence


@dataclass(frozen=True, slots=True)
class Work:
    """`count` known tokens of a sequence for the next step."""

    sequence: Sequence
    count: int

    @property
    def finishes(self) -> bool:
        """Whether the step reaches the sequence's last token, so that a new one can be generated."""
        return self.count == self.sequence.waiting


def schedule(active: Iterable[Sequence], step_tokens: int, mixed_tokens: int) -> list[Work]:
    """The work of a step: answers that are being written first, then chunks of prompts.

    step_tokens: the most tokens of a step; mixed_tokens: the most of prompts in a step with answers, which wait for it. Half of
    the room for prompts goes to the one that came first and half to the one with least left, so that neither a long prompt holds
    up short ones nor short ones a long one.
    """
    waiting = list(active)
    suspects = [s for s in waiting if s.computed < s.alone_until]
    if suspects:
        return [Work(suspects[0], min(suspects[0].waiting, suspects[0].chunk, step_tokens))]
    writing = sorted((s for s in waiting if not s.prefilling), key=lambda s: s.counts.passes)
    prompts = [s for s in waiting if s.prefilling]
    counts: dict[int, int] = {}
    room = step_tokens
    for sequence in writing[:step_tokens]:
        counts[id(sequence)] = min(sequence.waiting, max(room - len(writing) + 1, 1))
        room = max(room - counts[id(sequence)], 0)
    if writing:
        room = min(room, mixed_tokens)
    _share(prompts, room, counts)
    return [Work(s, counts[id(s)]) for s in [*writing, *prompts] if counts.get(id(s))]


def _share(prompts: Many[Sequence], room: int, counts: dict[int, int]) -> None:
    """Divide the room for prompts."""
    if not prompts:
        return
    first, shortest = prompts[0], min(prompts, key=lambda s: s.waiting)
    if first is not shortest:
        _give(shortest, room // 2, counts)
    for sequence in (first, shortest, *prompts):
        _give(sequence, room - sum(counts.get(id(s), 0) for s in prompts), counts)


def _give(sequence: Sequence, room: int, counts: dict[int, int]) -> None:
    given = counts.get(id(sequence), 0)
    counts[id(sequence)] = given + max(min(sequence.chunk - given, room), 0)
