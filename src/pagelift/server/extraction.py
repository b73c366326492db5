"""One extraction in a worker thread: pages of one or several documents, progress as it goes, an end whenever the caller wants."""

from __future__ import annotations

import contextlib
import copy
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from pagelift.core import Extraction, PageContent, Word
from pagelift.documents.open import Page
from pagelift.extract import Engine, Extractor
from pagelift.extract.telling import Told
from pagelift.extract.vlm import VlmEngine
from pagelift.schema import Schema
from pagelift.schema.schema import Nulls
from pagelift.server.attachments import Attachment, Opened, Reading
from pagelift.server.catalog import Served
from pagelift.server.watching import WatchedModel
from pagelift.server.work import Signal

if TYPE_CHECKING:
    from PIL.Image import Image

    from pagelift.runtime import Generation, LoadedModel

Happening = Mapping[str, Any]
"""{"type": "pages", "done", "total"} after each page; {"type": "value", "pointer", "value"} when a model has written one, with "pages" when
it reads the document in parts."""
Observe = Callable[[Happening], None]
Finished = Callable[["Generation"], None]


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be extracted. schema: a JSON Schema document."""

    served: Served
    schema: Any
    attachments: tuple[Attachment, ...]
    reading: Reading
    nulls: Nulls = "allowed"
    strict: bool = False

    def check(self) -> None:
        """Raises SchemaError for a schema that cannot be used, before the work begins."""
        Schema.load(self.schema, nulls=self.nulls, strict=self.strict)


def extract(order: Order, signal: Signal, observe: Observe, finished: Finished = lambda _: None) -> Extraction:
    """The result. finished: told of every answer of a model.

    Raises PageliftError, ApiError, and the signal's reason soon after that is set.
    """
    engine = _watched_engine(order.served.engine, signal, observe, finished)
    limits = order.reading.limits.document
    extractor = Extractor(order.schema, engine, limits=limits, ocr=order.reading.ocr, nulls=order.nulls, strict=order.strict)
    with order.reading.open(order.attachments) as opened:
        progress = _Progress(opened.count, signal, observe)
        name = order.attachments[0].name if len(order.attachments) == 1 else f"{len(order.attachments)} documents"
        result = extractor.extract_pages(_pages(opened, progress), source=name)
        signal.check()
    return replace(result, warnings=(*opened.warnings, *result.warnings))


def _watched_engine(engine: Engine, signal: Signal, observe: Observe, finished: Finished) -> Engine:
    """The engine itself, or one over the same loaded model that tells what the model writes and can be stopped."""
    if not isinstance(engine, VlmEngine):
        return engine
    watched = copy.copy(engine)
    watched.model = cast("LoadedModel", WatchedModel(engine.model, signal, finished))
    watched.tell = lambda told: observe(_happening(told))
    return watched


def _happening(told: Told) -> Happening:
    part = {} if told.pages is None else {"pages": list(told.pages)}
    return {"type": "value", "pointer": told.pointer, "value": told.value, **part}


class _Progress:
    """Counts the pages that were read, and ends the reading when the signal is set."""

    def __init__(self, total: int, signal: Signal, observe: Observe) -> None:
        self.signal = signal
        self._observe = observe
        self._done: set[int] = set()
        self._total = total
        observe({"type": "pages", "done": 0, "total": total})

    def read(self, number: int) -> None:
        if number not in self._done:
            self._done.add(number)
            self._observe({"type": "pages", "done": len(self._done), "total": self._total})


READING = threading.BoundedSemaphore(max(2, os.cpu_count() or 1))
"""Pages read at a time by all requests together; each takes a process."""


class _WatchedPage:
    """A page with the number that it has among all pages of the request."""

    def __init__(self, page: Page, number: int, progress: _Progress) -> None:
        self.number = number
        self._page = page
        self._progress = progress

    @property
    def content(self) -> PageContent:
        with self._turn():
            content = self._page.content
        self._progress.read(self.number)
        return content if content.number == self.number else replace(content, number=self.number)

    @property
    def picture_words(self) -> tuple[Word, ...]:
        with self._turn():
            return self._page.picture_words

    @property
    def native_dpi(self) -> float | None:
        return self._page.native_dpi

    def image(self, dpi: float) -> Image:
        with self._turn():
            return self._page.image(dpi)

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        with READING:
            self._progress.signal.check()
            yield


def _pages(opened: Opened, progress: _Progress) -> Iterator[_WatchedPage]:
    """Pages keep their numbers in a single document; those of several are counted through."""
    alone = len(opened.documents) == 1
    for count, page in enumerate((page for pages in opened.pages for page in pages), 1):
        yield _WatchedPage(page, page.number if alone else count, progress)
