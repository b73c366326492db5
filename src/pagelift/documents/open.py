"""Documents and pages as the rest of the program sees them; all reading of untrusted content happens in worker processes."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from pagelift.core import Box, FormField, Limits, PageContent, Word
from pagelift.core.errors import ConfigError, CorruptDocument, DocumentNotFound, LimitExceeded, UnsupportedDocument
from pagelift.documents.client import RemoteDocument
from pagelift.documents.wire import Header

if TYPE_CHECKING:
    from PIL.Image import Image

OcrMode = Literal["auto", "never", "always"]
Kind = Literal["pdf", "image"]

IMAGE_MARKS = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"BM", b"II*\x00", b"MM\x00*", b"II+\x00", b"MM\x00+")
COMPLAINTS = {
    "garbage": "the text layer is not what the page shows: its fonts have no usable mapping to characters",
    "partial": "some words of the text layer are unreadable",
}
MAX_KEPT_PAGES = 32
PDF_MARK_WITHIN = 1024  # bytes of leading noise that PDF readers accept


@dataclass(frozen=True, slots=True)
class Content:
    """What `open_document` was given, checked against the limits: a path or the bytes, and the kind by its first bytes."""

    name: str
    path: str
    body: bytes
    kind: Kind


def open_document(
    source: str | Path | bytes | BinaryIO,
    *,
    password: str | None = None,
    limits: Limits | None = None,
    ocr: OcrMode = "auto",
    name: str = "",
) -> Document:
    """Open a PDF or image file: a path, "-" for standard input, the content as bytes, or a binary stream.

    The type is decided by the content. ocr: "auto" reads pictures of text only where a page has no sound text layer,
    "always" reads every page's picture, "never" none. name: for messages, default the path.
    Raises DocumentNotFound, UnsupportedDocument, CorruptDocument, PasswordRequired, LimitExceeded or DocumentTimeout.
    """
    if ocr not in ("auto", "never", "always"):
        raise ConfigError(f"ocr is {ocr!r}; give auto, never or always")
    limits = limits or Limits()
    return Document(_receive(source, limits, name), password, limits, ocr)


class Document:
    """An open document; also a context manager. Safe to use from several threads.

    name: path or given name. kind: "pdf" or "image". page_count: pages or frames. warnings: about the whole file.
    `close` frees the worker's memory; a closed document opens itself again when a page is asked for.
    """

    def __init__(self, content: Content, password: str | None, limits: Limits, ocr: OcrMode) -> None:
        self.name = content.name
        self.kind = content.kind
        self.limits = limits
        self.ocr = ocr
        worker_limits = {"pages": limits.pages, "page_pixels": limits.page_pixels, "worker_bytes": limits.worker_bytes}
        opening: Header = {"kind": content.kind, "path": content.path, "password": password, "limits": worker_limits}
        self._remote = RemoteDocument(content.name, opening, content.body, limits.open_seconds)
        self._pages: dict[int, Page] = {}  # the last ones asked for, so that their words are read once
        opened = self._remote.open()
        self.page_count = int(opened["pages"])
        self.warnings: tuple[str, ...] = tuple(opened["warnings"])

    def __enter__(self) -> Document:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Free what the worker process holds of this document."""
        self._remote.close()

    def page(self, number: int) -> Page:
        """The page `number`, counted from 1. Raises ConfigError if there is no such page."""
        if not 1 <= number <= self.page_count:
            raise ConfigError(f"{self.name}: there is no page {number}; the document has {self.page_count}")
        page = self._pages.pop(number, None) or Page(self, number)
        self._pages[number] = page
        while len(self._pages) > MAX_KEPT_PAGES:
            self._pages.pop(next(iter(self._pages)), None)
        return page

    def pages(self, numbers: Iterable[int] | None = None) -> Iterator[Page]:
        """The pages `numbers`, or all; one after another, so that only what the caller keeps stays in memory."""
        for number in range(1, self.page_count + 1) if numbers is None else numbers:
            yield self.page(number)

    def image(self, page: int, dpi: float) -> Image:
        """The picture of `page`, see `Page.image`."""
        return self.page(page).image(dpi)

    def size_pt(self, page: int) -> tuple[float, float]:
        """Width and height of `page` in points."""
        found = self.page(page)
        return found.width_pt, found.height_pt

    def call(self, request: Header) -> tuple[Header, bytes]:
        """A request about a page to the worker, within page_seconds."""
        return self._remote.call(request, self.limits.page_seconds, "page_seconds")


