"""Boxes on page pictures: where they are drawn, and that labels hide no value."""

from pathlib import Path

import pytest
from PIL import Image

from pagelift import Box, EngineError, Extraction, Field
from pagelift.core.annotate import COLORS, annotate, annotated_pages, marks


class Sheets:
    """White pages of 200 x 100 points; `shrink` draws them smaller than asked for."""

    def __init__(self, shrink: float = 1) -> None:
        self.shrink = shrink

    def image(self, page: int, dpi: float) -> Image.Image:  # noqa: ARG002
        return Image.new("RGB", (round(200 * dpi / 72 * self.shrink), round(100 * dpi / 72 * self.shrink)), "white")

    def size_pt(self, page: int) -> tuple[float, float]:  # noqa: ARG002
        return 200, 100


def found(pointer: str, box: Box | None, page: int = 1, status: str = "found") -> Field:
    return Field(pointer, "v", status, "v", page, box, (), 0.9)  # type: ignore[arg-type]


def result(*fields: Field, pictures: Sheets | None = None) -> Extraction:
    return Extraction({}, {f.pointer: f for f in fields}, "test", source="in/paper.v2.pdf", pictures=pictures or Sheets())


BOX = Box(80, 40, 120, 50)


@pytest.mark.parametrize("shrink", [1, 0.5])
def test_the_box_lies_around_the_value_at_any_picture_size(shrink: float) -> None:
    ((number, picture),) = annotated_pages(result(found("/a", BOX, page=3), pictures=Sheets(shrink)), dpi=144)
    scale = 2 * shrink
    assert number == 3
    inside = picture.getpixel((round(100 * scale), round(45 * scale)))
    assert inside != (255, 255, 255)
    assert all(channel > 150 for channel in inside)  # tinted, and what is printed there stays readable
    assert picture.getpixel((round(70 * scale), round(45 * scale))) == (255, 255, 255)
    assert COLORS[0] in {picture.getpixel((round(100 * scale), y)) for y in range(round(33 * scale), round(40 * scale) + 1)}


def test_only_found_values_with_a_box_are_drawn() -> None:
    fields = (found("/a", None), found("/b", BOX, status="absent"), found("/c", BOX, status="unreadable"))
    assert annotate(result(*fields)) == []


def test_labels_cover_no_other_value() -> None:
    rows = [found(f"/f{k}", Box(80, 10 + 9 * k, 120, 17 + 9 * k)) for k in range(8)]
    ((_, picture),) = annotated_pages(result(*rows), dpi=144)
    for k in range(8):
        area = picture.crop((162, round(2 * (11 + 9 * k)), 238, round(2 * (16 + 9 * k))))
        assert len(area.getcolors()) == 1, f"something is drawn over value {k}"


def test_rows_of_an_array_share_a_colour_and_names_stand_once() -> None:
    fields = [found(f"/rows/{k}/{name}", BOX) for k in range(3) for name in ("a~1b", "c")] + [found("/tags/0", BOX), found("/x/y", BOX)]
    made = marks(fields, 1.0)
    assert [m.label for m in made] == ["a/b", "c", "", "", "", "", "tags", "x.y"]
    assert [m.tag for m in made] == ["1", "", "2", "", "3", "", "1", ""]
    assert made[0].color == made[1].color != made[2].color


def test_hostile_boxes_and_names_do_no_harm() -> None:
    odd = (Box(-50, -50, -10, -10), Box(190, 90, 900, 900), Box(0, 0, 200, 100), Box(50, 50, 50, 50), Box(60, 60, 40, 40))
    fields = [found(f"/{'名前' * 40}{k}", box) for k, box in enumerate(odd)] + [found("", BOX)]
    ((_, picture),) = annotated_pages(result(*fields))
    assert picture.size == Sheets().image(1, 110).size


def test_files_are_named_after_the_source(tmp_path: Path) -> None:
    pictures = annotate(result(found("/a", BOX), found("/b", BOX, page=12)), tmp_path / "new" / "folder")
    assert len(pictures) == 2
    assert sorted(p.name for p in (tmp_path / "new" / "folder").iterdir()) == ["paper.v2-page-1.png", "paper.v2-page-12.png"]


def test_a_result_without_its_document_says_so() -> None:
    with pytest.raises(EngineError, match="no page pictures"):
        annotate(Extraction({}, {"/a": found("/a", BOX)}, "test"))
