"""Pages set in two columns, each with its own part of one table: put one below the other."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from pagelift.layout.lines import PageLayout, Segment, regroup
from pagelift.layout.query import Query
from pagelift.layout.table_headers import label_match


def unfold(pages: Sequence[PageLayout], queries: Sequence[Query]) -> list[PageLayout]:
    """The pages, with each that repeats the table's headings side by side, at different heights, taken apart at the gutter."""
    out: list[PageLayout] = []
    for page in pages:
        gutter = _gutter(page, queries)
        out += [page] if gutter is None else _take_apart(page, *gutter)
    return out


def _gutter(page: PageLayout, queries: Sequence[Query]) -> tuple[float, float] | None:
    """Where the right column begins and where both columns begin (x and top in points), None for pages of one column."""
    seen: dict[str, list[Segment]] = defaultdict(list)
    for seg in page.segments:
        if len(seg.tokens) <= 3 and not re.search(r"\d", seg.text) and any(label_match(q, seg.text) > 0.6 for q in queries):
            seen[seg.text.lower()].append(seg)
    pairs = []
    for same in seen.values():
        left = min(same, key=lambda s: s.box.x0)
        right = [s for s in same if s.box.x0 - left.box.x0 > 0.3 * page.width]
        if right:
            pairs.append((left, right))
    if len(pairs) < 2 or any(s.line == left.line for left, right in pairs for s in right):
        return None
    edge = max(left.box.x1 for left, _ in pairs)
    x = min(s.box.x0 for _, right in pairs for r in right for s in r.line_segments if s.box.x0 > edge) - 0.3 * page.unit
    top = min(s.box.top for left, right in pairs for s in (left, *right)) - 4 * page.unit
    crossing = [s for s in page.segments if s.box.top > top and s.box.x0 < x - page.unit < x + page.unit < s.box.x1]
    return (x, top) if len(crossing) <= 0.05 * len(page.segments) else None


def _take_apart(page: PageLayout, x: float, top: float) -> list[PageLayout]:
    tokens = [t for line in page.lines for t in line.tokens]
    above = [t for t in tokens if t.box.center_y < top]
    left = [t for t in tokens if t.box.center_y >= top and t.box.center_x < x]
    right = [t for t in tokens if t.box.center_y >= top and t.box.center_x >= x]
    return [regroup(page, part) for part in (above, left, right) if part]
