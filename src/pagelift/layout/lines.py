"""Words to lines and segments: the reading structure of one page.

A line is a row of words at one height. A segment is a run of words on a line without a wide gap or a ruling line
between them: a table cell, a label, a phrase. Pages whose text runs sideways are analysed in turned coordinates;
tokens keep their word, so evidence boxes stay those of the page as shown.
"""

from __future__ import annotations

import itertools
import re
import statistics
import unicodedata
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field

from pagelift.core import Box, PageContent, Word, union
from pagelift.evidence import drop_footnote_marks

WIDE_GAP = 0.85
"""A gap of this share of the line height separates two segments."""


@dataclass(slots=True, eq=False)
class Token:
    """A word in analysis coordinates. text: NFKC. order: place in the text layer or the OCR result."""

    text: str
    box: Box
    word: Word
    order: int = 0

    @property
    def height(self) -> float:
        return self.box.bottom - self.box.top


@dataclass(slots=True, eq=False)
class Segment:
    """tokens: left to right. line: index of the line on the page. index: position in the line. above, below: the nearest
    segments that share horizontal space, nearest first (at most three above, one below). labels: what `collect_labels` found."""

    tokens: list[Token]
    box: Box
    page: PageLayout
    line: int = 0
    index: int = 0
    id: int = 0
    text: str = ""
    height: float = 0.0
    bold: float = 0.0
    above: list[Segment] = field(default_factory=list)
    below: list[Segment] = field(default_factory=list)
    labels: dict[tuple[int, int, str, bool, bool], list[tuple[str, float, str]]] = field(default_factory=dict)

    @property
    def line_segments(self) -> list[Segment]:
        return self.page.lines[self.line].segments


@dataclass(slots=True, eq=False)
class Line:
    segments: list[Segment]
    box: Box
    text: str

    @property
    def tokens(self) -> list[Token]:
        return [t for s in self.segments for t in s.tokens]


@dataclass(slots=True, eq=False)
class PageLayout:
    """One page as lines and segments. width, height, unit (median word height) in points of the analysis coordinates;
    turned: these are not those of the page as shown."""

    content: PageContent
    width: float
    height: float
    unit: float
    turned: bool = False
    lines: list[Line] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)

    @property
    def number(self) -> int:
        return self.content.number


