"""The bits of every matrix as a picture: a column for each block, a row for each role."""

from __future__ import annotations

from pathlib import Path

from PIL import Image, ImageDraw

from pagelift.core.errors import ConfigError
from pagelift.weights.quant.formats import Allocation, Module, Sizes

CELL_PX, LABEL_PX, MARGIN_PX = 22, 150, 12
COLOURS = {2: "#7f1d1d", 3: "#c2410c", 4: "#d99a06", 5: "#84a316", 6: "#2f9e63", 8: "#1d6fb8", 16: "#3b3f46"}
"""From few bits to many; 16 is what was not packed."""


def draw(sizes: Sizes, allocation: Allocation, path: Path) -> None:
    """Write the picture. Raises ConfigError when the file cannot be written or its ending is of no picture format."""
    rows = _rows(sizes)
    columns = 1 + max(column for cells in rows.values() for column in cells)
    size = (LABEL_PX + columns * CELL_PX + 2 * MARGIN_PX, (len(rows) + 2) * CELL_PX + 2 * MARGIN_PX)
    image = Image.new("RGB", size, "white")
    pen = ImageDraw.Draw(image)
    for k, (role, cells) in enumerate(rows.items()):
        top = MARGIN_PX + k * CELL_PX
        pen.text((MARGIN_PX, top + 5), role, fill="black")
        for column, module in cells.items():
            form = allocation.get(module.name)
            _cell(pen, (MARGIN_PX + LABEL_PX + column * CELL_PX, top), form.bits if form else 16)
    top = MARGIN_PX + (len(rows) + 1) * CELL_PX
    pen.text((MARGIN_PX, top + 5), "bits", fill="black")
    for k, bits in enumerate(COLOURS):
        if LABEL_PX + (k + 1) * CELL_PX < size[0]:
            _cell(pen, (MARGIN_PX + LABEL_PX + k * CELL_PX, top), bits)
    try:
        image.save(path)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: the picture cannot be written ({error}); choose a name such as bits.png") from error


def _rows(sizes: Sizes) -> dict[str, dict[int, Module]]:
    """Modules by role and block; those outside of blocks stand in the first column."""
    rows: dict[str, dict[int, Module]] = {}
    for module in sizes.modules:
        steps = module.name.split(".")
        block = int(steps[2]) if len(steps) > 2 and steps[2].isdigit() else 0
        place = "vision " if not module.is_text else ""
        rows.setdefault(f"{place}{'merger ' if 'merger' in steps else ''}{module.role}", {})[block] = module
    return rows


def _cell(pen: ImageDraw.ImageDraw, corner: tuple[int, int], bits: int) -> None:
    left, top = corner
    pen.rectangle((left, top, left + CELL_PX - 2, top + CELL_PX - 2), fill=COLOURS[bits])
    pen.text((left + (7 if bits < 10 else 4), top + 4), str(bits), fill="white")
