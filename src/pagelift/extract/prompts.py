"""What the model is asked, and the page pictures it is shown.

The model lift was trained and served with one wording and one size of pages (https://github.com/datalab-to/lift). The wording is
taken from the package `lift-pdf` where that is installed; else our own wording of the same content is used.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from pagelift.core import ConfigError, Json

if TYPE_CHECKING:
    from PIL.Image import Image

    from pagelift.extract.engines import ReadablePage

PLACE = "{schema}"
OWN_WORDING = """\
The pictures above are the pages of one document, in order. Extract from it the data that this JSON Schema describes.

## JSON Schema
```json
{schema}
```

## Rules
- Answer with one JSON object that matches the schema.
- Give every field the type that the schema states for it: string, number, array."""
MIN_DPI = 96.0
MAX_DPI = 2400.0
MIN_SIDE_PX = 692
BLOCK_PX = 28
MAX_AREA_PX = 1088 * 1408
MIN_AREA_PX = 1408 * 28


def extraction_prompt(schema: Json, template: str, notes: Sequence[str] = ()) -> str:
    """`template` with the schema as given, as JSON indented by two spaces, in the place of {schema}; notes become further lines.

    Names of special tokens in schema and notes are taken apart, so that no text can end its turn.
    """
    return "\n".join([template.replace(PLACE, harmless(json.dumps(schema, indent=2))), *map(harmless, notes)])


def harmless(text: str) -> str:
    """Text of a document or a schema, which must not turn into special tokens."""
    return text.replace("<|", "< |")


def part_notes(numbers: Sequence[int], page_count: int | None, after: Mapping[str, Sequence[Json]]) -> list[str]:
    """What a model is told when it is asked about a part: which pages these are, and behind which entries a list goes on.

    numbers: of the pages shown. page_count: of the document, None when all of it is shown. after: see `Question`.
    """
    notes = []
    if page_count is not None and numbers:
        notes.append(
            f"- These are pages {numbers[0]} to {numbers[-1]} of a longer document. Give only what these pages state, and null or an "
            "empty list for the rest."
        )
    for pointer, entries in after.items():
        known = json.dumps(entries, ensure_ascii=False)
        notes.append(
            f"- The first entries of the list {pointer} are known already, the last of them are {known}. Give only the ones behind."
        )
    return notes


def read_template(file: Path | None = None) -> tuple[str, str]:
    """The prompt's text with {schema} in it, and where it comes from: `file`, "lift-pdf" or "pagelift". Raises ConfigError."""
    if file is None:
        given = _lift_wording()
        return (given, "lift-pdf") if given else (OWN_WORDING, "pagelift")
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(f"the prompt {file} cannot be read: {error}") from error
    if PLACE not in text:
        raise ConfigError(f"the prompt {file} must contain {PLACE}, which stands for the JSON Schema")
    return text, str(file)


def page_picture(page: ReadablePage) -> Image:
    """The picture of a page as lift is shown it.

    PDF pages at 96 dpi or more, so that no side has less than 692 pixels; image files in their own pixels, enlarged to that. Then
    fitted, see `fit`.
    """
    from PIL import Image

    native_dpi: float | None = getattr(page, "native_dpi", None)
    picture = page.image(_dpi(page))
    if native_dpi and min(picture.size) < MIN_SIDE_PX:
        scale = MIN_SIDE_PX / min(picture.size)
        picture = picture.resize((int(picture.width * scale), int(picture.height * scale)), Image.Resampling.LANCZOS)
    size = fit(*picture.size)
    return picture if size == picture.size else picture.resize(size, Image.Resampling.LANCZOS)


def picture_size(page: ReadablePage) -> tuple[int, int]:
    """Width and height in pixels of `page_picture`, or nearly so, without drawing it."""
    content, dpi = page.content, _dpi(page)
    sides = [max(1.0, round(side * dpi / 72)) for side in (content.width_pt, content.height_pt)]
    grow = max(1.0, MIN_SIDE_PX / min(sides)) if getattr(page, "native_dpi", None) else 1.0
    return fit(*(int(side * grow) for side in sides))


def _dpi(page: ReadablePage) -> float:
    native: float | None = getattr(page, "native_dpi", None)
    short_pt = max(1.0, min(page.content.width_pt, page.content.height_pt))
    return min(MAX_DPI, native or max(MIN_DPI, 72 * MIN_SIDE_PX / short_pt))


def fit(width: int, height: int) -> tuple[int, int]:
    """The size in pixels that lift is shown a picture in: whole blocks of 28, area between 1408 x 28 and 1088 x 1408.

    Sides are scaled alike and rounded to blocks; while the area is still too large, the side that distorts less loses a block.
    """
    area = width * height
    scale = (max(MIN_AREA_PX, min(MAX_AREA_PX, area)) / area) ** 0.5
    columns, rows = (max(1, round(side * scale / BLOCK_PX)) for side in (width, height))
    shape = width / height
    while columns * rows * BLOCK_PX**2 > MAX_AREA_PX and (columns, rows) != (1, 1):
        narrower, lower = ((columns - 1, rows), (columns, rows - 1))
        if rows == 1 or (columns > 1 and abs(narrower[0] / narrower[1] - shape) < abs(lower[0] / lower[1] - shape)):
            columns, rows = narrower
        else:
            columns, rows = lower
    return columns * BLOCK_PX, rows * BLOCK_PX


def _lift_wording() -> str | None:
    """The wording of the installed package lift-pdf, if it is there and has one; other packages are called `lift` too."""
    try:
        metadata.version("lift-pdf")
        text = importlib.import_module("lift.prompts").PROMPT_MAPPING["direct"]
    except (metadata.PackageNotFoundError, ImportError, AttributeError, KeyError):
        return None
    return text if isinstance(text, str) and PLACE in text else None
