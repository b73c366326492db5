"""The sheet a document is set on: margins, type, colours, page breaks, and labels beside values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pagelift.core import Box
from pagelift.evals.synthetic.paint import GRAY, Align, Canvas, Look, wrap, wrapped
from pagelift.evals.synthetic.pdf import BLACK, Color
from pagelift.evals.synthetic.scene import Printed, Scene

Arrangement = Literal["left", "spread", "inline", "above", "columns", "grid", "leader"]
ACCENTS: tuple[Color, ...] = (
    (0.1, 0.25, 0.5), (0.55, 0.1, 0.12), (0.05, 0.4, 0.3), (0.2, 0.2, 0.2), (0.4, 0.2, 0.5), (0.75, 0.35, 0.05), BLACK,
)  # fmt: skip
SIZES = {"A4": (595.0, 842.0), "letter": (612.0, 792.0)}


class Fact(NamedTuple):
    """A value with its label. value None: the label stands there, but nothing is filled in."""

    tag: str
    label: str
    value: Printed | None


@dataclass(slots=True)
class Sheet:
    """A canvas with the style of a document and the place where drawing goes on. y: baseline of the next line.

    colon: what follows labels. bold: which part of a pair is bold. head: what the following pages start with.
    """

    canvas: Canvas
    scene: Scene
    look: Look
    accent: Color
    left: float
    right: float
    bottom: float
    colon: str
    bold: Literal["labels", "values", "neither"]
    y: float = 0.0
    head: str = ""

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def step(self) -> float:
        return self.look.leading

    @property
    def label_look(self) -> Look:
        return self.look.bold() if self.bold == "labels" else self.look

    @property
    def value_look(self) -> Look:
        return self.look.bold() if self.bold == "values" else self.look

    def fact(self, tag: str, value: Printed | None, concept: str = "") -> Fact:
        return Fact(tag, self.scene.label(concept or tag), value)

    def next_page(self) -> None:
        """Start a page; from the second on it begins with the head line."""
        self.canvas.new_page()
        self.y = 50.0
        if self.canvas.page and self.head:
            self.canvas.text(self.head, self.left, self.y, self.look.sized(0.9).colored(GRAY))
            self.y += 2 * self.step

    def text(self, text: str, x: float | None = None, look: Look | None = None, align: Align = "left") -> Box:
        """One line of text at `y`, which goes down by a line."""
        look = look or self.look
        box = self.canvas.text(text, self.left if x is None else x, self.y, look, align)
        self.y += look.leading
        return box

    def paragraph(self, text: str, width: float | None = None, look: Look | None = None) -> None:
        for line in wrap(text, width or self.width, look or self.look):
            self.text(line, look=look)

    def rule(self, y: float, weight: float = 0.6, color: Color | None = None) -> None:
        self.canvas.line((self.left, y), (self.right, y), weight, color or self.accent)

    def ensure(self, height: float) -> None:
        """Start a new page where less height is left."""
        if self.y + height > self.bottom:
            self.next_page()


def new_sheet(scene: Scene, size: tuple[float, float] | None = None) -> Sheet:
    """Draw the style of a document. size: width and height in points, by default the paper of the country."""
    rng = scene.rng
    width, height = size or SIZES["letter" if scene.locale.code == "en-US" else "A4"]
    look = Look(rng.choice(("Helvetica", "Helvetica", "Helvetica", "Times-Roman", "Times-Roman", "Courier")), 9.0)
    factor = {"Helvetica": 1.0, "Times-Roman": 1.1, "Courier": 0.92}[look.font]
    look = look.sized(factor * rng.uniform(0.9, 1.12))
    margin = rng.uniform(38, 68)
    sheet = Sheet(
        Canvas(width, height),
        scene,
        look,
        rng.choice(ACCENTS),
        margin,
        width - margin * rng.uniform(0.8, 1.0),
        height - 92,
        rng.choice((":", ":", ":", "", " :" if scene.locale.language == "fr" else ":")),
        rng.choice(("labels", "labels", "neither", "neither", "values")),
    )
    sheet.next_page()
    return sheet


def pairs(sheet: Sheet, facts: Sequence[Fact], area: tuple[float, float], y: float, arrangement: Arrangement) -> float:
    """Draw labels with their values. area: left end and width. Returns the next free baseline."""
    if not facts:
        return y
    if arrangement in ("columns", "grid"):
        return _beside_each_other(sheet, facts, area, y, boxed=arrangement == "grid")
    x, width = area
    labels, values = sheet.label_look, sheet.value_look
    offset = min(max(labels.width(fact.label + sheet.colon) for fact in facts) + sheet.look.size * 1.2, width * 0.62)
    for label_tag, label, value in facts:
        shown = label + (sheet.colon or (":" if arrangement == "inline" else ""))
        if arrangement == "above":
            sheet.canvas.text(label + sheet.colon, x, y, labels.sized(0.82).colored(GRAY))
            y += sheet.step
            y = _value(sheet, label_tag, value, (x, y, width), "left") + sheet.step * 0.45
            continue
        box = sheet.canvas.text(shown, x, y, labels)
        if arrangement == "inline":
            start = box.x1 + sheet.look.width(" ") * 1.5
            y = _value(sheet, label_tag, value, (start, y, x + width - start), "left")
        elif arrangement == "left":
            start = max(x + offset, box.x1 + sheet.look.size * 0.6)
            y = _value(sheet, label_tag, value, (start, y, x + width - start), "left")
        else:
            below = _value(sheet, label_tag, value, (x + width, y, x + width - box.x1 - sheet.look.size), "right")
            if arrangement == "leader" and value is not None:
                _leader(sheet, box.x1, x + width - values.width(value.lines[0]), y)
            y = below
        y += sheet.step * 0.12
    return y


def _value(sheet: Sheet, tag: str, value: Printed | None, at: tuple[float, float, float], align: Align) -> float:
    """A value in a given width, on further lines where it is too long. Returns the next baseline."""
    x, y, width = at
    if value is None:
        return y + sheet.step
    fitted = wrapped(value, max(width, 40.0), sheet.value_look)
    sheet.canvas.value(tag, fitted, (x, y), sheet.value_look, align)
    return y + sheet.step * len(fitted.lines)


def _leader(sheet: Sheet, start: float, end: float, y: float) -> None:
    dot = sheet.look.width(".") * 1.6
    count = int((end - start - sheet.look.size * 1.4) / dot)
    if count > 2:
        color = GRAY
        sheet.canvas.line((start + sheet.look.size * 0.7, y), (start + sheet.look.size * 0.7 + count * dot, y), 0.3, color)


def _beside_each_other(sheet: Sheet, facts: Sequence[Fact], area: tuple[float, float], y: float, boxed: bool) -> float:
    """Labels in a row with their values under them, in as many rows as needed; with boxes around each pair."""
    x, width = area
    labels = sheet.label_look.sized(0.85)
    pad = sheet.look.size * 0.55
    rest = list(facts)
    while rest:
        row = _fitting(sheet, rest, labels, width, pad)
        rest = rest[len(row) :]
        cell = width / len(row)
        lines = [wrapped(fact.value, cell - 2 * pad, sheet.value_look) if fact.value else None for fact in row]
        deepest = max((len(value.lines) for value in lines if value), default=1)
        height = labels.leading + sheet.step * deepest + (pad if boxed else 0)
        for index, (fact, value) in enumerate(zip(row, lines, strict=True)):
            at = x + index * cell + (pad if boxed else 0)
            if boxed:
                top = y - sheet.look.size - pad * 0.4
                sheet.canvas.rectangle(Box(x + index * cell, top, x + (index + 1) * cell, top + height + pad * 0.4), sheet.accent)
            sheet.canvas.text(fact.label, at, y, labels)
            if value is not None:
                sheet.canvas.value(fact.tag, value, (at, y + labels.leading * 1.05), sheet.value_look)
        y += height + (pad * 0.4 if boxed else sheet.step * 0.6)
    return y + (sheet.step * 0.8 if boxed else 0)


def _fitting(sheet: Sheet, facts: list[Fact], labels: Look, width: float, pad: float) -> list[Fact]:
    """As many of the first facts as fit beside each other, five at most."""
    for count in range(min(5, len(facts)), 1, -1):
        row = facts[:count]
        needed = max(
            max(labels.width(fact.label), sheet.value_look.width(max(fact.value.lines, key=len)) if fact.value else 0.0) for fact in row
        )
        if needed + 2.5 * pad <= width / count:
            return row
    return facts[:1]
