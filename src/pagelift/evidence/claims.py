"""Places that a model names itself, and whether the words on the page bear them out.

Two ways of writing are read, both of the Qwen-VL family. With tokens, as in https://arxiv.org/abs/2409.12191:

    <|object_ref_start|>Total<|object_ref_end|><|box_start|>(100,200),(300,220)<|box_end|>
    <|quad_start|>(100,200),(300,200),(300,220),(100,220)<|quad_end|>

and as JSON objects with "bbox_2d" (or "quad_2d") and "label". Coordinates are thousandths of the picture's sides, or its pixels.
What a model claims is never evidence by itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pagelift.core import Box, Json, PageContent
from pagelift.evidence.places import PageIndex, Place

Units = Literal["thousandths", "pixels"]
Check = Literal["confirmed", "elsewhere", "not_printed", "no_text", "invalid"]
"""confirmed: the words in the box say the text. elsewhere: other words on the page say it. not_printed: none do. no_text: the model
gave no text to check. invalid: the coordinates are no box on a page."""
Point = tuple[float, float]
COVERED = 0.5
"""So much of the words that say a text must lie in the box."""
LARGEST = 25.0
"""A box of more than so many times the size of the words says nothing about where they are."""
_REFERENCE = re.compile(r"<\|object_ref_start\|>(.*?)<\|object_ref_end\|>|<\|(box|quad)_start\|>(.*?)<\|\2_end\|>", re.S)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_BOX_KEYS, _QUAD_KEYS = ("bbox_2d", "bbox", "box_2d"), ("quad_2d", "quad", "poly_2d")
_TEXT_KEYS = ("text_content", "text", "label", "value", "name")


@dataclass(frozen=True, slots=True)
class PictureSize:
    """How many pixels a page's picture had when the model saw it."""

    width_px: int
    height_px: int


@dataclass(frozen=True, slots=True)
class Claim:
    """A place that a model named, in page points. Never evidence: `check` says what the page's own words say about it.

    text: what is claimed to stand there. coordinates: as written. page: from 1, None when several pages were shown and none bears
    the claim out. quad: the corners where four were given. words: what stands in the box. printed: where the text really stands.
    overlap: intersection over union of the box and those words.
    """

    text: str
    coordinates: tuple[float, ...]
    page: int | None = None
    box: Box | None = None
    quad: tuple[Point, ...] = ()
    check: Check = "invalid"
    words: str = ""
    printed: Box | None = None
    overlap: float = 0.0

    def to_dict(self) -> dict[str, Json]:
        return {
            "text": self.text,
            "claimed_by": "model",
            "coordinates": list(self.coordinates),
            "page": self.page,
            "box": self.box.as_list() if self.box else None,
            "quad": [[round(x, 2), round(y, 2)] for x, y in self.quad] or None,
            "check": self.check,
            "words": self.words,
            "printed": self.printed.as_list() if self.printed else None,
            "overlap": round(self.overlap, 4),
        }


def read_claims(text: str) -> list[Claim]:
    """The places named in an answer, special tokens included, in order; not yet on a page. Text without any gives none."""
    return [*_by_tokens(text), *_by_json(text)]


def check_claims(
    claims: Sequence[Claim], pages: Sequence[PageContent], sizes: Sequence[PictureSize], units: Units = "thousandths"
) -> list[Claim]:
    """The claims in page coordinates, compared with the words of the pages. pages, sizes: of the pictures shown, in order."""
    shown = [(page, PageIndex(page), size) for page, size in zip(pages, sizes, strict=True)]
    return [_checked(claim, shown, units) for claim in claims]


def _by_tokens(text: str) -> Iterator[Claim]:
    named = ""
    for match in _REFERENCE.finditer(text):
        if match[1] is not None:
            named = " ".join(match[1].split())
        else:
            yield Claim(named, tuple(float(number) for number in _NUMBER.findall(match[3])))


def _by_json(text: str) -> Iterator[Claim]:
    """Objects anywhere in the text that name a box."""
    decoder, at = json.JSONDecoder(), 0
    while (at := min((k for k in (text.find("{", at), text.find("[", at)) if k >= 0), default=-1)) >= 0:
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
            continue
        yield from _in_json(value)


