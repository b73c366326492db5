"""The true answer to a question as the decoder would write it, token by token, and which of its tokens a model has a choice about.

Keys and separators are forced by the grammar. What is left are the tokens of values, and a little punctuation: whether a list goes on,
where a number ends. A mark of a line counts to what it stands before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from pagelift.core import Json, PageContent
from pagelift.decoding import Constraint, Vocabulary, unpack_mask
from pagelift.evals.spelling import PieceKind, Printed, answer_pieces
from pagelift.evidence.align import align
from pagelift.evidence.places import PageIndex
from pagelift.extract.answers import value_spans
from pagelift.schema import Schema
from pagelift.schema.keywords import join
from pagelift.schema.nodes import Node, Object


class TokenKind(IntEnum):
    """forced: the grammar leaves no choice. unknown: of a value of which the truth says nothing."""

    FORCED = 0
    VALUE = 1
    PUNCTUATION = 2
    UNKNOWN = 3


@dataclass(frozen=True, slots=True)
class AnswerTokens:
    """tokens: (n,) ids. kinds: (n,) of `TokenKind`. complete: False when the grammar does not admit the rest of the answer."""

    tokens: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.uint8]
    complete: bool = True


@dataclass(frozen=True, slots=True)
class AnswerText:
    """text: JSON on one line. unknown: JSON Pointers of the values that the truth does not state; null or empty in the text. marks: see
    `JsonStyle.marks`, by the byte of the text before which they stand."""

    text: str
    unknown: frozenset[str]
    marks: Mapping[int, str] = field(default_factory=dict)


def answer_text(
    truth: Json, schema: Schema, pages: Sequence[PageIndex], shown: Sequence[int] | None = None, marked: Sequence[PageContent] | None = None
) -> AnswerText:
    """The truth as the answer to a question: all properties in schema order, numbers with the digits that are printed.

    shown: numbers of the pages that the question shows, None for all; what is printed on others is left out then. marked: the pages, for
    a model that is to say their lines. Raises ExtractionError when the truth cannot be brought into the shape of the schema.
    """
    full = schema.conform(_within(truth, schema.root)).data
    printed = align(full, pages)
    if shown is not None:
        on = {pointer: place.page in shown for pointer, place in printed.items()}
        full = schema.conform(_on_pages(full, on, "")).data
        printed = align(full, [page for page in pages if page.number in shown])
    text, marks = "", {}
    for piece in answer_pieces(full, Printed.at(printed, marked)):
        if piece.kind == PieceKind.MARK:
            marks[len(text.encode())] = piece.text
        else:
            text += piece.text
    unknown = frozenset(pointer for pointer in value_spans(text) if not _is_stated(truth, pointer))
    return AnswerText(text, unknown, marks)


def answer_tokens(answer: AnswerText, constraint: Constraint, vocabulary: Vocabulary) -> AnswerTokens:
    """The tokens of an answer: forced ones as the grammar gives them, others as the tokenizer cuts the text that is left."""
    data = answer.text.encode()
    marks = {at: vocabulary.tokenizer.encode(mark) for at, mark in answer.marks.items()}
    walk = _Walk(data, constraint, vocabulary, marks)
    complete = walk.run()
    spans = _kinds_of_bytes(answer)
    kinds = [TokenKind.FORCED if forced else _kind(spans, begin, end) for begin, end, forced in walk.spans]
    return AnswerTokens(np.array(walk.tokens, np.int64), np.array(kinds, np.uint8), complete)


class _Walk:
    """An answer's bytes through a grammar. spans: first byte, byte after the last, and whether it was forced, of each token."""

    def __init__(self, data: bytes, constraint: Constraint, vocabulary: Vocabulary, marks: dict[int, list[int]]) -> None:
        self._data = data
        self._marks = marks
        self._constraint = constraint
        self._vocabulary = vocabulary
        self._cut: dict[int, int] = {}
        self._at = 0
        self.tokens: list[int] = []
        self.spans: list[tuple[int, int, bool]] = []

    def run(self) -> bool:
        """Go on until the end. Returns False where the grammar wants something else."""
        while self._at < len(self._data):
            forced = self._constraint.forced()
            for token in forced:
                if not self._take(token, True):
                    return self._at == len(self._data)
            if not forced and not self._choose():
                return False
        return True

    def _choose(self) -> bool:
        """Take the token that comes next by the tokenizer, else the longest that the grammar admits."""
        if self._constraint.finished:
            return False
        mark = self._marks.pop(self._at, [])
        if mark:
            admitted = self._constraint.prefix(mark) == len(mark)
            mark = mark if admitted else self._another_mark()
            self._constraint.accept(mark)
            self.tokens += mark
            self.spans += [(self._at, self._at + 1, not admitted)] * len(mark)
            return True
        if self._at not in self._cut:
            self._cut = self._cuts()
        usual = self._cut[self._at]
        if self._constraint.prefix([usual]):
            return self._take(usual, False)
        starting = self._vocabulary.by_first_byte[self._data[self._at]]
        known = self._vocabulary.token_bytes
        fitting = [int(t) for t in starting if self._data.startswith(known[t], self._at)]
        found = next((t for t in sorted(fitting, key=lambda t: -len(known[t])) if self._constraint.prefix([t])), None)
        return found is not None and self._take(found, False)

    def _another_mark(self) -> list[int]:
        """What can stand where the true mark cannot, such as that of a row above the last one; nothing where there is no mark at all."""
        allowed = unpack_mask(self._constraint.allowed().mask, self._vocabulary.size)
        special = self._vocabulary.tokenizer.special_ids - set(self._vocabulary.stop_tokens)
        return [token for token in sorted(special) if allowed[token]][:1]

    def _cuts(self) -> dict[int, int]:
        """Where the tokens of the rest begin, as the tokenizer cuts it."""
        found, at = {}, self._at
        for token in self._vocabulary.tokenizer.encode(self._data[self._at :].decode(errors="ignore")):
            found[at] = token
            at += len(self._vocabulary.token_bytes[token])
        return found

    def _take(self, token: int, forced: bool) -> bool:
        """Accept a token if the answer goes on with it."""
        text = self._vocabulary.token_bytes[token]
        if not text or not self._data.startswith(text, self._at):
            return False
        self._constraint.accept([token])
        self.tokens.append(token)
        self.spans.append((self._at, self._at + len(text), forced))
        self._at += len(text)
        return True


