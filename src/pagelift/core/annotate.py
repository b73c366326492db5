"""Page pictures with a box around every value that was found.

Fields have a colour each. Entries of arrays have a colour per row; their names stand only at the first row of a page, and
every row has its number beside it, so that dense tables stay legible. Labels go where they cover no value and little ink.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pagelift.core.errors import EngineError
from pagelift.core.files import write_atomic
from pagelift.core.result import Extraction, Field

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFont import FreeTypeFont, ImageFont

Color = tuple[int, int, int]
Rectangle = tuple[float, float, float, float]

COLORS: tuple[Color, ...] = (
    (11, 110, 153), (196, 69, 54), (46, 125, 50), (123, 63, 160), (191, 111, 0),
    (0, 121, 107), (173, 20, 87), (63, 81, 181), (109, 76, 65), (84, 110, 20),
)  # fmt: skip
TINT = 0.16  # share of the colour in a box; the text below stays readable
LABEL_PT = 7
LABEL_CHARACTERS = 32


@dataclass(frozen=True, slots=True)
class Mark:
    """What is drawn for one field. tag: the row number beside it, for the first field of a row."""

    boxes: tuple[Rectangle, ...]
    color: Color
    label: str
    tag: str = ""


def annotate(extraction: Extraction, folder: Path | None = None, dpi: float = 110) -> list[Image]:
    """The pictures of `annotated_pages`; with `folder` also written there as <stem of the source>-page-<n>.png."""
    pictures = []
    stem = Path(extraction.source).stem.strip("<>") or "document"
    for number, picture in annotated_pages(extraction, dpi):
        pictures.append(picture)
        if folder is not None:
            write_atomic(folder / f"{stem}-page-{number}.png", as_png(picture))
    return pictures


def annotated_pages(extraction: Extraction, dpi: float = 110) -> Iterator[tuple[int, Image]]:
    """Number and RGB picture of every page that has a found field with a box, one after another.

    Raises EngineError when the result has no access to its document any more, DocumentError when a page cannot be drawn.
    """
    pictures = extraction.pictures
    if pictures is None:
        raise EngineError(f"{extraction.source or 'this result'}: it has no page pictures; extract from the document again")
    for number, fields in _found_by_page(extraction).items():
        picture = pictures.image(number, dpi)
        scale = picture.width / pictures.size_pt(number)[0]  # less than dpi / 72 where the page had to be drawn smaller
        yield number, draw(picture, marks(fields, scale), round(LABEL_PT * scale))


def as_png(picture: Image) -> bytes:
    content = io.BytesIO()
    picture.save(content, "png")
    return content.getvalue()


def _found_by_page(extraction: Extraction) -> dict[int, list[Field]]:
    pages: dict[int, list[Field]] = {}
    for evidence in extraction.fields.values():
        if evidence.status == "found" and evidence.page is not None and (evidence.box or evidence.boxes):
            pages.setdefault(evidence.page, []).append(evidence)
    return dict(sorted(pages.items()))


def marks(fields: Sequence[Field], scale: float) -> list[Mark]:
    """What to draw for the fields of one page. scale: pixels per point."""
    made = []
    named: set[tuple[str, str]] = set()  # (array, property) that has its label on this page
    rows: dict[str, Color] = {}
    for order, evidence in enumerate(fields):
        boxes = evidence.boxes or ((evidence.box,) if evidence.box else ())
        drawn = tuple((box.x0 * scale, box.top * scale, box.x1 * scale, box.bottom * scale) for box in boxes)
        row, name = _row_and_name(evidence.pointer)
        if not row:
            made.append(Mark(drawn, COLORS[order % len(COLORS)], name))
            continue
        array, _, index = row.rpartition("/")
        tag = str(int(index) + 1) if row not in rows else ""
        rows.setdefault(row, COLORS[int(index) % len(COLORS)])
        made.append(Mark(drawn, rows[row], "" if (array, name) in named else name, tag))
        named.add((array, name))
    return made


def _row_and_name(pointer: str) -> tuple[str, str]:
    """The pointer of the innermost array entry around a field, "" if there is none, and the field's name below it."""
    steps = pointer.split("/")[1:]
    last = max((k for k, step in enumerate(steps) if step.isdigit()), default=-1)
    row = "".join("/" + step for step in steps[: last + 1])
    inner = steps[last + 1 :] or steps[max(0, last - 1) : last]  # an array of scalars gives its entries its own name
    name = ".".join(step.replace("~1", "/").replace("~0", "~") for step in inner) or "value"
    return row, name if len(name) <= LABEL_CHARACTERS else name[: LABEL_CHARACTERS - 1] + "…"


