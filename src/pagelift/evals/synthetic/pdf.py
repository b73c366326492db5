"""A small PDF writer over the standard fonts; the same input gives the same bytes everywhere, so nothing is compressed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from pagelift.evals.synthetic.metrics import FONTS

Color = tuple[float, float, float]
"""Red, green, blue in [0, 1]."""
BLACK: Color = (0.0, 0.0, 0.0)
_ESCAPES = str.maketrans({"\\": r"\\", "(": r"\(", ")": r"\)"})


@dataclass(slots=True)
class PageWriter:
    """The content of one page. Coordinates are page points from the top left corner, as everywhere in pagelift.

    cut_pt: how much of the lower end of the page is cut off in the end.
    """

    width_pt: float
    height_pt: float
    cut_pt: float = 0.0
    content: list[str] = field(default_factory=list)

    def text(self, text: str, at: tuple[float, float], font: tuple[str, float], color: Color = BLACK) -> None:
        """Show a text. at: its start and its baseline. font: name and size in points."""
        x, y = at
        code = list(FONTS).index(font[0])
        string = text.translate(_ESCAPES)
        paint = _rgb(color, "rg")
        self.content.append(f"{paint}BT /F{code} {font[1]:.2f} Tf {x:.2f} {self.height_pt - y:.2f} Td ({string}) Tj ET")

    def line(self, start: tuple[float, float], end: tuple[float, float], width: float = 0.5, color: Color = BLACK) -> None:
        (x0, y0), (x1, y1) = start, end
        h = self.height_pt
        self.content.append(f"{_rgb(color, 'RG')}{width:.2f} w {x0:.2f} {h - y0:.2f} m {x1:.2f} {h - y1:.2f} l S")

    def rectangle(
        self, box: tuple[float, float, float, float], stroke: Color | None, fill: Color | None = None, width: float = 0.5
    ) -> None:
        """A rectangle, outlined, filled or both. box: x0, top, x1, bottom."""
        x0, top, x1, bottom = box
        paint = (_rgb(fill, "rg") if fill else "") + (f"{_rgb(stroke, 'RG')}{width:.2f} w " if stroke else "")
        operator = "B" if fill and stroke else "f" if fill else "S"
        self.content.append(f"{paint}{x0:.2f} {self.height_pt - bottom:.2f} {x1 - x0:.2f} {bottom - top:.2f} re {operator}")


@lru_cache(maxsize=256)
def _rgb(color: Color, operator: str) -> str:
    return " ".join(f"{part:.3g}" for part in color) + f" {operator} "


def write_pdf(pages: Sequence[PageWriter], title: str = "") -> bytes:
    """The file of these pages. title: Latin text for the document information."""
    fonts = {name: 3 + index for index, name in enumerate(FONTS)}
    first = 3 + len(fonts)
    resources = " ".join(f"/F{index} {number} 0 R" for index, number in enumerate(fonts.values()))
    kids = " ".join(f"{first + 2 * index} 0 R" for index in range(len(pages)))
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>"]
    objects += [_font_object(name) for name in fonts]
    for index, page in enumerate(pages):
        size = f"[0 {page.cut_pt:.2f} {page.width_pt:.2f} {page.height_pt:.2f}]"
        content = f"/Contents {first + 2 * index + 1} 0 R"
        objects.append(f"<< /Type /Page /Parent 2 0 R /MediaBox {size} /Resources << /Font << {resources} >> >> {content} >>")
        body = "\n".join(page.content)
        objects.append(f"<< /Length {len(body)} >>\nstream\n{body}\nendstream")  # one byte per character in WinAnsi
    objects.append(f"<< /Title ({title.translate(_ESCAPES)}) >>")
    return _assemble(objects)


def _assemble(objects: Sequence[str]) -> bytes:
    parts = ["%PDF-1.4\n"]
    position = len(parts[0])
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(position)
        parts.append(f"{number} 0 obj\n{body}\nendobj\n")
        position += len(parts[-1])
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    count = len(objects)
    parts.append(f"xref\n0 {count + 1}\n0000000000 65535 f \n{table}trailer\n<< /Size {count + 1} /Root 1 0 R /Info {count} 0 R >>\n")
    parts.append(f"startxref\n{position}\n%%EOF\n")
    return "".join(parts).encode("cp1252")


@lru_cache(maxsize=16)
def _font_object(name: str) -> str:
    widths = FONTS[name].widths
    characters = bytes(range(32, 256)).decode("cp1252", "replace")
    listed = " ".join(str(widths.get(character, 0)) for character in characters)
    return f"<< /Type /Font /Subtype /Type1 /BaseFont /{name} /Encoding /WinAnsiEncoding /FirstChar 32 /LastChar 255 /Widths [{listed}] >>"
