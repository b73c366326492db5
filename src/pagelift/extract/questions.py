"""The seam between what is asked of a model and who asks it: a local model, or a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from pagelift.core import Json, PageContent
from pagelift.evidence.places import PageIndex
from pagelift.extract.prompts import page_picture, picture_size
from pagelift.schema import Schema

if TYPE_CHECKING:
    from PIL.Image import Image

    from pagelift.extract.engines import ReadablePage


class SeenPage:
    """A page of a document as models are shown it; its picture is drawn for each question anew, since many would fill the memory."""

    def __init__(self, page: ReadablePage) -> None:
        self._page = page

    @property
    def number(self) -> int:
        return self._page.number

    @cached_property
    def content(self) -> PageContent:
        return self._page.content

    @cached_property
    def index(self) -> PageIndex:
        """The page's words, to look values up in."""
        return PageIndex(self.content)

    @cached_property
    def size_px(self) -> tuple[int, int]:
        """Width and height of the picture."""
        return picture_size(self._page)

    def picture(self) -> Image:
        return page_picture(self._page)

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The page's words in reading order, each printed line, and so each row of a table, as one text."""
        from pagelift.layout.lines import analyse_page

        return tuple(" ".join(token.word.text for token in line.tokens) for line in analyse_page(self.content).lines)


@dataclass(frozen=True, slots=True)
class Question:
    """What a model is asked at once.

    schema: of the answer. pages: in order. page_count: of the whole document, when `pages` are a part of it.
    after: by JSON Pointer of a list, the last of its entries that are known already; the answer is to go on behind them.
    offsets: by the same pointer, how many are known in all.
    """

    schema: Schema
    pages: tuple[SeenPage, ...]
    page_count: int | None = None
    after: Mapping[str, Sequence[Json]] = field(default_factory=dict)
    offsets: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer. truncated: it was cut off by a limit. pieces: text and log-probability of each token, None for tokens
    without a choice; empty when unknown. metadata: counts and times."""

    text: str
    truncated: bool = False
    pieces: tuple[tuple[str, float | None], ...] = ()
    metadata: Mapping[str, Json] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


class Asker(Protocol):
    """Asks a model.

    context: the most tokens of question and answer together, None when unknown. prompt_tokens: the longest prompt that it reads well, None
    for any. concurrency: questions at the same time.
    """

    @property
    def context(self) -> int | None: ...

    @property
    def prompt_tokens(self) -> int | None: ...

    @property
    def concurrency(self) -> int: ...

    def ask(self, question: Question) -> Reply:
        """The answer. Raises EngineError, ExtractionError."""
        ...

    def text_tokens(self, text: str) -> int:
        """About how many tokens a text takes."""
        ...

    def page_tokens(self, page: SeenPage) -> int:
        """About how many tokens a page takes."""
        ...

    def prompt_text(self, question: Question) -> str:
        """The text that stands behind the pictures."""
        ...
