"""Words from page pictures by OCR, and how they join the words of a text layer."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pagelift.core import Box, PageContent, Word
from pagelift.documents.client import Deadline, checked_call, ocr_pool
from pagelift.documents.soundness import unreadable
from pagelift.documents.wire import Header

if TYPE_CHECKING:
    from pagelift.documents.open import Document

OCR_DPI = 200.0
MAX_OCR_PIXELS = 6_000_000
THREADS = min(os.cpu_count() or 1, 4)
MAX_PICTURES = 4
MAX_REGION_PIXELS = 2_000_000
MIN_PICTURE_SHARE = 0.01  # of the page's area
MAX_REMEMBERED = 256
MIN_SHARE = 0.4  # of an OCR word's area under a word of the text layer: they are the same word

_remembered: dict[bytes, list[Word]] = {}


def read_page_picture(document: Document, content: PageContent, reply: Header, replace_text: bool) -> PageContent:
    """`content` with the words of the page picture: instead of the text layer's, or where that has none.

    reply: the worker's reply that `content` was made from. Raises DocumentTimeout after limits.ocr_seconds.
    """
    dpi = float(reply.get("picture_dpi", OCR_DPI))
    read = read_picture(document, content.number, dpi)
    kept = [w for w in content.words if w.source == "form" or not (replace_text or unreadable(w.text))]
    words = [*kept, *without_twins(read, kept)]
    return replace(content, words=tuple(words), source="ocr" if read else content.source if kept else "none")


def read_picture(document: Document, page: int, dpi: float) -> list[Word]:
    """The words of a page picture, in page points."""
    max_pixels = min(MAX_OCR_PIXELS, document.limits.page_pixels)
    header, rows = document.call({"op": "picture", "page": page, "dpi": dpi, "max_pixels": max_pixels})
    width_pt, height_pt = document.page(page).size
    return _read(document, header | {"page": page}, rows, (width_pt / header["width_px"], height_pt / header["height_px"]))


def read_pictures(document: Document, page: int, pictures: Iterable[Box]) -> list[Word]:
    """The words inside pictures on a page that has a text layer, in page points; a few pictures, the large ones first.

    What was read in a picture is remembered, because a logo returns on every page and in every document of its sender.
    """
    width_pt, height_pt = document.page(page).size
    shown = {Box(max(p.x0, 0.0), max(p.top, 0.0), min(p.x1, width_pt), min(p.bottom, height_pt)) for p in pictures}
    plausible = [p for p in shown if _may_hold_text(p, width_pt * height_pt)]
    plausible.sort(key=lambda p: (-p.width * p.height, p.top, p.x0))
    words: list[Word] = []
    lines = 0
    for picture in sorted(plausible[:MAX_PICTURES], key=lambda p: (p.top, p.x0)):
        request = {"op": "region", "page": page, "dpi": OCR_DPI, "box": picture.as_list(), "max_pixels": MAX_REGION_PIXELS}
        header, rows = document.call(request)
        digest = hashlib.blake2b(rows, digest_size=16).digest() + bytes(str(header), "ascii")
        read = _remembered.get(digest)
        if read is None:
            scale = picture.width / header["width_px"]
            read = _remembered[digest] = _read(document, header | {"page": page}, rows, (scale, scale))
            while len(_remembered) > MAX_REMEMBERED:
                _remembered.pop(next(iter(_remembered)), None)
        words += [_moved(word, picture, lines) for word in read]
        lines += max((w.line or 0 for w in read), default=-1) + 1
    return words


def _may_hold_text(picture: Box, page_area: float) -> bool:
    share = picture.width * picture.height / max(page_area, 1.0)
    return share >= MIN_PICTURE_SHARE and picture.height >= 6 and picture.width >= 12 and picture.height < 3 * picture.width


def _moved(word: Word, origin: Box, lines: int) -> Word:
    x, y = origin.x0, origin.top
    box = Box(word.box.x0 + x, word.box.top + y, word.box.x1 + x, word.box.bottom + y)
    return replace(word, box=box, line=(word.line or 0) + lines)


def _read(document: Document, picture: Header, rows: bytes, points_per_px: tuple[float, float]) -> list[Word]:
    deadline = Deadline(document.name, document.limits.ocr_seconds, "ocr_seconds")
    with ocr_pool.lease() as worker:
        reply, _ = checked_call(worker, picture | {"op": "ocr", "threads": THREADS}, rows, deadline)
    return [word for index, line in enumerate(reply["lines"]) for word in _line_words(index, line, points_per_px)]


def _line_words(index: int, line: dict[str, Any], points_per_px: tuple[float, float]) -> Iterable[Word]:
    x_scale, y_scale = points_per_px
    for text, x0, top, x1, bottom in line["words"]:
        box = Box(round(x0 * x_scale, 2), round(top * y_scale, 2), round(x1 * x_scale, 2), round(bottom * y_scale, 2))
        yield Word(
            text, box, "ocr", round(float(line["score"]), 4), False, min(box.height, box.width) if len(text) > 2 else box.height, index
        )


def without_twins(words: Iterable[Word], others: Sequence[Word]) -> list[Word]:
    """Those of `words` that do not lie on one of `others`."""
    return [w for w in words if not any(_shares_place(w.box, other.box) for other in others)]


def _shares_place(box: Box, other: Box) -> bool:
    width, height = box.overlap_x(other), box.overlap_y(other)
    if width <= 0 or height <= 0:
        return False
    smaller = min(box.width * box.height, other.width * other.height)
    return width * height > MIN_SHARE * smaller
