"""One PDF file in the worker process: pages, words, form fields, rules, pictures."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

from pagelift.core.errors import CorruptDocument, PasswordRequired, UnsupportedDocument
from pagelift.documents.characters import read_characters
from pagelift.documents.wire import Header
from pagelift.documents.words import Run, group_characters

Corners = list[float]


@dataclass(frozen=True, slots=True)
class Frame:
    """The shown part of a page in PDF user space, and how it is turned: what maps PDFium's boxes to page points."""

    left: float
    bottom: float
    right: float
    top: float
    rotation: int

    @property
    def size(self) -> tuple[float, float]:
        width, height = self.right - self.left, self.top - self.bottom
        return (height, width) if self.rotation in (90, 270) else (width, height)

    def show(self, box: tuple[float, float, float, float]) -> Corners:
        """Left, bottom, right, top in user space to x0, top, x1, bottom as shown."""
        left, bottom, right, top = box
        if self.rotation == 90:
            corners = (bottom - self.bottom, left - self.left, top - self.bottom, right - self.left)
        elif self.rotation == 180:
            corners = (self.right - right, bottom - self.bottom, self.right - left, top - self.bottom)
        elif self.rotation == 270:
            corners = (self.top - top, self.right - right, self.top - bottom, self.right - left)
        else:
            corners = (left - self.left, self.top - top, right - self.left, self.top - bottom)
        return [round(v, 2) for v in corners]


class PdfFile:
    """An open PDF file. source: a path, or the content."""

    def __init__(self, source: str | bytes, password: str | None) -> None:
        self.warnings: list[str] = []
        try:
            self._document = pypdfium2.PdfDocument(source, password=password)
        except pypdfium2.PdfiumError as error:
            raise _opening_error(error, password) from error
        self._document.init_forms()
        self.page_count = len(self._document)
        if self.page_count == 0:
            self._document.close()
            raise CorruptDocument("the PDF has no pages; save it again with another program")

    def close(self) -> None:
        self._document.close()

    def size(self, page: int) -> tuple[float, float]:
        """Width and height of the page as shown, in points, without reading its content."""
        size = pdfium.FS_SIZEF()
        if not pdfium.FPDF_GetPageSizeByIndexF(self._document.raw, page - 1, size):
            raise CorruptDocument(f"page {page} cannot be read; save the file again with another program")
        return size.width, size.height

    def content(self, page: int) -> Header:
        with self._page(page) as loaded:
            frame = _frame(loaded)
            width_pt, height_pt = frame.size
            text_page = loaded.get_textpage()
            runs = group_characters(read_characters(text_page.raw))
            words = [packed for run in runs if (packed := _pack(run, frame)) is not None]
            return {"width_pt": width_pt, "height_pt": height_pt, "words": words, "hidden_words": [], "form_fields": [], "rules": [],
                    "pictures": [], "text": "sound", "warnings": []}

    def picture(self, page: int, dpi: float, max_pixels: int) -> tuple[Header, memoryview]:
        """The page as rows of BGR pixels, annotations and forms drawn; smaller than `dpi` asks for if above `max_pixels`."""
        with self._page(page) as loaded:
            width_pt, height_pt = _frame(loaded).size
            scale = min(dpi / 72, (max_pixels / max(width_pt * height_pt, 1e-6)) ** 0.5, 30_000 / max(width_pt, height_pt, 1e-6))
            width_px, height_px = max(1, round(width_pt * scale)), max(1, round(height_pt * scale))
            bitmap = pypdfium2.PdfBitmap.new_native(width_px, height_px, pdfium.FPDFBitmap_BGR)
            bitmap.fill_rect((255, 255, 255, 255), 0, 0, width_px, height_px)
            arguments = (0, 0, width_px, height_px, 0, pdfium.FPDF_ANNOT)
            pdfium.FPDF_RenderPageBitmap(bitmap.raw, loaded.raw, *arguments)
            if self._document.formenv:
                pdfium.FPDF_FFLDraw(self._document.formenv.raw, bitmap.raw, loaded.raw, *arguments)
            header = {"width_px": width_px, "height_px": height_px, "stride": bitmap.stride, "mode": "BGR"}
            return header, memoryview(bitmap.buffer).cast("B")

    @contextmanager
    def _page(self, page: int) -> Iterator[Any]:
        try:
            loaded = self._document[page - 1]
        except pypdfium2.PdfiumError as error:
            raise CorruptDocument(f"page {page} cannot be read; save the file again with another program") from error
        try:
            yield loaded
        finally:
            loaded.close()


def _opening_error(error: Exception, password: str | None) -> Exception:
    code = getattr(error, "err_code", None)
    if code == pdfium.FPDF_ERR_PASSWORD:
        if password is None:
            return PasswordRequired("the PDF is encrypted; give its password (password=..., or --password on the command line)")
        return PasswordRequired("the PDF is encrypted and the given password is wrong; give the right one")
    if code == pdfium.FPDF_ERR_SECURITY:
        return UnsupportedDocument("the PDF is encrypted in a way that is not supported; save it again without encryption")
    return CorruptDocument("the PDF is damaged or truncated; save it again with another program")


def _frame(page: Any) -> Frame:
    rect = pdfium.FS_RECTF()
    rotation = pdfium.FPDFPage_GetRotation(page.raw) % 4 * 90
    if not pdfium.FPDF_GetPageBoundingBox(page.raw, ctypes.byref(rect)):
        return Frame(0, 0, 612, 792, rotation)
    return Frame(rect.left, rect.bottom, rect.right, rect.top, rotation)


def _pack(run: Run, frame: Frame) -> list[Any] | None:
    text = run.text
    if not text:
        return None
    return [text, *frame.show(run.box()), "text", 1.0, run.style.bold, round(run.style.size_pt, 2), None]