class Page:
    """One page as it is shown: after rotation, crop box and EXIF orientation. number: from 1."""

    def __init__(self, document: Document, number: int) -> None:
        self.number = number
        self._document = document
        self._content: PageContent | None = None
        self._size: tuple[float, float] | None = None
        self._native_dpi: float | None = None
        self._pictures: tuple[Box, ...] = ()
        self._picture_words: tuple[Word, ...] | None = None

    @property
    def width_pt(self) -> float:
        return self.size[0]

    @property
    def height_pt(self) -> float:
        return self.size[1]

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in points."""
        if self._size is None:
            reply, _ = self._document.call({"op": "size", "page": self.number})
            self._size = float(reply["width_pt"]), float(reply["height_pt"])
        return self._size

    @property
    def native_dpi(self) -> float | None:
        """The resolution at which `image` gives the pixels of an image file as they are; None for a PDF, which has none."""
        if self._document.kind == "image" and self._native_dpi is None:
            reply, _ = self._document.call({"op": "content", "page": self.number})
            self._native_dpi = float(reply["picture_dpi"])
        return self._native_dpi

    @property
    def content(self) -> PageContent:
        """Words, form fields and rules; read at the first use and kept. Raises DocumentError."""
        if self._content is None:
            reply, _ = self._document.call({"op": "content", "page": self.number})
            content = unpack_content(self.number, reply)
            self._size = content.width_pt, content.height_pt
            mode, verdict = self._document.ocr, str(reply["text"])
            if verdict in COMPLAINTS:
                content = replace(content, warnings=(*content.warnings, COMPLAINTS[verdict]))
            if mode == "always" or (mode == "auto" and verdict not in ("sound", "blank")):
                from pagelift.documents.reading import read_page_picture

                replace_text = mode == "always" or verdict in ("empty", "garbage")
                content = read_page_picture(self._document, content, reply, replace_text)
            self._pictures = tuple(Box(*box) for box in reply["pictures"]) if content.source == "text" else ()
            self._content = content
        return self._content

    @property
    def picture_words(self) -> tuple[Word, ...]:
        """Words inside pictures on a page whose content comes from its text layer: a logo, a heading drawn as a picture.

        Not part of `content`, because OCR takes longer than everything else: ask where `content` lacks what is looked for.
        Empty if `content` comes from OCR itself, or with ocr="never".
        """
        if self._picture_words is None:
            words: Iterable[Word] = ()
            if self._document.ocr != "never" and self.content.source == "text" and self._pictures:
                from pagelift.documents.reading import read_pictures, without_twins

                words = without_twins(read_pictures(self._document, self.number, self._pictures), self.content.words)
            self._picture_words = tuple(words)
        return self._picture_words

    def image(self, dpi: float) -> Image:
        """The page picture in RGB, made anew at every call; smaller than `dpi` asks for if it would exceed limits.page_pixels."""
        if not 1 <= dpi <= 2400:
            raise ConfigError(f"dpi is {dpi!r}; give 1 to 2400")
        from PIL import Image

        header, rows = self._document.call(
            {"op": "picture", "page": self.number, "dpi": dpi, "max_pixels": self._document.limits.page_pixels}
        )
        size = header["width_px"], header["height_px"]
        return Image.frombytes("RGB", size, rows, "raw", header["mode"], header["stride"], 1)


def unpack_content(number: int, reply: Header) -> PageContent:
    """A worker's reply as PageContent."""
    return PageContent(
        number,
        float(reply["width_pt"]),
        float(reply["height_pt"]),
        words=tuple(map(_unpack_word, reply["words"])),
        form_fields=tuple(
            FormField(name, kind, value, Box(*box), label, checked) for name, kind, value, box, label, checked in reply["form_fields"]
        ),
        rules=tuple(Box(*box) for box in reply["rules"]),
        source="text" if reply["words"] else "none",
        hidden_words=tuple(map(_unpack_word, reply["hidden_words"])),
        warnings=tuple(reply["warnings"]),
    )


def _unpack_word(packed: list[Any]) -> Word:
    text, x0, top, x1, bottom, source, confidence, bold, size_pt, line = packed
    return Word(text, Box(x0, top, x1, bottom), source, confidence, bold, size_pt, line)


def _receive(source: str | Path | bytes | BinaryIO, limits: Limits, name: str) -> Content:
    if isinstance(source, (bytes, bytearray, memoryview)):
        body = bytes(source)
        name = name or "<bytes>"
        _check_size(name, len(body), limits)
    elif isinstance(source, (str, Path)) and str(source) != "-":
        return _receive_file(Path(source), limits, name or str(source))
    else:
        stream = sys.stdin.buffer if isinstance(source, (str, Path)) else source
        if not hasattr(stream, "read"):
            raise ConfigError(f"the document is {source!r}; give a path, bytes, or a binary stream")
        name = name or ("<stdin>" if stream is sys.stdin.buffer else str(getattr(stream, "name", "<stream>")))
        body = stream.read(limits.file_bytes + 1)
        if not isinstance(body, bytes):
            raise ConfigError(f"{name}: it gives {type(body).__name__}, not bytes; open it in binary mode")
        if len(body) > limits.file_bytes:
            raise LimitExceeded(f"{name}: it has more than {limits.file_bytes} bytes, the limit; raise limits.file_bytes")
    return Content(name, "", body, detect_kind(body[: PDF_MARK_WITHIN + 8], name))


def _receive_file(path: Path, limits: Limits, name: str) -> Content:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            what = "a folder" if stat.S_ISDIR(status.st_mode) else "a device or pipe, not a file"
            raise UnsupportedDocument(f"{name}: it is {what}; give a file, or pipe the content to standard input with -")
        _check_size(name, status.st_size, limits)
        with path.open("rb") as file:
            head = file.read(PDF_MARK_WITHIN + 8)
    except FileNotFoundError as error:
        raise DocumentNotFound(f"{name}: there is no such file; check the path") from error
    except (OSError, ValueError) as error:
        raise DocumentNotFound(f"{name}: it cannot be read ({error}); check the path and its permissions") from error
    return Content(name, os.path.abspath(path), b"", detect_kind(head, name))


def _check_size(name: str, size: int, limits: Limits) -> None:
    if size > limits.file_bytes:
        raise LimitExceeded(f"{name}: it has {size} bytes, the limit is {limits.file_bytes}; raise limits.file_bytes")


def detect_kind(head: bytes, name: str) -> Kind:
    """ "pdf" or "image" by the first bytes of a file. Raises CorruptDocument if empty, UnsupportedDocument if neither."""
    if not head:
        raise CorruptDocument(f"{name}: the file is empty; fetch it again")
    if head.startswith(IMAGE_MARKS) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP"):
        return "image"
    if b"%PDF-" in head:
        return "pdf"
    raise UnsupportedDocument(f"{name}: it is neither a PDF nor a PNG, JPEG, WebP, GIF, BMP or TIFF image; convert it to one of these")