def _in_json(value: Json) -> Iterator[Claim]:
    if isinstance(value, list):
        for entry in value:
            yield from _in_json(entry)
    elif isinstance(value, dict):
        for key in (*_BOX_KEYS, *_QUAD_KEYS):
            numbers = _flat(value.get(key))
            if numbers:
                named = next((value[k] for k in _TEXT_KEYS if isinstance(value.get(k), str | int | float)), "")
                yield Claim(str(named), tuple(numbers))
        for inner in value.values():
            yield from _in_json(inner)


def _flat(value: Json) -> list[float]:
    """Numbers of [x0, y0, x1, y1] or [[x, y], ...]; none for anything else."""
    if not isinstance(value, list):
        return []
    flat = [n for entry in value for n in (entry if isinstance(entry, list) else [entry])]
    return [float(n) for n in flat] if all(isinstance(n, int | float) and not isinstance(n, bool) for n in flat) else []


Shown = tuple[PageContent, PageIndex, PictureSize]


def _checked(claim: Claim, shown: Sequence[Shown], units: Units) -> Claim:
    """The claim on the page that bears it out best."""
    placed = [found for page in shown if (found := _on_page(claim, page, units)) is not None]
    if not placed:
        return claim
    order = ("confirmed", "elsewhere", "no_text", "not_printed", "invalid")
    best = min(placed, key=lambda c: (order.index(c.check), -c.overlap))
    if len(shown) > 1 and best.check != "confirmed":
        return replace(best, page=None, box=None, quad=(), words="", printed=None, overlap=0.0)  # nobody knows which page was meant
    return best


def _on_page(claim: Claim, shown: Shown, units: Units) -> Claim | None:
    page, index, size = shown
    width, height = (1000.0, 1000.0) if units == "thousandths" else (size.width_px, size.height_px)
    numbers = claim.coordinates
    if len(numbers) not in (4, 8):
        return None
    corners = [
        (_within(x * page.width_pt / width, page.width_pt), _within(y * page.height_pt / height, page.height_pt))
        for x, y in zip(numbers[::2], numbers[1::2], strict=True)
    ]
    xs, ys = [x for x, _ in corners], [y for _, y in corners]
    box = Box(min(xs), min(ys), max(xs), max(ys))
    if box.width <= 0 or box.height <= 0:
        return None
    words = " ".join(word.text for line in index.lines for word in line if _share(word.box, box) > COVERED)
    found = replace(claim, page=page.number, box=box, quad=tuple(corners) if len(numbers) == 8 else (), words=words)
    if not claim.text.strip():
        return replace(found, check="no_text")
    places = [place for value in _meanings(claim.text) for place in index.places(value)]
    if not places:
        return replace(found, check="not_printed")
    best = max(places, key=lambda place: (_bears_out(box, place), _overlap(box, place.box)))
    return replace(
        found, check="confirmed" if _bears_out(box, best) else "elsewhere", printed=best.box, overlap=round(_overlap(box, best.box), 4)
    )


def _meanings(text: str) -> Iterator[Json]:
    """A text as it is, and as the number that it may be."""
    yield text
    if re.fullmatch(r"-?\d+(?:\.\d+)?", text.strip()):
        yield float(text) if "." in text else int(text)


def _within(value: float, most: float) -> float:
    return max(0.0, min(value, most))


def _bears_out(box: Box, place: Place) -> bool:
    area = place.box.width * place.box.height
    return _share(place.box, box) >= COVERED and box.width * box.height <= LARGEST * max(area, 1e-6)


def _share(inner: Box, outer: Box) -> float:
    """How much of `inner` lies in `outer`."""
    area = inner.width * inner.height
    return _common(inner, outer) / area if area > 0 else 0.0


def _overlap(first: Box, second: Box) -> float:
    common = _common(first, second)
    total = first.width * first.height + second.width * second.height - common
    return common / total if total > 0 else 0.0


def _common(first: Box, second: Box) -> float:
    return max(0.0, first.overlap_x(second)) * max(0.0, first.overlap_y(second))
