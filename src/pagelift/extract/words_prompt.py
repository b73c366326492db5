"""A prompt with the words of the pages, for checkpoints that say in `pagelift.json` that they were trained on it.

Small models cannot read pixels well, but they can read words. Each line of the pages begins with a mark that numbers it, so that the next
row of a table can be found; each segment of it (`layout.lines`) stands between two marks that name where on the page it begins and ends, so
that columns can be followed. The schema stands below as an outline, a line for each property: type, description, path. In the answer the
mark of a line stands before what is read from it (`decoding.JsonStyle.marks`): the model says where before it says what. The same text
is used for training (training/nano).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple, Protocol

from pagelift.core import Box, ConfigError, PageContent, WeightsError, Word
from pagelift.extract.prompts import harmless
from pagelift.layout.lines import PageLayout, analyse_page
from pagelift.layout.squares import drawn_boxes
from pagelift.schema import Schema
from pagelift.schema.nodes import Array, Node, Object, Scalar, Union
from pagelift.weights.hub import find_model
from pagelift.weights.tokenizer import Tokenizer, read_json

SETTINGS_FILE = "pagelift.json"
WORDS_PROMPT = "words-3"
"""The name of this prompt in the file. Whatever changes the text of a prompt or of its answer needs another name."""
COLUMNS = 48
LINES = 64
"""So many lines are told apart; the one after them has the first one's mark again."""
WORDS_TOKENS = 2048
"""Pages that take more together are read in windows, since lines with the same mark are mistaken for each other."""
PAGE = "<|page|>"
STARTS = tuple(f"<|x{column:02}|>" for column in range(COLUMNS))
ENDS = tuple(f"<|r{column:02}|>" for column in range(COLUMNS))
NUMBERS = tuple(f"<|l{line:02}|>" for line in range(LINES))
_NUMBERS = frozenset(NUMBERS)
SAID = (PAGE, *NUMBERS)
"""The marks of an answer: of a line, or of what is on none."""
MARKS = (PAGE, *STARTS, *ENDS, *NUMBERS)
"""Tokens of their own in the tokenizer of such a checkpoint."""
_TALL_GAP = 0.9
"""A gap of this share of the line height between two lines is an empty line."""
_MAX_DEPTH = 12
_DRAWN_LINE = re.compile(r"([-_=.*~])\1{3,}")
"""Characters in a row that draw a line say no more than three of them."""


class Located(Protocol):
    """A place on a page."""

    @property
    def page(self) -> int: ...

    @property
    def box(self) -> Box: ...


class Piece(NamedTuple):
    """A piece of the prompt's text. word: the word of a page that it is, with the page's number."""

    text: str
    word: Word | None = None
    page: int = 0


def wants_words(model: str | Path) -> bool:
    """Whether a checkpoint, named as for `load_model`, asks for this prompt. Raises ConfigError for one that this version does not know."""
    try:
        path = find_model(model) / SETTINGS_FILE
    except WeightsError:  # a model that was put together by hand has no folder
        return False
    if not path.is_file():
        return False
    prompt = read_json(path.parent, SETTINGS_FILE).get("prompt")
    if prompt != WORDS_PROMPT:
        raise ConfigError(f"{path}: prompt must be {WORDS_PROMPT!r}, the only one this version knows; it is {prompt!r}")
    return True


def known_marks(tokenizer: Tokenizer, model: str) -> tuple[str, ...]:
    """The marks of an answer. Raises WeightsError when the tokenizer of a checkpoint that asks for them has other tokens."""
    unknown = [mark for mark in MARKS if tokenizer.find(mark) not in tokenizer.special_ids]
    if unknown:
        raise WeightsError(f"{model} asks for the prompt {WORDS_PROMPT}, and its tokenizer has no special token {unknown[0]}")
    return SAID


def words_prompt(pages: Iterable[PageContent], schema: Schema) -> str:
    """The text of the user's turn, to stand after the pictures of the pages."""
    return "".join(piece.text for piece in page_pieces(pages)) + schema_outline(schema)


