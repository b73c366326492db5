"""A canvas of several pages that writes the PDF and remembers every word with its box and every value with its place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from pagelift.core import Box, PageContent, Word, union
from pagelift.evals.synthetic.metrics import BOLD, FONTS, text_width
from pagelift.evals.synthetic.pdf import BLACK, Color, PageWriter, write_pdf
from pagelift.evals.synthetic.scene import Printed

Align = Literal["left", "right", "center"]
GRAY: Color = (0.4, 0.4, 0.4)
PALE: Color = (0.92, 0.92, 0.92)
WHITE: Color = (1.0, 1.0, 1.0)


class Place(NamedTuple):
    """Where a value is printed. page: from 1. box: around all its words. raw: the words, separated by spaces."""

    page: int
    box: Box
    raw: str


@dataclass(frozen=True, slots=True)
class Look:
    """Font, size in points and colour of a text."""

    font: str
    size: float
    color: Color = BLACK

    @property
    def leading(self) -> float:
        return self.size * 1.28

    def bold(self) -> Look:
        return Look(BOLD.get(self.font, self.font), self.size, self.color)

    def sized(self, factor: float) -> Look:
        return Look(self.font, round(self.size * factor, 2), self.color)

    def colored(self, color: Color) -> Look:
        return Look(self.font, self.size, color)

    def width(self, text: str) -> float:
        return text_width(text, self.font, self.size)


@dataclass(slots=True)
class Canvas:
    """Pages being drawn. Coordinates are page points from the top left; y of a text is its baseline.

    places: of values, by tag, the first print of each.
    """

    width_pt: float
    height_pt: float
    writers: list[PageWriter] = field(default_factory=list)
    words: list[list[Word]] = field(default_factory=list)
    rules: list[list[Box]] = field(default_factory=list)
    places: dict[str, Place] = field(default_factory=dict)
    values: dict[str, Printed] = field(default_factory=dict)
    page: int = -1

    def new_page(self) -> None:
        self.writers.append(PageWriter(self.width_pt, self.height_pt))
        self.words.append([])
        self.rules.append([])
        self.page = len(self.writers) - 1

    def text(self, text: str, x: float, y: float, look: Look, align: Align = "left") -> Box:
        """Draw one line of text; with `align` x is its right end or its middle. Returns the box around its words."""
        width = look.width(text)
        if align != "left":
            x -= width if align == "right" else width / 2
        self.writers[self.page].text(text, (x, y), (look.font, look.size), look.color)
        font = FONTS[look.font]
        top, bottom = y - font.ascent * look.size, y + font.descent * look.size
        space = look.width(" ")
        at = x
        words = self.words[self.page]
        for part in text.split(" "):
            if part:
                end = at + look.width(part)
                words.append(Word(part, Box(at, top, end, bottom), bold=font.bold, size_pt=look.size))
                at = end
            at += space
        return Box(x, top, x + width, bottom)

    def value(self, tag: str, value: Printed, at: tuple[float, float], look: Look, align: Align = "left") -> Box:
        """Draw a value, one line of it under the other, and remember its place. at: x and the first baseline."""
        x, y = at
        boxes = [self.text(line, x, y + index * look.leading, look, align) for index, line in enumerate(value.lines)]
        box = union(boxes)
        self.mark(tag, value, box)
        return box

    def mark(self, tag: str, value: Printed, box: Box, raw: str | None = None) -> None:
        """Remember that a value is printed in a box of the current page. raw: how, if not as its text."""
        if tag and tag not in self.places:
            self.places[tag] = Place(self.page + 1, box, value.text if raw is None else raw)
            self.values[tag] = value

    def line(self, start: tuple[float, float], end: tuple[float, float], width: float = 0.5, color: Color = BLACK) -> None:
        """A straight line, across or down."""
        self.writers[self.page].line(start, end, width, color)
        half = width / 2
        (x0, y0), (x1, y1) = start, end
        across = abs(x1 - x0) >= abs(y1 - y0)
        grow_x, grow_y = (0.0, half) if across else (half, 0.0)
        self.rules[self.page].append(Box(x0 - grow_x, y0 - grow_y, x1 + grow_x, y1 + grow_y))

    def rectangle(self, box: Box, stroke: Color | None = BLACK, fill: Color | None = None, width: float = 0.5) -> None:
        """A rectangle; its edges count as rules."""
        self.writers[self.page].rectangle((box.x0, box.top, box.x1, box.bottom), stroke, fill, width)
        if stroke is not None or (fill is not None and min(fill) < 0.98):
            x0, top, x1, bottom = box.x0, box.top, box.x1, box.bottom
            edges = ((x0, top, x1, top), (x0, bottom, x1, bottom), (x0, top, x0, bottom), (x1, top, x1, bottom))
            self.rules[self.page].extend(Box(a, b, c, d) for a, b, c, d in edges)

    def cut(self, height: float) -> None:
        """Make the only page shorter."""
        self.writers[0].cut_pt = round(self.writers[0].height_pt - height, 2)
        self.height_pt = self.writers[0].height_pt - self.writers[0].cut_pt

    def contents(self) -> list[PageContent]:
        return [
            PageContent(number, self.width_pt, self.height_pt, tuple(words), rules=tuple(rules))
            for number, (words, rules) in enumerate(zip(self.words, self.rules, strict=True), 1)
        ]

    def pdf(self, title: str) -> bytes:
        return write_pdf(self.writers, title)


def wrap(text: str, width: float, look: Look) -> tuple[str, ...]:
    """A text in lines that fit into a width; a word that is wider stands alone."""
    if look.width(text) <= width:
        return (text,)
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if line and look.width(longer) > width:
            lines.append(line)
            line = word
        else:
            line = longer
    return (*lines, line)


def wrapped(value: Printed, width: float, look: Look) -> Printed:
    """A value with lines that fit into a width."""
    lines = tuple(part for line in value.lines for part in wrap(line, width, look))
    return value if lines == value.lines else Printed(value.data, lines)
