"""The one coordinate system: page points (1/72 inch), origin at the top left of the page as it is shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in page points: left edge, top edge, right edge, bottom edge; top < bottom."""

    x0: float
    top: float
    x1: float
    bottom: float

    @property
    def width(self) -> float:
        return self.x1 - self.x0

    @property
    def height(self) -> float:
        return self.bottom - self.top

    @property
    def center_x(self) -> float:
        return (self.x0 + self.x1) / 2

    @property
    def center_y(self) -> float:
        return (self.top + self.bottom) / 2

    def holds_center(self, other: Box) -> bool:
        """Whether the middle of another box is inside."""
        return self.x0 <= other.center_x <= self.x1 and self.top <= other.center_y <= self.bottom

    def overlap_x(self, other: Box) -> float:
        """Length in points that both boxes share on the horizontal axis; negative is the gap between them."""
        return min(self.x1, other.x1) - max(self.x0, other.x0)

    def overlap_y(self, other: Box) -> float:
        """Length in points that both boxes share on the vertical axis; negative is the gap between them."""
        return min(self.bottom, other.bottom) - max(self.top, other.top)

    def as_list(self, digits: int = 2) -> list[float]:
        return [round(v, digits) for v in (self.x0, self.top, self.x1, self.bottom)]


def union(boxes: Iterable[Box]) -> Box:
    """The smallest box around all `boxes`. Raises ValueError when there are none."""
    corners = [(b.x0, b.top, b.x1, b.bottom) for b in boxes]
    if not corners:
        raise ValueError("union of no boxes")
    x0, top, x1, bottom = zip(*corners, strict=True)
    return Box(min(x0), min(top), max(x1), max(bottom))