def page_pieces(pages: Iterable[PageContent], first_line: int = 0) -> Iterator[Piece]:
    """The pages as text, in pieces that keep the words apart. first_line: number of the first line; they go on from page to page."""
    numbers = (NUMBERS[line % LINES] for line in count(first_line))
    for content in pages:
        page = analyse_page(content)
        squares = drawn_boxes(page)
        boxes = [(field.box, field.checked) for field in content.form_fields if field.kind in ("checkbox", "radio")]
        if squares or boxes:
            crosses = {id(token.word) for _, token in squares if token}
            ticks = [Word("[x]" if ticked else "[ ]", box) for box, ticked in boxes + [(box, token is not None) for box, token in squares]]
            words = (*(word for word in content.words if id(word) not in crosses), *ticks)
            page = analyse_page(dataclasses.replace(content, words=words))
        yield Piece(PAGE)
        yield from _line_pieces(page, numbers)
        yield Piece("\n")


def shown_marks(pages: Iterable[PageContent]) -> Iterator[str]:
    """The marks of the prompt's lines, one after the other."""
    return (piece.text for piece in page_pieces(pages) if piece.text in _NUMBERS)


def line_marks(pages: Sequence[PageContent], places: Mapping[str, Located], first_line: int = 0) -> dict[str, str]:
    """By JSON Pointer the mark of the line on which each value begins, and for each entry of an array the first of those inside it.

    places: of values, by JSON Pointer. pages, first_line: as the prompt shows them.
    """
    words: dict[int, list[tuple[int, str, Word]]] = {}
    order, mark = 0, PAGE
    for piece in page_pieces(pages, first_line):
        mark = piece.text if piece.text in _NUMBERS else mark
        if piece.word is not None:
            order += 1
            words.setdefault(piece.page, []).append((order, mark, piece.word))
    found: dict[str, tuple[int, str]] = {}
    for pointer, place in places.items():
        inside = ((order, mark) for order, mark, word in words.get(place.page, ()) if place.box.holds_center(word.box))
        first = next(inside, None)
        if first is None:
            continue
        steps = pointer.split("/")
        for depth in range(2, len(steps) + 1):
            if depth == len(steps) or steps[depth - 1].isdigit():
                above = "/".join(steps[:depth])
                found[above] = min(found.get(above, first), first)
    return {pointer: mark for pointer, (_, mark) in found.items()}


def _line_pieces(page: PageLayout, numbers: Iterator[str]) -> Iterator[Piece]:
    bottom = None
    for line in page.lines:
        if bottom is not None and line.box.top - bottom > _TALL_GAP * page.unit:
            yield Piece("\n")
        bottom = line.box.bottom
        yield Piece(next(numbers))
        for segment in line.segments:
            yield Piece(STARTS[_column(segment.box.x0, page.width)])
            for index, token in enumerate(segment.tokens):
                yield Piece(" " * (index > 0) + harmless(_DRAWN_LINE.sub(r"\1\1\1", token.word.text)), token.word, page.number)
            yield Piece(ENDS[_column(segment.box.x1, page.width)])


def _column(x: float, width: float) -> int:
    return max(0, min(COLUMNS - 1, int(x / width * COLUMNS)))


def schema_outline(schema: Schema) -> str:
    """A line for each property: its type, what it is, and where it stands."""
    return "\n" + "".join(f"{line}\n" for line in _outline(schema.root, "", 0))


def _outline(node: Node, path: str, depth: int) -> Iterator[str]:
    if isinstance(node, Union) and node.options:
        node = next((option for option in node.options if not isinstance(option, Scalar)), node.options[0])
    if depth > _MAX_DEPTH:
        return
    if isinstance(node, Object):
        for name, child in node.properties.items():
            yield from _outline(child, f"{path}.{name}" if path else name, depth + 1)
    elif isinstance(node, Array):
        yield _described("list", node, path)
        yield from _items(node.items, depth + 1)
    elif isinstance(node, Scalar):
        yield _described(_type(node), node, path)


def _items(node: Node, depth: int) -> Iterator[str]:
    """The properties of a list's entries, set in under it; a plain entry needs no line."""
    if not isinstance(node, Scalar):
        yield from (f"- {line}" for line in _outline(node, "", depth))


def _type(node: Scalar) -> str:
    kind = "date" if node.format == "date" else "/".join(node.types)
    return kind if node.enum is None else "/".join(str(value) for value in node.enum)


def _described(kind: str, node: Node, path: str) -> str:
    about = " ".join((node.description or node.title).split())
    return harmless(f"{kind} {about} = {path}" if about else f"{kind} = {path}")
