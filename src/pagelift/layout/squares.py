"""Check boxes that are drawn: small squares of ruling lines, crossed by a letter."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pagelift.core import Box
from pagelift.layout.lines import PageLayout, Token

_SIDE_PT = (5.0, 20.0)
_CROSS = re.compile(r"[xX✓✔✗✘×•v4l8n]")
"""Letters that cross a box: also those that a symbol font draws as a tick, a cross or a dot."""


def drawn_boxes(page: PageLayout) -> list[tuple[Box, Token | None]]:
    """Drawn squares with the letter that crosses each, None where it is open.

    Empty unless at least one square of the page is crossed by a letter: a cross of two strokes is not seen, so that open
    squares alone say nothing. Pages that are turned have none.
    """
    if page.turned:
        return []
    squares = _squares(page.content.rules)
    tokens = [t for line in page.lines for t in line.tokens if len(t.text) == 1 and _CROSS.fullmatch(t.text)]
    found = [(square, next((t for t in tokens if _inside(t.box, square)), None)) for square in squares]
    return found if any(token is not None for _, token in found) else []


def _squares(rules: Sequence[Box]) -> list[Box]:
    """Boxes of two level and two upright lines of one length. At most 400 lines of a page are looked at."""
    level = [r for r in rules if r.height < 2 and _SIDE_PT[0] <= r.width <= _SIDE_PT[1]][:400]
    upright = [r for r in rules if r.width < 2 and _SIDE_PT[0] <= r.height <= _SIDE_PT[1]][:400]
    found: list[Box] = []
    for top in level:
        side = top.width
        for bottom in level:
            if abs(bottom.x0 - top.x0) < 1 and abs(bottom.top - top.top - side) < 0.2 * side:
                box = Box(top.x0, top.top, top.x1, bottom.bottom)
                edges = [u for u in upright if abs(u.top - box.top) < 2 and abs(u.bottom - box.bottom) < 2]
                if any(abs(u.x0 - box.x0) < 2 for u in edges) and any(abs(u.x1 - box.x1) < 2 for u in edges):
                    found.append(box)
                break
    return found


def _inside(inner: Box, outer: Box) -> bool:
    return outer.x0 <= inner.center_x <= outer.x1 and outer.top <= inner.center_y <= outer.bottom