def draw(picture: Image, page_marks: Sequence[Mark], label_px: int) -> Image:
    """Draw marks on a copy of an RGB picture. label_px: the height of label letters."""
    from PIL import Image as image_module
    from PIL import ImageDraw, ImageFont

    drawn = picture.copy()
    pad = max(2, label_px // 4)
    for mark in page_marks:
        for box in mark.boxes:
            x0, y0, x1, y1 = (round(v) for v in _grow(box, pad, drawn.size))
            if x1 <= x0 or y1 <= y0:
                continue
            area = drawn.crop((x0, y0, x1, y1))
            drawn.paste(image_module.blend(area, image_module.new("RGB", area.size, mark.color), TINT), (x0, y0))
            ImageDraw.Draw(drawn).rounded_rectangle((x0, y0, x1, y1), radius=pad, outline=mark.color, width=max(1, label_px // 7))
    placer = _Placer(picture, [_grow(box, pad, drawn.size) for mark in page_marks for box in mark.boxes])
    font = ImageFont.load_default(max(8, label_px))
    for mark in page_marks:
        for text, beside in ((mark.tag, True), (mark.label, False)):
            if text and mark.boxes:
                _draw_label(drawn, placer, _Label(text, mark.color, font, pad, beside), _grow(mark.boxes[0], pad, drawn.size))
    return drawn


def _grow(box: Rectangle, by: float, size: tuple[int, int]) -> Rectangle:
    return max(0.0, box[0] - by), max(0.0, box[1] - by), min(size[0] - 1.0, box[2] + by), min(size[1] - 1.0, box[3] + by)


@dataclass(frozen=True, slots=True)
class _Label:
    text: str
    color: Color
    font: FreeTypeFont | ImageFont
    pad: int
    beside: bool  # a row number, which belongs to the left


def _draw_label(drawn: Image, placer: _Placer, label: _Label, box: Rectangle) -> None:
    from PIL import ImageDraw

    pen = ImageDraw.Draw(drawn)
    left, top, right, bottom = pen.textbbox((0, 0), label.text, font=label.font)
    width, height = right - left + 2 * label.pad, bottom - top + label.pad + 2
    x, y = placer.place(box, width, height, label.beside)
    pen.rounded_rectangle((x, y, x + width, y + height), radius=label.pad, fill=label.color)
    pen.text((x + label.pad - left, y + (height - (bottom - top)) / 2 - top), label.text, fill=(255, 255, 255), font=label.font)


@dataclass(slots=True)
class _Placer:
    """Finds places for labels. page: the picture without marks. taken: areas of values and of labels placed before."""

    page: Image
    taken: list[Rectangle] = field(default_factory=list)

    def place(self, box: Rectangle, width: float, height: float, beside: bool) -> tuple[float, float]:
        """The upper left corner of a label for `box`, of the given size: near, on no value, over little ink."""
        x0, y0, x1, y1 = box
        middle = (y0 + y1 - height) / 2
        lines = ((x0, y0 - height), (x1 - width, y0 - height), (x0, y1 + 1), (x1 - width, y1 + 1))
        sides = ((x0 - width - 1, middle), (x1 + 2, middle))
        spots = (*sides, *lines) if beside else (*lines, *reversed(sides))
        fitted = [(max(0.0, min(x, self.page.width - width - 1)), max(0.0, min(y, self.page.height - height - 1))) for x, y in spots]
        costs = [self._cost((x, y, x + width, y + height)) + 0.02 * rank for rank, (x, y) in enumerate(fitted)]
        x, y = fitted[costs.index(min(costs))]
        self.taken.append((x, y, x + width, y + height))
        return x, y

    def _cost(self, area: Rectangle) -> float:
        covered = sum(_overlap(area, other) for other in self.taken)
        size = (area[2] - area[0]) * (area[3] - area[1])
        gray = self.page.crop(tuple(round(v) for v in area)).convert("L").histogram()  # type: ignore[arg-type]
        return 10 * covered / size + sum(gray[:150]) / max(1, sum(gray))


def _overlap(a: Rectangle, b: Rectangle) -> float:
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
