"""One PDF file in the worker process: pages, words, form fields, rules, pictures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

from pagelift.core.errors import CorruptDocument, PasswordRequired, UnsupportedDocument
from pagelift.documents.characters import read_characters
from pagelift.documents.forms import PackedWord, Widget, mark_values, read_widgets
from pagelift.documents.frame import MIN_SIDE_PT, Frame, frame_of
from pagelift.documents.graphics import Graphics, read_graphics
from pagelift.documents.soundness import Drawn, judge
from pagelift.documents.visibility import Raster, Sorted, sort_by_visibility
from pagelift.documents.wire import Header
from pagelift.documents.words import Run, group_characters

SUSPICION_PIXELS = 4_000_000
MAX_SIDE_PX = 30_000
MAX_HIDDEN = 2_000
SCAN_SHARE = 0.5  # of the page's area under pictures: invisible text over it is the OCR layer of a scan


class PdfFile:
    """An open PDF file. source: a path, or the content."""

    def __init__(self, source: str | bytes, password: str | None) -> None:
        self.warnings: list[str] = []
        self._widgets: dict[int, list[Widget]] = {}
        try:
            self._document = pypdfium2.PdfDocument(source, password=password)
        except pypdfium2.PdfiumError as error:
            raise _opening_error(error, password) from error
        self._document.init_forms()
        if self._document.get_formtype() == pdfium.FORMTYPE_XFA_FULL:
            self.warnings.append("it is an XFA form: only its AcroForm part is read")
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
        return max(size.width, MIN_SIDE_PT), max(size.height, MIN_SIDE_PT)

    def content(self, page: int) -> Header:
        """Words, fields and lines of a page, packed for the protocol: see worker.py and core.page.

        pictures: boxes of image objects. text: the verdict of `soundness.judge` on the words.
        """
        with self._page(page) as loaded:
            widgets = self._widgets.get(page)
            if widgets is None:
                form = self._document.formenv
                widgets, printed = read_widgets(loaded.raw, form and form.raw, frame_of(loaded.raw))
                if printed and pdfium.FPDFPage_Flatten(loaded.raw, pdfium.FLAT_NORMALDISPLAY) != pdfium.FLATTEN_FAIL:
                    self._widgets[page] = widgets  # a flattened page has no fields any more
                    with self._page(page) as flattened:
                        return self._read(flattened, widgets)
            return self._read(loaded, widgets)

    def _read(self, loaded: Any, widgets: list[Widget]) -> Header:
        frame = frame_of(loaded.raw)
        text_page = loaded.get_textpage()
        runs = group_characters(read_characters(text_page.raw))
        text_page.close()
        graphics = read_graphics(loaded.raw)
        seen = sort_by_visibility(runs, graphics, frame, lambda dpi: self._raster(loaded, frame, dpi))
        share = _picture_share(graphics, frame)
        visible, hidden, warnings = _usable(seen, runs, share)
        words = _pack(visible, frame)
        width_pt, height_pt = frame.size
        return {
            "width_pt": width_pt,
            "height_pt": height_pt,
            "words": mark_values(words, widgets),
            "hidden_words": _pack(hidden[:MAX_HIDDEN], frame),
            "form_fields": [w.pack() for w in widgets],
            "rules": [frame.show(r) for r in graphics.rules],
            "pictures": [frame.show(p) for p in graphics.pictures],
            "text": judge([w[0] for w in words], Drawn(share, graphics.paths)),
            "warnings": warnings,
        }

    def _raster(self, loaded: Any, frame: Frame, dpi: float) -> Raster:
        header, rows = self._render(loaded, frame, dpi, SUSPICION_PIXELS)
        return Raster(rows, header["width_px"], header["height_px"], header["stride"], header["width_px"] / frame.size[0])

    def picture(self, page: int, dpi: float, max_pixels: int) -> tuple[Header, memoryview]:
        """The page as rows of BGR pixels, annotations and forms drawn; smaller than `dpi` asks for if above `max_pixels`."""
        with self._page(page) as loaded:
            return self._render(loaded, frame_of(loaded.raw), dpi, max_pixels)

    def region(self, page: int, dpi: float, corners: list[float], max_pixels: int) -> tuple[Header, memoryview]:
        """The part of the page picture in the box x0, top, x1, bottom (page points), as `picture` gives it."""
        with self._page(page) as loaded:
            frame = frame_of(loaded.raw)
            width_pt, height_pt = frame.size
            x0, top = max(corners[0], 0.0), max(corners[1], 0.0)
            x1, bottom = min(corners[2], width_pt), min(corners[3], height_pt)
            return self._render(loaded, frame, dpi, max_pixels, (x0, top, max(x1 - x0, 1.0), max(bottom - top, 1.0)))

    def _render(
        self, loaded: Any, frame: Frame, dpi: float, max_pixels: int, part: tuple[float, float, float, float] | None = None
    ) -> tuple[Header, memoryview]:
        """part: left, top, width and height in page points, default the whole page."""
        left_pt, top_pt, width_pt, height_pt = part or (0.0, 0.0, *frame.size)
        scale = min(dpi / 72, (max_pixels / (width_pt * height_pt)) ** 0.5, MAX_SIDE_PX / max(frame.size))
        width_px, height_px = max(1, int(width_pt * scale)), max(1, int(height_pt * scale))
        page_px = max(1, int(frame.size[0] * scale)), max(1, int(frame.size[1] * scale))
        bitmap = pypdfium2.PdfBitmap.new_native(width_px, height_px, pdfium.FPDFBitmap_BGR)
        bitmap.fill_rect((255, 255, 255, 255), 0, 0, width_px, height_px)
        arguments = (-int(left_pt * scale), -int(top_pt * scale), *page_px, 0, pdfium.FPDF_ANNOT)
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


def _usable(seen: Sorted, runs: list[Run], picture_share: float) -> tuple[list[Run], list[Run], list[str]]:
    """The words to use, the hidden ones, and warnings about both. Invisible words over a scan are its OCR layer."""
    visible, hidden, warnings = seen.visible, seen.hidden, []
    if picture_share >= SCAN_SHARE and len(seen.overlay) > len(visible):
        shown = {*visible, *seen.overlay}
        visible = [run for run in runs if run in shown]  # in the order of the text layer
        warnings.append("the words come from an invisible text layer over a scan; use ocr=always to read the scan instead")
    else:
        hidden = hidden + seen.overlay
    if hidden:
        warnings.append(f"{len(hidden)} words of the text layer cannot be seen on the page and are not used")
    return visible, hidden, warnings


def _picture_share(graphics: Graphics, frame: Frame) -> float:
    """Share of the page's area under pictures, at most 1; strips of a scan add up."""
    area = 0.0
    for left, bottom, right, top in graphics.pictures:
        width = min(right, frame.right) - max(left, frame.left)
        height = min(top, frame.top) - max(bottom, frame.bottom)
        area += max(width, 0) * max(height, 0)
    return min(area / ((frame.right - frame.left) * (frame.top - frame.bottom)), 1.0)


def _pack(runs: Iterable[Run], frame: Frame) -> list[PackedWord]:
    return [
        [text, *frame.show(run.box()), "text", 1.0, run.style.bold, round(run.style.size_pt, 2), None] for run in runs if (text := run.text)
    ]
