"""Drawn objects of a PDF page: ruling lines, filled areas, pictures, and the order in which everything is painted."""

from __future__ import annotations

import ctypes
import time
from dataclasses import dataclass, field
from typing import Any

import pypdfium2.raw as pdfium

from pagelift.documents.frame import Rectangle, is_finite

MAX_OBJECTS = 50_000  # of all kinds; text objects take no time
MAX_PATHS = 5_000
MAX_SEGMENTS = 20_000
MAX_SECONDS = 0.5
MAX_DEPTH = 3
MAX_AREAS = 300
MAX_CLIP_PATHS = 8
MAX_CLIP_SEGMENTS = 64
MAX_THICKNESS = 3.0  # points; a thicker bar is an area
MIN_LENGTH = 6.0  # points; anything shorter is part of a letter or a drawing
IDENTITY = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)

Matrix = tuple[float, float, float, float, float, float]
Color = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Area:
    """An opaque filled area or a picture (color None). order: position in the painting order."""

    rectangle: Rectangle
    color: Color | None
    order: int


@dataclass(slots=True)
class Graphics:
    """rules: thin rectangles in user space. areas: without thin ones. texts: painting order of text objects by address.

    complete: False when a cap on the number of objects or on the time was reached.
    """

    rules: list[Rectangle] = field(default_factory=list)
    areas: list[Area] = field(default_factory=list)
    pictures: list[Rectangle] = field(default_factory=list)
    texts: dict[int, int] = field(default_factory=dict)
    paths: int = 0
    segments: int = 0
    order: int = 0
    complete: bool = True


def read_graphics(page: Any) -> Graphics:
    """What is drawn on a loaded page, within the caps on their number and on the time."""
    graphics = Graphics()
    _walk(graphics, page, pdfium.FPDFPage_CountObjects, pdfium.FPDFPage_GetObject, (IDENTITY, 0, time.perf_counter() + MAX_SECONDS))
    graphics.rules = [r for r in dict.fromkeys(graphics.rules) if is_finite(r)]
    return graphics


def _walk(graphics: Graphics, container: Any, count: Any, get: Any, state: tuple[Matrix, int, float]) -> None:
    matrix, depth, deadline = state
    for index in range(count(container)):
        if graphics.order >= MAX_OBJECTS or graphics.paths >= MAX_PATHS or (graphics.order % 64 == 0 and time.perf_counter() > deadline):
            graphics.complete = False
            return
        item = get(container, index)
        graphics.order += 1
        kind = pdfium.FPDFPageObj_GetType(item)
        if kind == pdfium.FPDF_PAGEOBJ_TEXT:
            graphics.texts[ctypes.cast(item, ctypes.c_void_p).value or 0] = graphics.order
        elif kind == pdfium.FPDF_PAGEOBJ_PATH:
            _read_path(graphics, item, matrix)
        elif kind == pdfium.FPDF_PAGEOBJ_IMAGE:
            rectangle = _clipped(item, _bounds(item, matrix), matrix)
            if rectangle is not None:
                graphics.pictures.append(rectangle)
                if len(graphics.areas) < MAX_AREAS and not pdfium.FPDFPageObj_HasTransparency(item):
                    graphics.areas.append(Area(rectangle, None, graphics.order))
        elif kind == pdfium.FPDF_PAGEOBJ_FORM and depth < MAX_DEPTH:
            inner = (_multiply(_matrix(item), matrix), depth + 1, deadline)
            _walk(graphics, item, pdfium.FPDFFormObj_CountObjects, pdfium.FPDFFormObj_GetObject, inner)


def _read_path(graphics: Graphics, path: Any, matrix: Matrix) -> None:
    graphics.paths += 1
    fill_mode, stroke = ctypes.c_int(0), ctypes.c_int(0)
    if not pdfium.FPDFPath_GetDrawMode(path, fill_mode, stroke) or not (fill_mode.value or stroke.value):
        return
    rectangle = _bounds(path, matrix)
    if rectangle is None:
        return
    width, height = rectangle[2] - rectangle[0], rectangle[3] - rectangle[1]
    if max(width, height) < MIN_LENGTH:
        return
    fill = _color(path, pdfium.FPDFPageObj_GetFillColor) if fill_mode.value else None
    if min(width, height) <= MAX_THICKNESS:
        if stroke.value or (fill and min(fill) < 250):
            graphics.rules.append(_rounded(rectangle))
        return
    count = pdfium.FPDFPath_CountSegments(path)
    if fill and count <= 6 and len(graphics.areas) < MAX_AREAS and not pdfium.FPDFPageObj_HasTransparency(path):
        clipped = _clipped(path, rectangle, matrix)
        if clipped is not None:
            graphics.areas.append(Area(clipped, fill, graphics.order))
    if stroke.value or (fill and min(fill) < 250):
        graphics.rules.extend(_straight_lines(graphics, path, count, _multiply(_matrix(path), matrix)))


