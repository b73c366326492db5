"""Header lines of tables: which cells they have and how well these match the properties of an item."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise

from pagelift.core import Box, union
from pagelift.layout import lexicon
from pagelift.layout.lines import Line, PageLayout, Segment, Token
from pagelift.layout.query import Query

FAMILIES = (
    frozenset({"description", "product", "name", "label", "test", "course"}),
    frozenset({"amount", "total", "net", "gross", "value"}),
    frozenset({"name", "player", "employee", "attendee", "patient", "passenger", "member"}),
    frozenset({"date", "day"}),
    frozenset({"qty", "hours"}),
    frozenset({"result", "value", "grade"}),
    frozenset({"company", "team", "club"}),
)
"""Concepts that headers use for one another. A shared family is weaker evidence than a shared concept."""

_COUNTER = re.compile(r"(?i)line|ln|item|#|no\.?|nr\.?|n[°º]|(?:sl|s|sr)\.?(?:\s?no\.?)?|lfd\.?\s?nr\.?|riga|ligne")
MAX_CELLS = 30
"""Lines of more phrases are not looked at as column headings."""
MAX_HEADERS = 40
"""At most so many places a page are looked at as column headings."""
LONG_CELL = 6
"""Header cells have no more words than this."""


@dataclass(slots=True, eq=False)
class HeaderCell:
    """One column heading, of one or more stacked phrases (top to bottom)."""

    phrases: list[list[Token]]
    box: Box

    @property
    def text(self) -> str:
        return " ".join(t.text for phrase in self.phrases for t in phrase)

    @property
    def concepts(self) -> frozenset[str]:
        return lexicon.bag(self.text)


@dataclass(slots=True, eq=False)
class Header:
    """first, last: line numbers on the page. cells: left to right. score: sum of the matches of the item's properties.
    matched: numbers of the properties with a heading. x0, x1: the part of the page that the table takes up, in points."""

    page: PageLayout
    first: int
    last: int
    cells: list[HeaderCell] = field(default_factory=list)
    score: float = 0.0
    matched: frozenset[int] = frozenset()
    x0: float = float("-inf")
    x1: float = float("inf")

    @property
    def signature(self) -> str:
        return re.sub(r"\W+", "", "".join(c.text for c in self.cells)).lower()


def label_match(query: Query, text: str) -> float:
    """How well a heading names a property, in [0, 1.2]: shared concepts of name and title, of the description, of a family."""
    if query.label & {"position", "rank"} and _COUNTER.fullmatch(text.strip()):
        return 0.8
    concepts = lexicon.bag(text)
    if not concepts:
        return 0.0
    heading = lexicon.weight(concepts)
    shared = lexicon.weight(query.label & concepts)
    score = 0.65 * shared / max(0.3, lexicon.weight(query.label)) + 0.35 * shared / heading
    score += 0.45 * lexicon.weight(query.hint & concepts) / heading
    for family in FAMILIES:
        if query.label & family and concepts & family:
            score = max(score, 0.5 + 0.3 * score)
    item_text = query.kind in ("text", "name") and concepts & FAMILIES[0]
    if query.against and not item_text:
        score -= 0.5 * lexicon.weight(query.against & concepts) / heading
    if ("%" in text and query.kind != "percent") or (query.kind == "percent" and "amount" in concepts):
        score -= 0.4
    if query.kind in ("number", "percent") and concepts & {"number", "code", "date", "reference"} and not query.label & concepts:
        score -= 0.5
    if "number" in concepts and "number" not in query.label and query.kind != "id":
        score -= 0.5
    return max(0.0, min(1.2, score))


def find_headers(page: PageLayout, queries: Sequence[Query], names: frozenset[str] = frozenset()) -> list[Header]:
    """All places on a page whose lines name at least two of the properties (one, if there are no more).

    names: concepts of the array's own name, which may head the column of its items.
    """
    wanted = names.union(*(q.label | q.hint for q in queries))
    for family in FAMILIES:
        if wanted & family:
            wanted |= family
    needed = min(2, len(queries))
    headers: list[Header] = []
    last = -1
    for core, line in enumerate(page.lines):
        if core <= last or not _may_be_header(line) or not lexicon.bag(line.text) & wanted:
            continue
        found = [h for h in _best_band(page, core, queries, names) if _names_enough(h, needed, names)]
        if found:
            headers += found
            last = found[0].last
            if len(headers) >= MAX_HEADERS:
                break
    return headers


def _names_enough(header: Header, needed: int, names: frozenset[str]) -> bool:
    """Whether enough properties have a heading; the array's own name as a heading stands for one of them."""
    named = any(c.concepts & names for c in header.cells)
    return len(header.matched) >= needed - named and header.score >= 0.5 * (needed - named) and len(header.cells) > 1


