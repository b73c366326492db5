"""Characters of a PDF page's text layer, with one style per text object, read through PDFium's C interface."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pypdfium2.raw as pdfium

INVISIBLE_MODES = (3, 7)  # neither filled nor stroked (PDF 32000-1, table 106)
BOLD_WEIGHT = 600
OBSCURE = {0x00AD: "-", 0x0002: "-", 0xFFFE: "-"}  # hyphens at a line's end, as PDFium reports them


class Character(NamedTuple):
    """A character and its loose box (advance width by font height) in PDF user space: y grows upwards."""

    text: str
    left: float
    bottom: float
    right: float
    top: float
    style: Style


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


BREAK = None
"""Stands for white space of the text layer in a sequence of characters."""


def read_characters(text_page: Any) -> Iterator[Character | None]:
    """All characters in the order of the text layer; BREAK for white space that the document states.

    White space that PDFium guessed is left out: words are separated by their geometry.
    """
    get_unicode, get_box, get_object = pdfium.FPDFText_GetUnicode, pdfium.FPDFText_GetLooseCharBox, pdfium.FPDFText_GetTextObject
    rect = pdfium.FS_RECTF()
    rect_reference = ctypes.byref(rect)
    styles: dict[int | None, Style] = {}
    style: Style | None = None
    previous = -1
    high = 0
    for index in range(max(pdfium.FPDFText_CountChars(text_page), 0)):
        code = get_unicode(text_page, index)
        if code <= 32 and code not in OBSCURE:
            if not pdfium.FPDFText_IsGenerated(text_page, index):
                yield BREAK
            continue
        if 0xD800 <= code <= 0xDFFF:  # half of a surrogate pair
            high, code = (code, 0) if code < 0xDC00 else (0, 0x10000 + ((high - 0xD800) << 10) + code - 0xDC00 if high else 0)
            if not code:
                continue
        text = OBSCURE.get(code) or (chr(code) if code < 0x110000 else "\ufffd")
        if text.isspace():
            yield BREAK
            continue
        get_box(text_page, index, rect_reference)
        handle = get_object(text_page, index)
        address = ctypes.cast(handle, ctypes.c_void_p).value if handle else None
        if style is None or address != previous:
            style = styles.get(address)
            if style is None:
                style = styles[address] = _style(text_page, index, handle, address or 0)
            previous = address or 0
        yield Character(text, rect.left, rect.bottom, rect.right, rect.top, style)


def _style(text_page: Any, index: int, handle: Any, address: int) -> Style:
    matrix = pdfium.FS_MATRIX()
    size = pdfium.FPDFText_GetFontSize(text_page, index)
    angle = 0.0
    if pdfium.FPDFText_GetMatrix(text_page, index, matrix):
        size *= math.hypot(matrix.c, matrix.d)
        angle = math.degrees(math.atan2(matrix.b, matrix.a))
    red, green, blue, alpha = (ctypes.c_uint(0) for _ in range(4))
    mode = 0
    if handle:
        mode = pdfium.FPDFTextObj_GetTextRenderMode(handle)
        if not pdfium.FPDFPageObj_GetFillColor(handle, red, green, blue, alpha):
            alpha.value = 255
    bold = mode == 2 or pdfium.FPDFText_GetFontWeight(text_page, index) >= BOLD_WEIGHT or _has_bold_name(text_page, index)
    color = (red.value, green.value, blue.value, alpha.value)
    return Style(angle, abs(size), bold, mode in INVISIBLE_MODES, color, address)


def _has_bold_name(text_page: Any, index: int) -> bool:
    buffer = ctypes.create_string_buffer(128)
    flags = ctypes.c_int(0)
    pdfium.FPDFText_GetFontInfo(text_page, index, buffer, len(buffer), flags)
    name = buffer.value.lower()
    return any(mark in name for mark in (b"bold", b"black", b"heavy", b"semibold", b",b"))
