"""Which words of a text layer nobody can see on the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pagelift.documents.frame import Frame, Rectangle, is_finite
from pagelift.documents.graphics import Area, Color, Graphics
from pagelift.documents.words import Run

MIN_SIZE = 1.0  # points
PALE = 200  # of 255: text this light needs a darker ground to be seen
NEAR_COLOR = 24  # of 255
SUSPICION_DPI = 100
FLAT = 10  # of 255: spread of a channel within a word's box that shows no letters

Pixels = Callable[[float], "Raster"]


@dataclass(frozen=True, slots=True)
class Raster:
    """A page picture as rows of BGR pixels; scale: pixels per point."""

    rows: memoryview
    width_px: int
    height_px: int
    stride: int
    scale: float

    def is_flat(self, corners: Sequence[float]) -> bool:
        """Whether the box x0, top, x1, bottom in page points has one colour."""
        x0, top, x1, bottom = (round(v * self.scale) for v in corners)
        x0, x1 = max(x0, 0), min(max(x1, x0 + 1), self.width_px)
        spans = [
            self.rows[y * self.stride + x0 * 3 : y * self.stride + x1 * 3] for y in range(max(top, 0), min(bottom + 1, self.height_px))
        ]
        for channel in range(3):
            values = [span[channel::3].tobytes() for span in spans if len(span) > channel]
            if values and max(map(max, values)) - min(map(min, values)) > FLAT:
                return False
        return True


@dataclass(slots=True)
class Sorted:
    """Words by whether they can be seen. overlay: invisible words over pictures, as a scan's OCR layer has them."""

    visible: list[Run] = field(default_factory=list)
    hidden: list[Run] = field(default_factory=list)
    overlay: list[Run] = field(default_factory=list)


def sort_by_visibility(runs: Sequence[Run], graphics: Graphics, frame: Frame, render: Pixels) -> Sorted:
    """Split `runs`. render: makes the page picture at a resolution in dpi; called only when a word is suspicious."""
    result = Sorted()
    raster: Raster | None = None
    for run in runs:
        rectangle = run.box()
        if not is_finite(rectangle):
            continue
        if _is_off_page(rectangle, frame) or min(run.style.size_pt, run.height) < MIN_SIZE:
            result.hidden.append(run)
        elif run.style.invisible or run.style.color[3] == 0:
            on_picture = any(_covers(p, rectangle) for p in graphics.pictures)
            (result.overlay if on_picture else result.hidden).append(run)
        elif (suspicion := _suspicion(run, rectangle, graphics)) is None:
            result.visible.append(run)
        elif suspicion.color is None and suspicion.order:
            result.overlay.append(run)  # a scan drawn over its own text
        else:
            raster = raster or render(SUSPICION_DPI)
            (result.hidden if raster.is_flat(frame.show(rectangle)) else result.visible).append(run)
    return result


def _suspicion(run: Run, rectangle: Rectangle, graphics: Graphics) -> Area | None:
    """Why a word might not be seen: the area that covers it or has its colour, or pale ground as an area of order 0."""
    order = graphics.texts.get(run.style.address, graphics.order + 1)
    color = run.style.color[:3]
    ground: Area | None = None
    for area in graphics.areas:
        if _covers(area.rectangle, rectangle):
            if area.order > order:
                return area
            ground = area
    if ground is None or ground.color is None:
        return Area(rectangle, None, 0) if ground is None and min(color) >= PALE else None
    return ground if _is_near(color, ground.color) else None


def _is_near(first: Color, second: Color) -> bool:
    return all(abs(a - b) <= NEAR_COLOR for a, b in zip(first, second, strict=True))


def _covers(area: Rectangle, word: Rectangle) -> bool:
    x, y = (word[0] + word[2]) / 2, (word[1] + word[3]) / 2
    return area[0] <= x <= area[2] and area[1] <= y <= area[3]


def _is_off_page(word: Rectangle, frame: Frame) -> bool:
    x, y = (word[0] + word[2]) / 2, (word[1] + word[3]) / 2
    return not (frame.left <= x <= frame.right and frame.bottom <= y <= frame.top)