def _may_be_header(line: Line) -> bool:
    words = [t.text for t in line.tokens]
    numbers = sum(bool(re.search(r"\d", w)) for w in words)
    lengthy = sum(len(s.tokens) > LONG_CELL for s in line.segments)
    return len(line.segments) <= MAX_CELLS and numbers <= 0.2 * len(words) and lengthy <= 0.3 * len(line.segments) and len(words) > 1


def _best_band(page: PageLayout, core: int, queries: Sequence[Query], names: frozenset[str]) -> list[Header]:
    """The stacked header around a line, one for each of the tables side by side; a full second line is taken in when that
    names more properties."""
    first, last = _band(page, core)
    headers = _side_by_side(page, first, last, _cells(page, core, first, last))
    following = page.lines[last + 1] if last + 1 < len(page.lines) else None
    for header in headers:
        _match(header, queries, names)
    if (
        following
        and _may_be_part(following)
        and following.box.top - page.lines[last].box.bottom < 0.45 * page.unit
        and len(following.segments) > 1
    ):
        taller = _side_by_side(page, first, last + 1, _cells(page, core, first, last + 1))
        for header in taller:
            _match(header, queries, names)
        if max(h.score for h in taller) > max(h.score for h in headers) + 0.25:
            return taller
    return headers


def _side_by_side(page: PageLayout, first: int, last: int, cells: list[HeaderCell]) -> list[Header]:
    """One header, or several where the same headings come again to the right ("Pay, Amount, Deduction, Amount")."""
    texts = [re.sub(r"\W+", "", c.text).lower() for c in cells]
    starts = [0]
    for i, text in enumerate(texts):
        if text and text in texts[starts[-1] : i]:
            start = i
            while start - 1 > starts[-1] and texts.count(texts[start - 1]) == 1:
                start -= 1
            if start < i:
                starts.append(start)
    headers = []
    for start, end in zip(starts, [*starts[1:], len(cells)], strict=True):
        header = Header(page, first, last, cells[start:end])
        if start:
            header.x0 = cells[start].box.x0 - page.unit
        if end < len(cells):
            header.x1 = cells[end].box.x0 - page.unit
        headers.append(header)
    return headers


def _band(page: PageLayout, core: int) -> tuple[int, int]:
    """The lines above and below that belong to the same stacked header."""
    lines = page.lines
    first = last = core
    while first > 0 and core - first < 3 and _stacks(lines[first - 1], lines[core : last + 1], lines[first], page):
        first -= 1
    while last + 1 < len(lines) and last - core < 3 and _stacks(lines[last + 1], lines[first : core + 1], lines[last], page):
        last += 1
    return first, last


def _stacks(line: Line, core: Sequence[Line], next_to: Line, page: PageLayout) -> bool:
    gap = max(line.box.top - next_to.box.bottom, next_to.box.top - line.box.bottom)
    if gap > 0.45 * page.unit or not _may_be_part(line):
        return False
    cells = [s for c in core for s in c.segments]
    width = max(s.box.x1 for s in cells) - min(s.box.x0 for s in cells)
    bold = sum(s.bold for s in cells) / len(cells)
    for seg in line.segments:
        if seg.box.width > 0.45 * width or abs(seg.bold - bold) > 0.7 or seg.height > 1.35 * max(s.height for s in cells):
            return False
    if len(line.segments) == 1 and line.box.top > next_to.box.bottom - 0.2 * page.unit and len(cells) > 2:
        leftmost = min(cells, key=lambda s: s.box.x0)
        if line.box.x0 < leftmost.box.x0 + page.unit:
            return False  # it heads the rows below
    overlapping = sum(any(s.box.overlap_x(c.box) > 0 for c in cells) for s in line.segments)
    beside = gap < -0.2 * page.unit  # lines that share height: cells set higher or lower than the others
    return beside or (overlapping == len(line.segments) and len(line.segments) <= max(2, 0.7 * len(cells)))


def _may_be_part(line: Line) -> bool:
    return all(len(s.tokens) <= LONG_CELL and not re.search(r"\d|:", s.text) for s in line.segments)


