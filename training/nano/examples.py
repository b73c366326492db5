"""Documents as sequences of tokens: what the model sees, what it has to choose, and where on the page it should look for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from tokenizers import Encoding, Tokenizer

from nano.pointing import Target, point
from pagelift.core import Json, PageContent
from pagelift.evals.spelling import Piece, PieceKind, Printed, answer_pieces
from pagelift.evals.synthetic import Place
from pagelift.extract.words_prompt import NUMBERS, page_pieces, schema_outline
from pagelift.models.pictures import Picture
from pagelift.models.positions import Grid
from pagelift.schema import Schema

HEAD = "<|im_start|>user\n"
TAIL = "<|im_end|>\n<|im_start|>assistant\n"
STOP = "<|im_end|>"
SPACE = "Ġ"
"""How tokenizer.json writes a space."""
MERGE = 2
"""So many patches along each side of a picture's token."""
NOWHERE = -1
"""No place on the page belongs to a token."""
_ENTRY = re.compile(r"/\d+/")


class Question(NamedTuple):
    """A document or a part of one, what is asked of it, the right answer, and the places of the values by JSON Pointer.
    first_line: number of the first line in the prompt."""

    pages: Sequence[PageContent]
    schema: dict[str, Json]
    expected: Json
    places: Mapping[str, Place]
    first_line: int = 0


@dataclass(frozen=True, slots=True)
class Example:
    """tokens: (T,) prompt and answer. chosen: (T,) whether the model has to choose this token. sources: (T,) the token of the prompt
    that it is copied from or that shows it, for a mark what is on its line, NOWHERE if none. outline: (T,) likewise for the tokens that end
    a line of the outline, the beginning of its value; for columns of lists, of the first one that is printed. lines: (T,) for the tokens
    that mark or begin a value of the answer, the one that ends its line of the outline; for those that go on with an array or end it, and
    for the marks of its further entries, the mark of the entry before. beside: (T,) for the first token of each word of the pages, the mark
    of its line.

    answer: index of the first token of the answer. values: by JSON Pointer the first token and the one after the last of every scalar of
    the answer. marks: likewise the marks of lines. pictures: of the pages, or none of them.
    """

    tokens: npt.NDArray[np.int32]
    chosen: npt.NDArray[np.bool_]
    sources: npt.NDArray[np.int32]
    outline: npt.NDArray[np.int32]
    lines: npt.NDArray[np.int32]
    beside: npt.NDArray[np.int32]
    answer: int
    values: dict[str, tuple[int, int]]
    marks: dict[str, int]
    pictures: tuple[Picture, ...] = ()

    @property
    def grids(self) -> tuple[Grid, ...]:
        return tuple(picture.grid for picture in self.pictures)

    def __len__(self) -> int:
        return len(self.tokens)


def in_array(pointer: str) -> bool:
    """Whether a JSON Pointer goes through an array."""
    return any(step.isdigit() for step in pointer.split("/"))


def encode(question: Question, tokenizer: Tokenizer, pictures: Sequence[Picture] = ()) -> Example:
    """Put a question and its answer into tokens."""
    text, spans = _prompt_text(question, pictures)
    prompt = tokenizer.encode(text, add_special_tokens=False)
    printed = Printed.at(question.places, question.pages, question.first_line)
    chunks = list(answer_pieces(question.expected, printed))
    answer_text = "".join(chunk.text for chunk in chunks)
    answer = tokenizer.encode(answer_text + STOP, add_special_tokens=False)
    tokens = np.array(prompt.ids + answer.ids, np.int32)
    start = len(prompt.ids)
    chosen, values, entries, marks = _choices(chunks, answer, start)
    sources = np.full(len(tokens), NOWHERE, np.int32)
    words = _tokens_of_words(prompt, spans)
    page_mark = prompt.ids.index(tokenizer.token_to_id("<|page|>"))
    for pointer, (first, last) in values.items():
        target = _target(question, pointer, words, prompt)
        sources[first : last + 1] = point(tokens, (first, last), target, page_mark)

    def begin(pointer: str) -> int:
        """The first token on the page of a value or of those inside."""
        inside = [p for p in question.places if p == pointer or p.startswith(pointer + "/")]
        places = [min(allowed) for p in inside if (allowed := _inside(question.places[p], words, prompt))]
        return min(places, default=page_mark)

    for pointer, index in (*entries.items(), *marks.items()):
        sources[index] = int(sources[values[pointer][0]]) if pointer in values else begin(pointer)
    outline, lines = (np.full(len(tokens), NOWHERE, np.int32) for _ in range(2))
    ends = {pointer: end for end, pointer in _outline_ends(text, prompt)}
    for pointer, end in ends.items():
        if pointer in values:
            outline[end] = sources[values[_first_shown(pointer, values, question)][0]]
        elif isinstance(_at(question.expected, pointer), list):
            outline[end] = begin(pointer)
    for pointer, index in marks.items():
        lines[index] = ends.get(pointer if pointer in ends else pointer.rpartition("/")[0], NOWHERE)
    for pointer, index in (*entries.items(), *marks.items()):
        before = _before(pointer)
        if before in marks:
            lines[index] = marks[before]
    quote = tokenizer.token_to_id('"')
    for pointer, (first, _) in values.items():
        lines[first : first + 1 + (tokens[first] == quote)] = ends.get(_ENTRY.sub("/0/", pointer), NOWHERE)
    beside = np.full(len(tokens), NOWHERE, np.int32)
    numbers = np.flatnonzero(np.isin(tokens[:start], [tokenizer.token_to_id(mark) for mark in NUMBERS]))
    firsts = [word[0] for word, *_ in words if word]
    beside[firsts] = numbers[np.searchsorted(numbers, firsts) - 1]
    return Example(tokens, chosen, sources, outline, lines, beside, start, values, marks, tuple(pictures))