def _straight_lines(graphics: Graphics, path: Any, count: int, matrix: Matrix) -> list[Rectangle]:
    """Horizontal and vertical segments of a path, none if it has curves (a drawing or outlined letters)."""
    lines: list[Rectangle] = []
    x, y = ctypes.c_float(0), ctypes.c_float(0)
    before = first = (0.0, 0.0)
    for index in range(count):
        graphics.segments += 1
        if graphics.segments > MAX_SEGMENTS:
            graphics.complete = False
            break
        segment = pdfium.FPDFPath_GetPathSegment(path, index)
        kind = pdfium.FPDFPathSegment_GetType(segment)
        if kind == pdfium.FPDF_SEGMENT_BEZIERTO:
            return []
        pdfium.FPDFPathSegment_GetPoint(segment, x, y)
        point = _apply(matrix, x.value, y.value)
        if kind == pdfium.FPDF_SEGMENT_MOVETO:
            first = point
        else:
            _add_line(lines, before, point)
        if pdfium.FPDFPathSegment_GetClose(segment):
            _add_line(lines, point, first)
        before = point
    return lines


def _add_line(lines: list[Rectangle], start: tuple[float, float], end: tuple[float, float]) -> None:
    dx, dy = abs(start[0] - end[0]), abs(start[1] - end[1])
    if min(dx, dy) < 0.5 and max(dx, dy) >= MIN_LENGTH:
        lines.append(_rounded((min(start[0], end[0]), min(start[1], end[1]), max(start[0], end[0]), max(start[1], end[1]))))


def _bounds(item: Any, matrix: Matrix) -> Rectangle | None:
    left, bottom, right, top = (ctypes.c_float(0) for _ in range(4))
    if not pdfium.FPDFPageObj_GetBounds(item, left, bottom, right, top):
        return None
    rectangle = left.value, bottom.value, right.value, top.value
    if matrix is not IDENTITY:
        corners = [_apply(matrix, x, y) for x in (left.value, right.value) for y in (bottom.value, top.value)]
        xs, ys = [c[0] for c in corners], [c[1] for c in corners]
        rectangle = min(xs), min(ys), max(xs), max(ys)
    return rectangle if is_finite(rectangle) else None


def _clipped(item: Any, rectangle: Rectangle | None, matrix: Matrix) -> Rectangle | None:
    """`rectangle` without what lies outside the boxes around the item's clipping paths; None if nothing is left."""
    clip = pdfium.FPDFPageObj_GetClipPath(item)
    if rectangle is None or not clip:
        return rectangle
    left, bottom, right, top = rectangle
    x, y = ctypes.c_float(0), ctypes.c_float(0)
    for path in range(min(max(pdfium.FPDFClipPath_CountPaths(clip), 0), MAX_CLIP_PATHS)):
        count = pdfium.FPDFClipPath_CountPathSegments(clip, path)
        if not 0 < count <= MAX_CLIP_SEGMENTS:
            continue
        points = []
        for index in range(count):
            pdfium.FPDFPathSegment_GetPoint(pdfium.FPDFClipPath_GetPathSegment(clip, path, index), x, y)
            points.append(_apply(matrix, x.value, y.value))
        left, right = max(left, min(p[0] for p in points)), min(right, max(p[0] for p in points))
        bottom, top = max(bottom, min(p[1] for p in points)), min(top, max(p[1] for p in points))
    return (left, bottom, right, top) if left < right and bottom < top else None


def _color(item: Any, get: Any) -> Color | None:
    red, green, blue, alpha = (ctypes.c_uint(0) for _ in range(4))
    if not get(item, red, green, blue, alpha) or alpha.value < 200:
        return None
    return red.value, green.value, blue.value


def _matrix(item: Any) -> Matrix:
    m = pdfium.FS_MATRIX()
    if not pdfium.FPDFPageObj_GetMatrix(item, m):
        return IDENTITY
    return m.a, m.b, m.c, m.d, m.e, m.f


def _multiply(inner: Matrix, outer: Matrix) -> Matrix:
    """The matrix that applies `inner` first (PDF 32000-1, 8.3.4)."""
    a, b, c, d, e, f = inner
    g, h, i, j, k, m = outer
    return a * g + b * i, a * h + b * j, c * g + d * i, c * h + d * j, e * g + f * i + k, e * h + f * j + m


def _apply(matrix: Matrix, x: float, y: float) -> tuple[float, float]:
    a, b, c, d, e, f = matrix
    return a * x + c * y + e, b * x + d * y + f


def _rounded(rectangle: Rectangle) -> Rectangle:
    left, bottom, right, top = rectangle
    return round(left, 1), round(bottom, 1), round(right, 1), round(top, 1)
