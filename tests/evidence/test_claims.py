"""Places that models name: read in the ways they are written, put on the page, and checked against its words."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagelift.core import Box, PageContent, Word
from pagelift.evidence.claims import Claim, PictureSize, check_claims, read_claims

PAGE = PageContent(
    1, 500, 1000, (Word("Total", Box(50, 100, 90, 112)), Word("1.234,50", Box(400, 100, 450, 112)), Word("EUR", Box(455, 100, 480, 112)))
)
OTHER = PageContent(2, 500, 1000, (Word("Thanks", Box(50, 500, 100, 512)),))
SIZE = PictureSize(250, 500)


def token_box(text: str, *numbers: int) -> str:
    pairs = ",".join(f"({x},{y})" for x, y in zip(numbers[::2], numbers[1::2], strict=True))
    kind = "box" if len(numbers) == 4 else "quad"
    return f"<|object_ref_start|>{text}<|object_ref_end|><|{kind}_start|>{pairs}<|{kind}_end|>"


def checked(answer: str, units: str = "thousandths", pages: tuple[PageContent, ...] = (PAGE,)) -> list[Claim]:
    return check_claims(read_claims(answer), pages, [SIZE] * len(pages), units)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "answer",
    [
        "It is " + token_box("Total", 100, 100, 180, 112) + ", I think.",
        token_box("Total", 100, 100, 180, 100, 180, 112, 100, 112),
        '```json\n[{"bbox_2d": [100, 100, 180, 112], "label": "Total"}]\n```',
        'Here: {"items": [{"quad_2d": [[100, 100], [180, 100], [180, 112], [100, 112]], "text_content": "total"}]} done',
    ],
)
def test_ways_of_writing(answer: str) -> None:
    (claim,) = checked(answer)
    assert (claim.check, claim.page, claim.words) == ("confirmed", 1, "Total")
    assert claim.box == Box(50, 100, 90, 112)
    assert claim.overlap == 1.0
    assert claim.to_dict()["claimed_by"] == "model"


def test_pixels_of_the_picture_that_was_shown() -> None:
    (claim,) = checked(token_box("Total", 25, 50, 45, 56), "pixels")
    assert claim.box == Box(50, 100, 90, 112)
    assert claim.check == "confirmed"


@pytest.mark.parametrize(
    ("text", "numbers", "check"),
    [
        ("1234.50", (790, 95, 910, 120), "confirmed"),  # another format, and a little room around it
        ("Total", (790, 95, 910, 120), "elsewhere"),
        ("Invoice", (100, 100, 180, 112), "not_printed"),
        ("", (100, 100, 180, 112), "no_text"),
        ("Total", (0, 0, 1000, 1000), "elsewhere"),  # the whole page is no place
        ("Total", (100, 100, 100, 112), "invalid"),
        ("Total", (100, 100), "invalid"),
        ("Total", (1100, 100, 1200, 112), "invalid"),
    ],
)
def test_claims_are_checked_against_the_words(text: str, numbers: tuple[int, ...], check: str) -> None:
    named = f"<|object_ref_start|>{text}<|object_ref_end|>"
    (claim,) = checked(token_box(text, *numbers) if len(numbers) != 2 else named + "<|box_start|>(1,2)<|box_end|>")
    assert claim.check == check
    assert (claim.box is None) == (check == "invalid")
    assert (claim.printed is not None) == (check in ("confirmed", "elsewhere"))


def test_of_several_pages_the_one_that_bears_the_claim_out() -> None:
    boxes = (("Total", 100, 100, 180, 112), ("Thanks", 100, 500, 200, 512), ("Total", 500, 500, 600, 600))
    first, second, third = checked("".join(token_box(*box) for box in boxes), pages=(PAGE, OTHER))
    assert (first.page, second.page) == (1, 2)
    assert (third.page, third.box, third.check) == (None, None, "elsewhere")


def test_boxes_without_names_and_several_for_one() -> None:
    box = "<|box_start|>(100,100),(180,112)<|box_end|>"
    unnamed, named, again = read_claims(box + token_box("Total", 1, 2, 3, 4) + box)
    assert (unnamed.text, named.text, again.text) == ("", "Total", "Total")


PARTS = st.sampled_from(["<|box_start|>", "<|box_end|>", "(1,2)", "{", '"bbox_2d": [1, 2, 3, 4]', "}", "[", "]"])


@given(st.text() | st.lists(PARTS).map("".join))
def test_any_text_can_be_read(text: str) -> None:
    for claim in checked(text):
        json.dumps(claim.to_dict())
        assert claim.box is None or 0 <= claim.box.x0 < claim.box.x1 <= 500


@given(st.integers(0, 900), st.integers(0, 900), st.integers(1, 100), st.integers(1, 100), st.sampled_from(["Total", "x"]))
def test_boxes_are_on_the_page_and_confirmed_only_over_the_words(x: int, y: int, w: int, h: int, text: str) -> None:
    (claim,) = checked(token_box(text, x, y, x + w, y + h))
    assert claim.box == Box(x / 2, y, (x + w) / 2, y + h)
    if claim.check == "confirmed":
        assert "Total" in claim.words