def _kinds_of_bytes(answer: AnswerText) -> npt.NDArray[np.uint8]:
    """The kind of every byte of an answer, as if all were chosen."""
    starts = np.cumsum([0, *(len(character.encode()) for character in answer.text)])
    kinds = np.full(int(starts[-1]), TokenKind.PUNCTUATION, np.uint8)
    for pointer, (begin, end) in value_spans(answer.text).items():
        kinds[starts[begin] : starts[end]] = TokenKind.UNKNOWN if pointer in answer.unknown else TokenKind.VALUE
    return kinds


def _kind(kinds: npt.NDArray[np.uint8], begin: int, end: int) -> TokenKind:
    """A token that holds a part of a value belongs to it."""
    inside = set(kinds[begin:end].tolist())
    return next(kind for kind in (TokenKind.VALUE, TokenKind.UNKNOWN, TokenKind.PUNCTUATION) if kind in inside)


def _is_stated(truth: Json, pointer: str) -> bool:
    """Whether the truth has something at a pointer, or null or an empty list where it would be."""
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(truth, dict):
            if name not in truth:
                return False
            truth = truth[name]
        elif isinstance(truth, list):
            if int(name) >= len(truth):
                return False
            truth = truth[int(name)]
        else:
            return True
    return True


def _within(value: Json, node: Node) -> Json:
    """The part of a truth that a schema of some of its properties asks for."""
    if not isinstance(value, dict) or not isinstance(node, Object) or node.additional is not None:
        return value
    return {name: _within(inner, node.properties[name]) for name, inner in value.items() if name in node.properties}


def _on_pages(value: Json, on: Mapping[str, bool], pointer: str) -> Json:
    """What is printed on the pages: other scalars that have a place become null, rows with nothing on the pages are dropped."""
    if isinstance(value, dict):
        return {name: _on_pages(inner, on, join(pointer, name)) for name, inner in value.items()}
    if isinstance(value, list):
        rows = [(_on_pages(row, on, f"{pointer}/{k}"), _placed(on, f"{pointer}/{k}")) for k, row in enumerate(value)]
        return [row for row, placed in rows if placed]
    return value if on.get(pointer, True) else None


def _placed(on: Mapping[str, bool], pointer: str) -> bool:
    """Whether any part of a row is on the pages, or none is known to be elsewhere."""
    inside = [shown for own, shown in on.items() if own == pointer or own.startswith(pointer + "/")]
    return any(inside) or not inside
