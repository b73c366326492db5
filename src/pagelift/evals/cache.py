"""A cache of page contents, so that an engine can be evaluated many times over words that were read (and recognised) once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import TypeAdapter, ValidationError

from pagelift.core import DocumentNotFound, Limits, PageContent, Word
from pagelift.core.files import write_atomic
from pagelift.documents import open_document

if TYPE_CHECKING:
    from PIL.Image import Image

_T = TypeVar("_T")
_CONTENTS = TypeAdapter(list[PageContent])
_WORDS = TypeAdapter(tuple[Word, ...])
_DPI: TypeAdapter[float | None] = TypeAdapter(float | None)


@dataclass(frozen=True, slots=True)
class CachedPage:
    """A page whose words come from the cache; its document is opened only for what is not there.

    entry: the path of its cache entries, without their endings.
    """

    content: PageContent
    document: Path
    entry: Path

    @property
    def number(self) -> int:
        return self.content.number

    @property
    def picture_words(self) -> tuple[Word, ...]:
        """As of a `documents.Page`, from the cache or else read now and stored."""
        return _stored(self.entry.with_name(f"{self.entry.name}-pictures-{self.number}.json"), _WORDS, self._read_pictures)

    def _read_pictures(self) -> tuple[Word, ...]:
        with open_document(self.document) as document:
            return document.page(self.number).picture_words

    @property
    def native_dpi(self) -> float | None:
        """As of a `documents.Page`, from the cache or else read now and stored."""
        return _stored(self.entry.with_name(f"{self.entry.name}-dpi-{self.number}.json"), _DPI, self._read_dpi)

    def _read_dpi(self) -> float | None:
        with open_document(self.document) as document:
            return document.page(self.number).native_dpi

    def image(self, dpi: float) -> Image:
        """As of a `documents.Page`; never stored."""
        with open_document(self.document) as document:
            return document.image(self.number, dpi)


def cached_pages(document_path: str | Path, cache_dir: str | Path) -> list[CachedPage]:
    """The pages of a document with words from the cache, or else read now and stored; see `cached_contents`."""
    path = Path(document_path)
    entry = Path(cache_dir) / _key(path)
    return [CachedPage(content, path, entry) for content in cached_contents(path, cache_dir)]


def cached_contents(document_path: str | Path, cache_dir: str | Path, limits: Limits | None = None) -> list[PageContent]:
    """The content of every page of a document: from the cache or else read now and stored.

    Entries are keyed by the bytes of the document and the version of pagelift, so delete the folder after a change to
    how documents are read. An entry that no longer parses is read anew. Raises DocumentError as `open_document` does.
    """
    path = Path(document_path)

    def read() -> list[PageContent]:
        with open_document(path, limits=limits or Limits()) as document:
            return [page.content for page in document.pages()]

    return _stored(Path(cache_dir) / f"{_key(path)}.json", _CONTENTS, read)


def _stored(entry: Path, kind: TypeAdapter[_T], read: Callable[[], _T]) -> _T:
    """The value in a cache file; if there is none of this kind, what `read` gives, which is written there."""
    if entry.is_file():
        try:
            return kind.validate_json(entry.read_bytes())
        except ValidationError:
            entry.unlink()  # written by a version with other fields
    value = read()
    write_atomic(entry, kind.dump_json(value))
    return value


def _key(path: Path) -> str:
    digest = hashlib.sha256(version("pagelift").encode())
    try:
        digest.update(path.read_bytes())
    except OSError as error:
        raise DocumentNotFound(f"{path}: cannot be read ({error.strerror})") from error
    return digest.hexdigest()[:32]
