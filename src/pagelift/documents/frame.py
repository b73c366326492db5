"""From PDF user space to page points: the shown part of a page, and how it is turned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pypdfium2.raw as pdfium

Rectangle = tuple[float, float, float, float]
"""Left, bottom, right, top in PDF user space: y grows upwards."""

MIN_SIDE_PT = 1.0
MAX_COORDINATE = 1e12


@dataclass(frozen=True, slots=True)
class Frame:
    """The shown part of a page in PDF user space, and its clockwise rotation: 0, 90, 180 or 270 degrees."""

    left: float
    bottom: float
    right: float
    top: float
    rotation: int

    @property
    def size(self) -> tuple[float, float]:
        """Width and height as shown, in points."""
        width, height = self.right - self.left, self.top - self.bottom
        return (height, width) if self.rotation in (90, 270) else (width, height)

    def show(self, rectangle: Rectangle) -> list[float]:
        """The corners x0, top, x1, bottom in page points as shown."""
        left, bottom, right, top = rectangle
        if self.rotation == 90:
            corners = (bottom - self.bottom, left - self.left, top - self.bottom, right - self.left)
        elif self.rotation == 180:
            corners = (self.right - right, bottom - self.bottom, self.right - left, top - self.bottom)
        elif self.rotation == 270:
            corners = (self.top - top, self.right - right, self.top - bottom, self.right - left)
        else:
            corners = (left - self.left, self.top - top, right - self.left, self.top - bottom)
        return [round(v, 2) for v in corners]


def is_finite(rectangle: Rectangle) -> bool:
    """Whether all edges are numbers that a page can have; hostile matrices give others."""
    return sum(map(abs, rectangle)) < MAX_COORDINATE  # false for NaN and infinity


def frame_of(page: Any) -> Frame:
    """The frame of a loaded page, at least one point wide and high; US letter, as PDFium does, if the file's boxes are unusable."""
    rectangle = pdfium.FS_RECTF()
    rotation = pdfium.FPDFPage_GetRotation(page) % 4 * 90
    if not pdfium.FPDF_GetPageBoundingBox(page, rectangle) or rectangle.right <= rectangle.left or rectangle.top <= rectangle.bottom:
        return Frame(0, 0, 612, 792, rotation)
    left, bottom = rectangle.left, rectangle.bottom
    return Frame(left, bottom, max(rectangle.right, left + MIN_SIDE_PT), max(rectangle.top, bottom + MIN_SIDE_PT), rotation)
