"""Characters of a PDF page's text layer, with one style per text object, read through PDFium's C interface."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pypdfium2.raw as pdfium

INVISIBLE_MODES = (3, 7)  # neither filled nor stroked (PDF 32000-1, table 106)
BOLD_WEIGHT = 600
BOLD_NAMES = (b"bold", b"black", b"heavy")
LINE_END_HYPHENS = {0x00AD: "-", 0x0002: "-", 0xFFFE: "-"}  # as PDFium reports hyphens


@dataclass(slots=True, eq=False)
class Style:
    """What all characters of one text object share.

    angle: direction of the text in degrees, counter-clockwise, in PDF user space. size_pt: font size as shown.
    address: of the text object, to find it among the page's objects. color: fill colour, red, green, blue, alpha.
    """

    angle: float
    size_pt: float
    bold: bool
    invisible: bool
    color: tuple[int, int, int, int]
    address: int


Character = tuple[str, float, float, float, float, Style]
"""Text, and left, bottom, right, top of its loose box (advance width by font height) in PDF user space: y grows upwards."""
BREAK = None
"""Stands for white space of the text layer in a sequence of characters."""
GUESS = " "
"""Stands for white space that PDFium guessed; it counts only where the geometry agrees."""


def _with_plain_pointers(function: Any, result: Any, *arguments: Any) -> Any:
    """The same C function without typed pointers, which cost more than the calls themselves."""
    return ctypes.CFUNCTYPE(result, *arguments)(ctypes.cast(function, ctypes.c_void_p).value or 0)


_get_unicode = _with_plain_pointers(pdfium.FPDFText_GetUnicode, ctypes.c_uint, ctypes.c_void_p, ctypes.c_int)
_get_box = _with_plain_pointers(pdfium.FPDFText_GetLooseCharBox, ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
_get_object = _with_plain_pointers(pdfium.FPDFText_GetTextObject, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)


def read_characters(text_page: Any) -> Iterator[Character | str | None]:
    """All characters in the order of the text layer; BREAK for white space that the document states, GUESS for guessed one."""
    pointer = ctypes.c_void_p(ctypes.cast(text_page, ctypes.c_void_p).value)
    rect = pdfium.FS_RECTF()
    rect_pointer = ctypes.c_void_p(ctypes.addressof(rect))
    styles: dict[int, Style] = {}
    style_reader = _StyleReader(text_page)
    style: Style | None = None
    previous = -1
    high = 0
    for index in range(max(pdfium.FPDFText_CountChars(text_page), 0)):
        code = _get_unicode(pointer, index)
        if code <= 32 and code not in LINE_END_HYPHENS:
            yield GUESS if pdfium.FPDFText_IsGenerated(text_page, index) else BREAK
            continue
        if 0xD800 <= code <= 0xDFFF:  # half of a surrogate pair
            high, code = (code, 0) if code < 0xDC00 else (0, 0x10000 + ((high - 0xD800) << 10) + code - 0xDC00 if high else 0)
            if not code:
                continue
        text = LINE_END_HYPHENS.get(code) or (chr(code) if code < 0x110000 else "\ufffd")
        if text.isspace():
            yield BREAK
            continue
        _get_box(pointer, index, rect_pointer)
        address = _get_object(pointer, index) or 0
        if style is None or address != previous:
            style = styles.get(address)
            if style is None:
                style = styles[address] = style_reader.read(index, address)
            previous = address
        yield text, rect.left, rect.bottom, rect.right, rect.top, style


class _StyleReader:
    """Reads styles of one text page; keeps its C variables, and what it knows of each font, from call to call."""

    def __init__(self, text_page: Any) -> None:
        self._text_page = text_page
        self._matrix = pdfium.FS_MATRIX()
        self._color = tuple(ctypes.c_uint(0) for _ in range(4))
        self._bold_fonts: dict[int, bool] = {}

    def read(self, index: int, address: int) -> Style:
        """The style of character `index`, drawn by the text object at `address`, 0 if there is none."""
        size = pdfium.FPDFText_GetFontSize(self._text_page, index)
        angle = 0.0
        matrix = self._matrix
        if pdfium.FPDFText_GetMatrix(self._text_page, index, matrix):
            size *= math.hypot(matrix.c, matrix.d)
            angle = math.degrees(math.atan2(matrix.b, matrix.a)) if matrix.b or matrix.a < 0 else 0.0
        if not address:
            return Style(angle, abs(size), False, False, (0, 0, 0, 255), 0)
        handle = ctypes.cast(address, pdfium.FPDF_PAGEOBJECT)
        mode = pdfium.FPDFTextObj_GetTextRenderMode(handle)
        color = (0, 0, 0, 255)
        if pdfium.FPDFPageObj_GetFillColor(handle, *self._color):
            red, green, blue, alpha = self._color
            color = red.value, green.value, blue.value, alpha.value
        return Style(angle, abs(size), mode == 2 or self._is_bold(handle), mode in INVISIBLE_MODES, color, address)

    def _is_bold(self, handle: Any) -> bool:
        font = pdfium.FPDFTextObj_GetFont(handle)
        address = ctypes.cast(font, ctypes.c_void_p).value or 0
        bold = self._bold_fonts.get(address)
        if bold is None:
            buffer = ctypes.create_string_buffer(128)
            pdfium.FPDFFont_GetBaseFontName(font, buffer, len(buffer))
            bold = pdfium.FPDFFont_GetWeight(font) >= BOLD_WEIGHT or any(mark in buffer.value.lower() for mark in BOLD_NAMES)
            self._bold_fonts[address] = bold
        return bold