def _first_shown(pointer: str, values: Mapping[str, tuple[int, int]], question: Question) -> str:
    """The value itself, or the first one of its column that is printed: that a row has none does not say that the column is not there."""
    if not _ENTRY.search(pointer):
        return pointer
    column = [other for other in values if _ENTRY.sub("/0/", other) == pointer]
    return next((other for other in column if other in question.places), pointer)


def _before(pointer: str) -> str | None:
    """The entry before this one in its array."""
    above, _, step = pointer.rpartition("/")
    return f"{above}/{int(step) - 1}" if step.isdigit() else None


def _prompt_text(question: Question, pictures: Sequence[Picture]) -> tuple[str, list[tuple[int, int, int, float, float]]]:
    """The prompt; and for every word of the pages its span in it, page, and middle."""
    shown = [f"<|vision_start|>{'<|image_pad|>' * picture.grid.merged(MERGE).patches}<|vision_end|>" for picture in pictures]
    head = "".join([HEAD, *shown])
    text, spans = [head], []
    at = len(head)
    for piece in page_pieces(question.pages, question.first_line):
        if piece.word is not None:
            spans.append((at, at + len(piece.text), piece.page, piece.word.box.center_x, piece.word.box.center_y))
        text.append(piece.text)
        at += len(piece.text)
    return "".join(text) + schema_outline(Schema.load(question.schema)) + TAIL, spans


def _outline_ends(text: str, prompt: Encoding) -> Iterator[tuple[int, str]]:
    """The token that ends each line of the outline, and the pointer of its value, for columns of lists that in the first entry."""
    begins, _ = zip(*prompt.offsets, strict=True)
    at = text.rindex("\n\n", 0, -len(TAIL)) + 2
    above = ""
    for line in text[at : -len(TAIL)].splitlines(keepends=True):
        at += len(line)
        path = line.rstrip("\n").rpartition(" = ")[2].replace(".", "/")
        if line.startswith("list "):
            above = path
        end = int(np.searchsorted(begins, at - 1, side="right")) - 1
        yield end, f"/{above}/0/{path}" if line.startswith("- ") else f"/{path}"


Words = list[tuple[list[int], int, float, float]]
"""Tokens of each word of the prompt, its page and the middle of its box."""


def _tokens_of_words(prompt: Encoding, spans: Sequence[tuple[int, int, int, float, float]]) -> Words:
    words: Words = []
    index = 0
    offsets = prompt.offsets
    for start, end, page, x, y in spans:
        while offsets[index][0] < start:
            index += 1
        first = index
        while index < len(offsets) and offsets[index][0] < end:
            index += 1
        words.append((list(range(first, index)), page, x, y))
    return words


def _inside(place: Place, words: Words, prompt: Encoding) -> list[int]:
    """The tokens that show a value, without the space before the first."""
    box = place.box
    found = [tokens for tokens, page, x, y in words if page == place.page and box.x0 <= x <= box.x1 and box.top <= y <= box.bottom]
    inside = [token for tokens in found for token in tokens]
    return inside[1:] if inside and prompt.tokens[inside[0]] == SPACE else inside


def _at(value: Json, pointer: str) -> Json:
    for step in pointer.split("/")[1:]:
        value = value[int(step)] if isinstance(value, list) else value[step] if isinstance(value, dict) else None
    return value


def _target(question: Question, pointer: str, words: Words, prompt: Encoding) -> Target:
    value = _at(question.expected, pointer)
    place = question.places.get(pointer)
    if place is None:
        return Target(value, "", [], [], NOWHERE)
    tokens = _inside(place, words, prompt)
    space = next((index for index in tokens if prompt.tokens[index] == SPACE), None)
    return Target(
        value,
        place.raw,
        tokens,
        [index for index in tokens if prompt.tokens[index].isdigit()],
        NOWHERE if space is None else prompt.ids[space],
    )


def _choices(
    chunks: Sequence[Piece], answer: Encoding, start: int
) -> tuple[npt.NDArray[np.bool_], dict[str, tuple[int, int]], dict[str, int], dict[str, int]]:
    """Which tokens are chosen; by pointer spans of the scalars, tokens that begin the next entry of an array or end it, and marks."""
    begins, ends = zip(*answer.offsets, strict=True)
    chosen = np.zeros(start + len(begins), bool)
    values: dict[str, tuple[int, int]] = {}
    entries: dict[str, int] = {}
    marks: dict[str, int] = {}
    at = 0
    for chunk in chunks:
        first = start + int(np.searchsorted(ends, at, side="right"))
        at += len(chunk.text)
        last = start + int(np.searchsorted(begins, at, side="left"))
        if not chunk.chosen:
            continue
        chosen[first:last] = True
        if chunk.kind == PieceKind.MARK:
            marks[chunk.pointer] = first
        elif chunk.kind == PieceKind.ENTRY:
            entries[chunk.pointer] = first
        else:
            values[chunk.pointer] = (first, last)
            if chunk.text[-1].isdigit():  # a number ends with what follows it
                chosen[last] = True
    chosen[-1] = True
    return chosen, values, entries, marks
