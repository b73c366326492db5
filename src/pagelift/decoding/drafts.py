"""Drafts: what an answer will probably say next, read off the page, so that one pass over the weights checks many tokens.

A draft alternates between guessed values and what the grammar forces around them. It is made as text and then encoded as a whole,
because the tokenizer joins the end of a value with what follows. A wrong draft costs time and changes nothing.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Protocol

from pagelift.decoding.constraint import Constraint
from pagelift.decoding.guesses import Guess, Guesser
from pagelift.decoding.outline import Outline, path_of
from pagelift.decoding.pages import Pages
from pagelift.decoding.trail import Trail

STEADY = 0.97
"""The probability that a token is right whose predecessor in the same value was."""
LEAST = 0.02
"""A draft ends where it is less probable than this."""
FREE_SUFFIX = 12
"""Characters at the end of a free text that must occur in the hints, for what follows there to be drafted."""
FREE_LENGTH = 60
"""Characters of such a draft."""


class Codec(Protocol):
    """The part of a tokenizer that drafts need. special_ids: of tokens that add nothing to a text."""

    special_ids: frozenset[int]

    def encode(self, text: str) -> list[int]:
        """The tokens of a text."""
        ...

    def token_bytes(self, index: int) -> bytes:
        """The bytes of a token."""
        ...


class Proposal:
    """A text that will probably follow, as tokens. ends, chances: how probable the text is up to each of some ends, in bytes."""

    def __init__(self, codec: Codec, text: str, ends: Sequence[int], chances: Sequence[float]) -> None:
        self._codec = codec
        self.text = text.encode()
        self._ends, self._chances = ends, chances
        self._tokens: dict[int, int] = {}
        self._encode_from(0)

    def token(self, offset: int) -> int | None:
        """The token that begins at an offset in bytes, None at the end of the text."""
        if offset < len(self.text) and offset not in self._tokens:
            self._encode_from(offset)
        return self._tokens.get(offset)

    def chance(self, offset: int) -> float:
        """How probable it is that the text is right up to here."""
        return self._chances[min(bisect_right(self._ends, offset), len(self._chances) - 1)] if self._chances else 0.0

    def _encode_from(self, offset: int) -> None:
        for token in self._codec.encode(self.text[offset:].decode(errors="ignore")):
            self._tokens[offset] = token
            offset += len(self._codec.token_bytes(token))


class Drafter:
    """Drafts for one answer. hints: texts that the answer may copy from; a text that is a JSON object or array is taken as another
    answer to the same question, whose values are the first guesses."""

    def __init__(self, codec: Codec, hints: Sequence[str]) -> None:
        texts, answers = split_hints(hints)
        self._codec = codec
        self._guesser = Guesser(Pages(texts), answers)
        self._outline = Outline()
        self._trail = Trail()
        self._end = ""
        self._blank: bool | None = None  # whether a blank stands before a value

    def token_bytes(self, index: int) -> bytes:
        """What a token adds to the answer: its bytes, none for a special one."""
        return b"" if index in self._codec.special_ids else self._codec.token_bytes(index)

    def extend(self, tokens: Sequence[int]) -> None:
        """The answer goes on with these tokens."""
        text = b"".join(map(self.token_bytes, tokens))
        self._end = (self._end + text.decode(errors="replace"))[-64:]
        for written in self._outline.feed(text):
            if written.is_scalar:
                self._trail.add(written, self._guesser.learn(written, self._trail))

    def propose(self, constraint: Constraint | None, room: int) -> Proposal | None:
        """A draft of about `room` tokens at most, None without an idea. The constraint is left as it is."""
        if constraint is None:
            return self._free()
        text, ends, chances, accepted = "", [0], [1.0], 0
        outline, trail, end = self._outline.copy(), self._trail.copy(), self._end
        try:
            while accepted < room and chances[-1] > LEAST and not constraint.finished:
                piece, chance = self._next(constraint, outline, trail, end)
                tokens = self._codec.encode(piece)
                if not piece or constraint.prefix(tokens) < len(tokens):
                    break
                constraint.accept(tokens)
                forced = list(constraint.forced())
                constraint.accept(forced)
                accepted += len(tokens) + len(forced)
                piece += b"".join(map(self.token_bytes, forced)).decode(errors="replace")
                for written in outline.feed(piece.encode()):
                    if written.is_scalar:
                        trail.add(written, self._guesser.pages.find(written.text, trail.cursor))
                text, end = text + piece, (end + piece)[-64:]
                ends.append(len(text.encode()))
                chances.append(chances[-1] * chance)
        finally:
            constraint.rollback(accepted)
        return Proposal(self._codec, text, ends[1:], chances[1:]) if text else None

    def _next(self, constraint: Constraint, outline: Outline, trail: Trail, end: str) -> tuple[str, float]:
        """The next piece, up to where the grammar may go on by itself, and its probability; "" without an idea."""
        place = tuple(outline.frames)
        if outline.mode in ("string", "word"):
            return self._rest(constraint, outline, trail)
        if outline.mode == "after":
            return self._separator(constraint, outline, trail)
        if outline.mode != "value":
            return "", 0.0
        if end.endswith("[") and not self._guesser.more_rows(place, trail):
            return "]", 0.5
        blank = self._blank_before(constraint, end)
        if outline.in_array and self._fits(constraint, blank + "{"):
            return blank + "{", 0.9
        for guess in self._guesser.guesses(place, trail):
            piece = blank + guess.text
            if self._fits(constraint, piece):
                return self._closed(constraint, outline, trail, piece, guess)
        return "", 0.0

    def _closed(self, constraint: Constraint, outline: Outline, trail: Trail, piece: str, guess: Guess) -> tuple[str, float]:
        """A guessed value, with what ends it if it does not end itself."""
        if guess.text[-1:].isdigit():
            tokens = self._codec.encode(piece)
            constraint.accept(tokens)
            after, _ = self._separator(constraint, outline, trail)
            constraint.rollback(len(tokens))
            piece += after
        return piece, self._guesser.record.rate(guess.source, path_of(tuple(outline.frames)))

    def _rest(self, constraint: Constraint, outline: Outline, trail: Trail) -> tuple[str, float]:
        """The rest of a value that has begun."""
        partial = outline.partial.decode(errors="ignore")
        place = tuple(outline.frames)
        for guess in self._guesser.begun(place, partial, trail):
            if guess.text == partial:  # a number that may end here
                after, _ = self._separator(constraint, outline, trail)
                return after, self._guesser.record.rate(guess.source, path_of(place))
            rest = guess.text[len(partial) :] if guess.text.startswith(partial) else ""
            if rest and self._fits(constraint, rest):
                return self._closed(constraint, outline, trail, rest, guess)
        return "", 0.0

    def _separator(self, constraint: Constraint, outline: Outline, trail: Trail) -> tuple[str, float]:
        """What stands behind a value."""
        if not outline.in_array:
            return next((sign for sign in (",", "}") if self._fits(constraint, sign)), ""), 0.9
        place = tuple(outline.frames)
        following = (*place[:-1], int(place[-1]) + 1)
        signs = (",", "]") if self._guesser.more_rows(following, trail.copy()) else ("]", ",")
        return next((sign for sign in signs if self._fits(constraint, sign)), ""), 0.8

    def _blank_before(self, constraint: Constraint, end: str) -> str:
        if not end.endswith((":", ",")):
            return ""
        if self._blank is None:
            self._blank = self._fits(constraint, " ")
        return " " if self._blank else ""

    def _fits(self, constraint: Constraint, text: str) -> bool:
        tokens = self._codec.encode(text)
        return constraint.prefix(tokens) == len(tokens)

    def _free(self) -> Proposal | None:
        """For an answer without a grammar: what follows its last words on the page."""
        text = self._guesser.pages.text
        place = text.find(self._end[-FREE_SUFFIX:]) if len(self._end) >= FREE_SUFFIX else -1
        start = place + FREE_SUFFIX
        if place < 0 or start >= len(text):
            return None
        piece = text[start : start + FREE_LENGTH]
        return Proposal(self._codec, piece, [len(piece.encode())], [STEADY])


def split_hints(hints: Sequence[str]) -> tuple[list[str], list[Any]]:
    """Texts to copy from, and answers that are JSON objects or arrays."""
    texts, answers = [], []
    for hint in hints:
        try:
            answers.append(json.loads(hint) if hint.lstrip()[:1] in ("{", "[") else None)
        except (ValueError, RecursionError):
            answers.append(None)
        if answers[-1] is None:
            answers.pop()
            texts.append(hint)
    return texts, answers
