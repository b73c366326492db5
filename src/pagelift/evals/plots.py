"""Scatter plots for tables of models: quality against bytes, drawn with Pillow alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from PIL import Image, ImageDraw, ImageFont

from pagelift.core.annotate import COLORS, Color

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont
    from PIL.ImageFont import ImageFont as PlainFont

WIDTH, HEIGHT = 760, 560
SHARPER = 2
"""Drawn so many times larger, and brought down again."""
LEFT, RIGHT, TOP, BOTTOM = 86, 28, 64, 64
INK, FAINT, PAPER = (40, 44, 52), (222, 225, 230), (255, 255, 255)
DOT = 5.0
Rectangle = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Point:
    """A model in a plot. label: "" for none. series: points of one series have a colour and a line. spread: of an interval around y."""

    x: float
    y: float
    label: str
    series: str
    spread: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot. log: the axis of y is logarithmic, and points at or below 0 are left out. level: a value with a line across, and its
    name."""

    title: str
    points: Sequence[Point]
    log: bool = False
    x_title: str = ""
    level: tuple[float, str] | None = None


def draw_panels(panels: Sequence[Panel], columns: int = 2) -> Image.Image:
    """Panels in rows of `columns`, as an RGB picture; a series has the same colour in all of them."""
    names = list(dict.fromkeys(point.series for panel in panels for point in panel.points))
    colors = {name: COLORS[index % len(COLORS)] for index, name in enumerate(names)}
    rows = [panels[start : start + columns] for start in range(0, len(panels), columns)]
    size = WIDTH * max(map(len, rows)), HEIGHT * len(rows)
    picture = Image.new("RGB", size, PAPER)
    for row, here in enumerate(rows):
        for column, panel in enumerate(here):
            drawn = Image.new("RGB", (WIDTH * SHARPER, HEIGHT * SHARPER), PAPER)
            _Plot(drawn, panel, colors).draw()
            picture.paste(drawn.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS), (column * WIDTH, row * HEIGHT))
    return picture


@dataclass(slots=True)
class _Scale:
    """Values to pixels. ticks: values with a line."""

    low: float
    high: float
    start: float
    end: float
    ticks: list[float]
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, at = (math.log10(v) for v in (self.low, self.high, value)) if self.log else (self.low, self.high, value)
        return self.start + (at - low) / (high - low) * (self.end - self.start)


def linear_scale(values: Sequence[float], start: float, end: float) -> _Scale:
    """An axis with round numbers around all values."""
    low, high = min(values), max(values)
    room = (high - low) or abs(high) * 0.2 or 1.0
    low, high = low - 0.06 * room, high + 0.06 * room
    step = 10.0 ** math.floor(math.log10((high - low) / 4))
    step *= next(factor for factor in (1, 2, 2.5, 5, 10) if (high - low) / (step * factor) <= 6)
    first = math.ceil(low / step)
    ticks = [k * step for k in range(first, math.floor(high / step) + 1)]
    return _Scale(low, high, start, end, ticks)


def log_scale(values: Sequence[float], start: float, end: float) -> _Scale:
    """A logarithmic axis around all values, with lines at 1, 2 and 5 of each power of ten, or at the powers alone where they are many."""
    low, high = min(values) / 1.4, max(values) * 1.4
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1.0, 2.0, 5.0) if len(powers) <= 4 else (1.0,)
    ticks = [step * 10.0**power for power in powers for step in steps]
    return _Scale(low, high, start, end, [tick for tick in ticks if low <= tick <= high], log=True)