def analyse_page(content: PageContent) -> PageLayout:
    """Group the words of a page. Words that run across the reading direction (margin notes) are left out."""
    tokens, turn = _upright(content)
    rules = [turn(r) for r in content.rules] if turn else content.rules
    sheet = Box(0, 0, content.width_pt, content.height_pt)
    sheet = turn(sheet) if turn else sheet
    heights = sorted(t.height for t in tokens)
    unit = max(heights[len(heights) // 2], 0.5) if heights else 10.0
    page = PageLayout(content, max(sheet.width, 1.0), max(sheet.height, 1.0), unit, turned=turn is not None)
    verticals = sorted((r for r in rules if r.height > 2 * r.width and r.height > 0.6 * page.unit), key=lambda r: r.x0)
    for row in _rows(tokens):
        _add_line(page, row, verticals)
    _link_neighbours(page)
    return page


Turn = Callable[[Box], Box]


def _upright(content: PageContent) -> tuple[list[Token], Turn | None]:
    """The words as they are read, and how boxes are turned for it; None for a page that is upright as it is."""
    words = [w for w in content.words if w.text.strip()]
    sideways = [w for w in words if len(w.text) >= 3 and w.box.height > 1.5 * w.box.width]
    judged = sum(len(w.text) >= 3 for w in words)
    turn: Turn | None = None
    if len(sideways) > 0.6 * judged and len(sideways) >= 3:
        turn = _quarter_turn(content, sideways)
        lying = set[int]()
    else:
        lying = set(map(id, sideways))
        if _upside_down([w for w in words if id(w) not in lying]):
            turn = _half_turn(content.width_pt, content.height_pt)
    return [Token(_plain_text(w.text), turn(w.box) if turn else w.box, w, i) for i, w in enumerate(words) if id(w) not in lying], turn


def _half_turn(width: float, height: float) -> Turn:
    return lambda b: Box(width - b.x1, height - b.bottom, width - b.x0, height - b.top)


def _quarter_turn(content: PageContent, sideways: list[Word]) -> Turn:
    """How a page whose text runs up or down is turned; its width and height change places."""
    steps = [b.box.center_y - a.box.center_y for a, b in itertools.pairwise(sideways) if abs(a.box.center_x - b.box.center_x) < a.box.width]
    width, height = content.height_pt, content.width_pt
    if not steps or statistics.median(steps) < 0:
        return lambda b: Box(width - b.bottom, b.x0, width - b.top, b.x1)
    return lambda b: Box(b.top, height - b.x1, b.bottom, height - b.x0)


def _upside_down(words: list[Word]) -> bool:
    """Whether neighbouring words of most lines go from right to left, each a short gap before the last."""
    steps = []
    for a, b in itertools.pairwise(words):
        if a.box.overlap_y(b.box) > 0.5 * min(a.box.height, b.box.height):
            gap_right, gap_left = b.box.x0 - a.box.x1, a.box.x0 - b.box.x1
            if 0 < max(gap_right, gap_left) < a.box.height:
                steps.append(gap_left > gap_right)
    return len(steps) >= 5 and sum(steps) > 0.8 * len(steps)


def _plain_text(text: str) -> str:
    """NFKC, without the footnote marks behind digits that it would turn into digits ("12.50²")."""
    return unicodedata.normalize("NFKC", drop_footnote_marks(text))


def _rows(tokens: list[Token]) -> list[list[Token]]:
    """Tokens that stand at one height, rows from top to bottom, tokens from left to right."""
    rows: list[tuple[float, float, list[Token]]] = []
    for token in sorted(tokens, key=lambda t: t.box.top + t.box.bottom):
        center, height = token.box.center_y, token.height
        for i in range(len(rows) - 1, max(-1, len(rows) - 7), -1):
            row_center, row_height, row = rows[i]
            if abs(row_center - center) < 0.45 * min(max(height, row_height), 1.8 * min(height, row_height)):
                row.append(token)
                rows[i] = (row_center + (center - row_center) / len(row), row_height, row)
                break
        else:
            rows.append((center, height, [token]))
    rows.sort(key=lambda r: r[0])
    return [_reading_order(row) for _, _, row in rows]


def _reading_order(row: list[Token]) -> list[Token]:
    """Left to right; where two texts are printed over each other, each is kept together as the file has it."""
    row = sorted(row, key=lambda t: t.box.x0)
    if all(a.box.x1 <= b.box.x0 + 0.5 * b.height for a, b in itertools.pairwise(row)):
        return row
    chains: list[list[Token]] = []
    for token in sorted(row, key=lambda t: t.order):
        gap = token.box.x0 - chains[-1][-1].box.x1 if chains else 0.0
        if chains and -0.3 * token.height < gap < WIDE_GAP * token.height:
            chains[-1].append(token)
        else:
            chains.append([token])
    return [t for chain in sorted(chains, key=lambda c: c[0].box.x0) for t in chain]


def _add_line(page: PageLayout, row: list[Token], verticals: list[Box]) -> None:
    box = union(t.box for t in row)
    starts = [r.x0 for r in verticals]
    segments: list[list[Token]] = []
    for token in row:
        if segments:
            last = segments[-1][-1]
            gap = token.box.x0 - last.box.x1
            limit = WIDE_GAP * min(page.unit * 1.6, max(token.height, page.unit * 0.6))
            if -0.5 * page.unit < gap < limit and not (gap > -1 and _ruled(verticals, starts, last.box, token.box)):
                segments[-1].append(token)
                continue
        segments.append([token])
    line = Line([], box, " ".join(t.text for t in row))
    for tokens in segments:
        seg = Segment(tokens, union(t.box for t in tokens), page, len(page.lines), len(line.segments), len(page.segments))
        seg.text = " ".join(t.text for t in tokens)
        seg.height = sorted(t.height for t in tokens)[len(tokens) // 2]
        seg.bold = sum(t.word.bold for t in tokens) / len(tokens)
        line.segments.append(seg)
        page.segments.append(seg)
    page.lines.append(line)


def _ruled(verticals: list[Box], starts: list[float], left: Box, right: Box) -> bool:
    """Whether a vertical ruling line stands between two neighbouring words."""
    i = bisect_left(starts, left.x1 - 1.0)
    while i < len(verticals) and verticals[i].x0 <= right.x0 + 1.0:
        if verticals[i].top <= left.center_y <= verticals[i].bottom:
            return True
        i += 1
    return False


def _link_neighbours(page: PageLayout) -> None:
    """Set above and below of every segment; plain arithmetic, since this is the innermost loop of a page."""
    edges = [(s.box.x0, s.box.x1, s.box.top, s.box.bottom, s.line) for s in page.segments]
    for k, (x0, x1, top, bottom, line) in enumerate(edges):
        seg = page.segments[k]
        for i in range(k - 1, -1, -1):
            other_x0, other_x1, _, other_bottom, other_line = edges[i]
            if other_line == line:
                continue
            if top - other_bottom > 12 * page.unit:
                break
            if min(x1, other_x1) - max(x0, other_x0) > 0.25 * min(x1 - x0, other_x1 - other_x0):
                seg.above.append(page.segments[i])
                if len(seg.above) == 3:
                    break
        for i in range(k + 1, len(edges)):
            other_x0, other_x1, other_top, _, other_line = edges[i]
            if other_line == line:
                continue
            if other_top - bottom > 4 * page.unit:
                break
            if min(x1, other_x1) - max(x0, other_x0) > 0.25 * min(x1 - x0, other_x1 - other_x0):
                seg.below.append(page.segments[i])
                break


def regroup(page: PageLayout, tokens: list[Token]) -> PageLayout:
    """The layout of some of a page's words, as if the others were not there; the tokens stay the same objects."""
    part = PageLayout(page.content, page.width, page.height, page.unit)
    for row in _rows(tokens):
        _add_line(part, row, [])
    _link_neighbours(part)
    return part


def block_below(seg: Segment, limit: int = 7) -> list[Segment]:
    """The paragraph or address block that starts with `seg`: segments below it at one left edge or centre, without a wide gap."""
    block = [seg]
    while len(block) < limit:
        last = block[-1]
        following = [
            s
            for s in last.below
            if s.box.top - last.box.bottom < 1.1 * max(last.height, seg.page.unit)
            and 0.6 < s.height / max(seg.height, 0.1) < 1.6
            and (s.tokens[0].word.source == "form") == (seg.tokens[0].word.source == "form")
            and (abs(s.box.x0 - seg.box.x0) < 2 * seg.page.unit or abs(s.box.center_x - seg.box.center_x) < 2 * seg.page.unit)
        ]
        if not following:
            break
        block.append(following[0])
    return block


def is_numeric(text: str) -> bool:
    """Whether a text has no run of two letters, so that it can be a value but not a label."""
    return not re.search(r"[^\W\d_]{2}", text)