def _cells(page: PageLayout, core: int, first: int, last: int) -> list[HeaderCell]:
    """The phrases of the band, stacked where they share horizontal space, left to right."""
    below = [line for line in page.lines[last + 1 : last + 14] if len(line.segments) > 1]
    order = sorted(range(first, last + 1), key=lambda i: abs(i - core))
    cells: list[HeaderCell] = []
    for index in order:
        for seg in page.lines[index].segments:
            for phrase in _split(seg, below):
                _stack(cells, phrase)
    for cell in cells:
        cell.phrases.sort(key=lambda p: p[0].box.top)
    return sorted(cells, key=lambda c: c.box.x0)


def _stack(cells: list[HeaderCell], phrase: list[Token]) -> None:
    box = union(t.box for t in phrase)
    best = max(cells, key=lambda c: c.box.overlap_x(box), default=None)
    stacked = best is not None and best.box.overlap_x(box) > 0.3 * min(best.box.width, box.width)
    if best is not None and stacked and best.box.overlap_y(box) < 0.5 * box.height:
        best.phrases.append(phrase)
        best.box = union((best.box, box))
    else:
        cells.append(HeaderCell([phrase], box))


def _split(seg: Segment, below: Sequence[Line]) -> Iterator[list[Token]]:
    """The words of one header segment, divided where the lines below have several columns under it."""
    clusters: list[list[float]] = []  # x0, x1, votes
    spanning = 0
    for line in below:
        for other in line.segments:
            overlap = other.box.overlap_x(seg.box)
            if overlap < 0.15 * min(other.box.width, seg.box.width):
                continue
            if overlap > 0.75 * seg.box.width or len(other.tokens) > 4:
                spanning += 1
                continue
            hit = next((c for c in clusters if min(c[1], other.box.x1) > max(c[0], other.box.x0)), None)
            if hit is None:
                clusters.append([other.box.x0, other.box.x1, 1])
            else:
                hit[:] = [min(hit[0], other.box.x0), max(hit[1], other.box.x1), hit[2] + 1]
    votes = max((c[2] for c in clusters), default=0)
    clusters = sorted(c for c in clusters if c[2] >= max(1, 0.3 * votes))
    if not 2 <= len(seg.tokens) <= 2 * LONG_CELL or len(clusters) < 2 or spanning > votes:
        yield seg.tokens
        return
    yield from _divide(seg.tokens, [(c[0], c[1]) for c in clusters])


def _divide(tokens: list[Token], ranges: list[tuple[float, float]]) -> Iterator[list[Token]]:
    """Consecutive tokens, cut where the parts stand best over the ranges: by a shared edge or centre."""

    def misfit(part: list[Token], x0: float, x1: float) -> float:
        left, right = part[0].box.x0, part[-1].box.x1
        return min(abs(left - x0), abs(right - x1), abs(left + right - x0 - x1) / 2)

    parts = min(len(ranges), len(tokens), 5)
    bounds = [(0, *cuts, len(tokens)) for cuts in combinations(range(1, len(tokens)), parts - 1)]
    best = min(bounds, key=lambda c: sum(misfit(tokens[a:b], *r) for a, b, r in zip(c, c[1:], ranges, strict=False)))
    yield from (tokens[a:b] for a, b in pairwise(best))


def _match(header: Header, queries: Sequence[Query], names: frozenset[str]) -> None:
    """Score of the best one-to-one matches of cells and properties."""
    pairs = sorted(
        ((cell_match(q, c, names), qi, ci) for qi, q in enumerate(queries) for ci, c in enumerate(header.cells)), key=lambda p: -p[0]
    )
    rows: set[int] = set()
    columns: set[int] = set()
    for score, qi, ci in pairs:
        if score < 0.3:
            break
        if qi not in rows and ci not in columns:
            rows.add(qi)
            columns.add(ci)
            header.score += score
    header.matched = frozenset(rows)
    lines = header.page.lines[max(0, header.first - 3) : header.first]
    if names and any(lexicon.bag(s.text) & names for line in lines for s in line.segments if len(s.tokens) <= LONG_CELL):
        header.score += 0.4


def cell_match(query: Query, cell: HeaderCell, names: frozenset[str] = frozenset()) -> float:
    """The match of a whole heading or of its best stacked phrase. A heading that is the array's name heads the items."""
    best = label_match(query, cell.text)
    if len(cell.phrases) > 1:
        best = max(best, *(0.9 * label_match(query, " ".join(t.text for t in p)) for p in cell.phrases))
    if names & cell.concepts and query.kind in ("text", "name") and (query.label & FAMILIES[0] or query.label & {"label", "title", "type"}):
        best = max(best, 0.85)
    elif names & cell.concepts and query.kind == "number" and "amount" in query.label:
        best = max(best, 0.6)
    return best