@dataclass(slots=True)
class _Plot:
    """A panel as a picture. taken: where there is a dot or a label already."""

    picture: Image.Image
    panel: Panel
    colors: dict[str, Color]
    taken: list[Rectangle] = field(default_factory=list)
    pen: ImageDraw.ImageDraw = field(init=False)
    font: FreeTypeFont | PlainFont = field(init=False)

    def __post_init__(self) -> None:
        self.pen = ImageDraw.Draw(self.picture)
        self.font = ImageFont.load_default(13 * SHARPER)

    def draw(self) -> None:
        points = [point for point in self.panel.points if not self.panel.log or point.y > 0]
        self._text((LEFT, 14), self.panel.title, "la", INK, 17)
        if not points:
            self._text((LEFT, 60), "nothing to show", "la", INK)
            return
        ends = [end for point in points for end in point.spread or () if not self.panel.log or end > min(p.y for p in points) / 10]
        x = linear_scale([point.x for point in points], LEFT + 10, WIDTH - RIGHT - 10)
        make = log_scale if self.panel.log else linear_scale
        level = [self.panel.level[0]] if self.panel.level else []
        y = make([*(point.y for point in points), *ends, *level], HEIGHT - BOTTOM, TOP)
        self._axes(x, y)
        self._level(y)
        self._lines(points, x, y)
        places = {id(point): (x(point.x), y(point.y)) for point in points}
        self.taken += [(px - DOT, py - DOT, px + DOT, py + DOT) for px, py in places.values()]
        for point in points:
            self._dot(point, places[id(point)], y)
        for point in points:
            if point.label:
                self._label(point, places[id(point)])
        self._legend(points)

    def _axes(self, x: _Scale, y: _Scale) -> None:
        for tick in y.ticks:
            self._line((LEFT, y(tick)), (WIDTH - RIGHT, y(tick)), FAINT)
            self._text((LEFT - 8, y(tick)), _number(tick), "rm", INK)
        for tick in x.ticks:
            self._line((x(tick), HEIGHT - BOTTOM), (x(tick), HEIGHT - BOTTOM + 5), INK)
            self._text((x(tick), HEIGHT - BOTTOM + 9), f"{tick:g}", "ma", INK)
        self._line((LEFT, HEIGHT - BOTTOM), (WIDTH - RIGHT, HEIGHT - BOTTOM), INK)
        self._text(((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 26), self.panel.x_title, "ma", INK)

    def _level(self, y: _Scale) -> None:
        if self.panel.level is not None:
            value, name = self.panel.level
            for start in range(LEFT, WIDTH - RIGHT, 12):
                self._line((start, y(value)), (start + 6, y(value)), INK)
            self._text((WIDTH - RIGHT, y(value) - 3), name, "rd", INK)
            self.taken.append((WIDTH - RIGHT - 8.0 * len(name), y(value) - 18, WIDTH - RIGHT, y(value)))

    def _lines(self, points: Sequence[Point], x: _Scale, y: _Scale) -> None:
        """Points of a series in order of size."""
        for name, color in self.colors.items():
            own = sorted((point for point in points if point.series == name), key=lambda point: point.x)
            for a, b in pairwise(own):
                start, end = (x(a.x), y(a.y)), (x(b.x), y(b.y))
                self._line(start, end, color, 1.5)
                self.taken += _along(start, end)

    def _dot(self, point: Point, at: tuple[float, float], y: _Scale) -> None:
        color = self.colors[point.series]
        if point.spread is not None:
            low, high = (min(max(y(max(end, y.low)), TOP), HEIGHT - BOTTOM) for end in point.spread)
            self._line((at[0], low), (at[0], high), color, 1.2)
            self.taken += _along((at[0], low), (at[0], high))
            for end in (low, high):
                self._line((at[0] - 4, end), (at[0] + 4, end), color, 1.2)
        box = [SHARPER * v for v in (at[0] - DOT, at[1] - DOT, at[0] + DOT, at[1] + DOT)]
        self.pen.ellipse(box, fill=color, outline=PAPER, width=SHARPER)

    def _label(self, point: Point, at: tuple[float, float]) -> None:
        """The name where it covers nothing: beside the dot, above, below, further away."""
        width = self.pen.textlength(point.label, font=self.font) / SHARPER
        height = 15.0
        spots = [
            (dx, dy)
            for far in (9.0, 16.0, 26.0)
            for dx, dy in ((far, -7), (-far - width, -7), (-width / 2, -far - height), (-width / 2, far))
        ]
        spots += [(far, dy) for far in (9.0,) for dy in (-30, 16, -46, 32)]
        boxes = [(at[0] + dx, at[1] + dy, at[0] + dx + width, at[1] + dy + height) for dx, dy in spots]
        inside = [b for b in boxes if b[0] > LEFT and b[2] < WIDTH - 4 and b[1] > TOP - 20 and b[3] < HEIGHT - BOTTOM]
        free = [box for box in inside if not any(_overlap(box, other) for other in self.taken)]
        box = (free or inside or boxes)[0]
        self.taken.append(box)
        self._text((box[0], box[1]), point.label, "la", self.colors[point.series])

    def _legend(self, points: Sequence[Point]) -> None:
        """Names of the series above the plot, where there are several."""
        names = [name for name in self.colors if any(point.series == name for point in points)]
        at = float(LEFT)
        for name in names if len(names) > 1 else ():
            self.pen.ellipse([SHARPER * v for v in (at, 43, at + 9, 52)], fill=self.colors[name])
            self._text((at + 14, 40), name, "la", INK)
            at += 30 + self.pen.textlength(name, font=self.font) / SHARPER

    def _line(self, start: tuple[float, float], end: tuple[float, float], color: Color, width: float = 1.0) -> None:
        self.pen.line([tuple(SHARPER * v for v in start), tuple(SHARPER * v for v in end)], color, round(SHARPER * width))

    def _text(self, at: tuple[float, float], text: str, anchor: str, color: Color, size: int = 13) -> None:
        font = self.font if size == 13 else ImageFont.load_default(size * SHARPER)
        self.pen.text((SHARPER * at[0], SHARPER * at[1]), text, fill=color, font=font, anchor=anchor)


def _along(start: tuple[float, float], end: tuple[float, float]) -> list[Rectangle]:
    """A line as small rectangles."""
    count = 1 + int(math.dist(start, end) / 6)
    places = [[a + (b - a) * k / count for a, b in zip(start, end, strict=True)] for k in range(count + 1)]
    return [(px - 1, py - 1, px + 1, py + 1) for px, py in places]


def _number(value: float) -> str:
    """A number at an axis: 0.001, 1e-5."""
    return f"{value:g}".replace("e-0", "e-")


def _overlap(a: Rectangle, b: Rectangle) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
