"""A step of one sequence beyond its known tokens: a draft to check, and the places where the model has a choice."""

from __future__ import annotations

from dataclasses import dataclass, field

from pagelift.decoding import Allowed, Proposal, Token, sample
from pagelift.decoding.drafts import LEAST
from pagelift.runtime.heads import LogitsOf
from pagelift.runtime.sequences import Sequence

LONGEST_BLOCK = 64
"""Rows up to which a step may have a draft: what it takes to take a draft back is kept for all of them."""
MOST_DEMANDED = 0.95
"""A drafted token that is so probable is taken whatever its row costs."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a step can spend on the draft of one sequence. room: the most tokens. free: those that cost nothing extra, because the
    step's time is that of reading the weights. price: what each further one costs, in tokens that the step may be expected to give
    for every token that this sequence is expected to get."""

    room: int
    free: int
    price: float

    @classmethod
    def of(cls, known: int, total: int, writing: int, draft_rows: int) -> Allowance:
        """For a sequence with `known` tokens in a step of `total` known ones, of which `writing` sequences get drafts."""
        free = max(draft_rows - total, 0) // max(writing, 1)
        return cls(LONGEST_BLOCK - known, free, writing / max(draft_rows, total, 1))


@dataclass(frozen=True, slots=True)
class Choice:
    """A row of the segment behind which the model has a choice, and what it may choose; None for anything."""

    row: int
    allowed: Allowed | None


@dataclass(slots=True)
class Block:
    """known: tokens that are computed in any case. tokens: the draft behind them; forced: which of it the grammar leaves no choice
    about. choices: in order of their rows. finished: whether the grammar ends with the draft."""

    known: int
    tokens: list[int] = field(default_factory=list)
    forced: list[bool] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)
    finished: bool = False

    @property
    def rows(self) -> int:
        return self.known + len(self.tokens)

    def close(self, sequence: Sequence) -> None:
        """Give the draft up, as if it had never been made."""
        if sequence.constraint is not None and self.tokens:
            sequence.constraint.rollback(len(self.tokens))


def build_block(sequence: Sequence, proposal: Proposal | None, allowance: Allowance) -> Block:
    """The next step of a sequence whose waiting tokens are all in it.

    The constraint is left at the end of the draft. Raises EngineError.
    """
    block = Block(sequence.waiting)
    drafts = None if proposal is None else _Drafts(proposal, allowance, sequence.room - 1)
    constraint, end = sequence.constraint, block.known - 1
    while True:
        block.choices.append(Choice(end + len(block.tokens), None if constraint is None else constraint.allowed()))
        token = drafts.next(block) if drafts else None
        if drafts is None or token is None or token in sequence.stop_tokens:
            return block
        if constraint is None:
            drafts.add(block, token, False, sequence)
            continue
        if not constraint.prefix([token]):
            return block
        constraint.accept([token])
        drafts.add(block, token, False, sequence)
        if not _add_forced(sequence, block, drafts):
            return block


def _add_forced(sequence: Sequence, block: Block, drafts: _Drafts) -> bool:
    """Add what the grammar forces behind a block. Returns whether the answer goes on behind it."""
    constraint = sequence.constraint
    assert constraint is not None
    while not constraint.finished and (forced := constraint.forced()):
        for index in forced:
            if index in sequence.stop_tokens or len(block.tokens) == sequence.room:
                block.finished = index in sequence.stop_tokens
                return False
            constraint.accept([index])
            drafts.add(block, index, True, sequence)
    block.finished = constraint.finished
    return not block.finished


def settle(sequence: Sequence, block: Block, logits: LogitsOf) -> int:
    """Draw a token at each choice of a block as long as the draft is right, and advance the sequence.

    Returns how many tokens of the draft were right. Raises EngineError; the constraint then is
    not to be used any more.
    """
    kept, total = 0, len(block.tokens)
    for choice in block.choices:
        values, ids = logits[choice.row]()
        token = sample(values, sequence.sampling, sequence.generator, ids)
        if kept == total or token.id != block.tokens[kept]:
            if sequence.constraint is not None and kept < total:
                sequence.constraint.rollback(total - kept)
            sequence.draw(token)
            return kept
        sequence.counts.accepted += 1
        kept = _accept(sequence, block, kept, token)
        if sequence.finish_reason is not None:
            break
    return kept


def _accept(sequence: Sequence, block: Block, kept: int, token: Token) -> int:
    """Take a token of the draft that was right and what is forced behind it. Returns how many tokens of the draft are right now."""
    while True:
        kept += 1
        sequence.append(token, block.finished and kept == len(block.tokens))
        if sequence.finish_reason is not None or kept == len(block.tokens) or not block.forced[kept]:
            return kept
        token = Token(block.tokens[kept], 0.0, forced=True)


class _Drafts:
    """The tokens of a proposal one after the other, as far as they are worth their rows."""

    def __init__(self, proposal: Proposal, allowance: Allowance, room: int) -> None:
        self._proposal = proposal
        self._allowance = allowance
        self._room = min(allowance.room, room)
        self._offset = 0
        self._expected = 1.0
        self._lost = False

    def next(self, block: Block) -> int | None:
        """The next token, None when no further one is worth it."""
        chance = self._proposal.chance(self._offset)
        free = len(block.tokens) < self._allowance.free
        least = LEAST if free else max(LEAST, min(MOST_DEMANDED, self._expected * self._allowance.price))
        if self._lost or len(block.tokens) >= self._room or chance < least:
            return None
        return self._proposal.token(self._offset)

    def add(self, block: Block, token: int, forced: bool, sequence: Sequence) -> None:
        """Put a token into the block; a forced one need not be what the proposal says, which is of no more use then."""
        assert sequence.drafter is not None
        text = sequence.drafter.token_bytes(token)
        end = self._offset + len(text)
        self._lost = self._lost or self._proposal.text[self._offset : end] != text
        self._expected += self._proposal.chance(self._offset)
        self._offset = end
        block.tokens.append(token)
        block.forced.append(forced)
        sequence.counts.drafted += not forced
