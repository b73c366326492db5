"""Headings over groups of rows: they name the entries that hold nested arrays, or a property of every row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from pagelift.core import Json
from pagelift.layout import lexicon
from pagelift.layout.lines import Line, PageLayout, Segment, Token
from pagelift.layout.query import Query
from pagelift.layout.table_columns import kind_of
from pagelift.layout.table_grid import Grid
from pagelift.layout.table_headers import label_match
from pagelift.layout.table_rows import RawRow, filled_keys, is_group_heading, is_total

MAX_HEADING_LINES = 14
"""Lines above a row that are looked at for the heading of its group."""


@dataclass(slots=True, eq=False)
class Heading:
    """The lines between the key values of two rows, above the first or below the last. free: those that belong to no row."""

    lines: list[tuple[PageLayout, Line]] = field(default_factory=list)
    free: list[tuple[PageLayout, Line]] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Found:
    text: str
    tokens: list[Token]
    page: PageLayout


def gaps_between(grid: Grid) -> list[Heading]:
    """The lines before every row and after the last one that hold no key values and no column headings."""
    held = {(id(c.page), c.line) for row in grid.rows for c in row.lines}
    starts = [(row.lines[0].page, row.lines[0].line) for row in grid.rows]
    used = {(id(c.page), c.line) for row in grid.rows for c in row.lines if filled_keys(c, grid.model)}
    used |= {(id(page), line) for page, line in starts}
    used |= {(id(h.page), i) for h in grid.headers for i in range(h.first, h.last + 1)}
    pages = _pages(grid)
    gaps: list[Heading] = []
    at, line = 0, 0
    for page, start in starts:
        end = pages.index(page)
        gaps.append(Heading())
        for number in range(at, end + 1):
            last = start if number == end else len(pages[number].lines)
            first = max(line if number == at else 0, last - MAX_HEADING_LINES)
            _collect(gaps[-1], pages[number], range(first, last), used, held)
        at, line = end, start
    gaps.append(Heading())
    _collect(gaps[-1], pages[at], range(line, min(line + 12, len(pages[at].lines))), used, held)
    return gaps


def _collect(gap: Heading, page: PageLayout, numbers: range, used: set[tuple[int, int]], held: set[tuple[int, int]]) -> None:
    for i in numbers:
        place = (id(page), i)
        if place not in used:
            gap.lines.append((page, page.lines[i]))
            if place not in held:
                gap.free.append((page, page.lines[i]))


def _pages(grid: Grid) -> list[PageLayout]:
    pages: list[PageLayout] = []
    for page in [grid.headers[0].page, *(c.page for c in grid.body)]:
        if page not in pages:
            pages.append(page)
    return pages


def labelled(query: Query, lines: Sequence[tuple[PageLayout, Line]], x0: float, x1: float, names: frozenset[str]) -> Found | None:
    """The value behind the property's label ("Age group: 90-94", "GPA | 3.5") in some lines, the last one of them.

    names: concepts of the array's name, which label the entry's own name ("Employee: ..." for employees[].name).
    """
    for page, line in reversed(lines):
        segments = [s for s in line.segments if x0 <= s.box.center_x <= x1]
        for i, seg in enumerate(segments):
            found = _behind_colon(query, seg, names)
            if found is None and label_match(query, seg.text) >= 0.75 and i + 1 < len(segments) and not seg.text.endswith(":"):
                found = segments[i + 1].tokens
            if found is None and seg.text.endswith(":") and label_match(query, seg.text) >= 0.5 and i + 1 < len(segments):
                found = segments[i + 1].tokens
            if found and query.kind in ("number", "percent") and kind_of(" ".join(t.text for t in found)) not in ("number", "percent"):
                continue
            if found:
                return Found(" ".join(t.text for t in found), list(found), page)
    return None


def _behind_colon(query: Query, seg: Segment, names: frozenset[str]) -> list[Token] | None:
    """The words behind a label with a colon inside one phrase; the colon may stick to either side."""
    for i, token in enumerate(seg.tokens):
        place = token.text.find(":")
        if place < 0 or re.fullmatch(r"\d+:\d\d(?::\d\d)?", token.text):
            continue
        label = " ".join(t.text for t in seg.tokens[max(0, i - 3) : i]) + " " + token.text[:place]
        own_name = query.label & {"name", "title"} and names & lexicon.bag(label)
        beyond = lexicon.weight(lexicon.bag(label) - query.label - query.hint)
        if (label_match(query, label) < 0.5 or beyond >= 1.0) and not own_name:
            continue
        rest = seg.tokens[i + 1 :]
        if query.kind in ("number", "percent", "date") or any(":" in t.text for t in rest):
            rest = rest[: 1 if query.kind != "date" else 3]
        if token.text[place + 1 :]:
            behind = Token(token.text[place + 1 :], token.box, token.word)
            rest = [behind, *rest]
        return rest or None
    return None


def heading_text(gap: Heading, grid: Grid) -> Found | None:
    """The phrase nearest above a row that looks like a heading of rows."""
    model, x0, x1 = grid.model, grid.headers[0].x0, grid.headers[0].x1
    cells = {(id(c.page), c.line): c for c in grid.body}
    for n in range(len(gap.free) - 1, -1, -1):
        page, line = gap.free[n]
        segments = [s for s in line.segments if x0 <= s.box.center_x <= x1]
        if not segments or len(segments) > 2 or is_total(segments) or not re.search(r"[^\W\d_]{2}", line.text):
            continue
        body = cells.get((id(page), page.lines.index(line)))
        if body is not None:
            index = grid.body.index(body)
            before = grid.body[index - 1] if index else None
            after = grid.body[index + 1] if index + 1 < len(grid.body) else None
            if not is_group_heading(before, body, after, model):
                continue
        elif segments[0].box.width > 0.6 * page.width or len(segments[0].tokens) > 12 or ":" in line.text:
            continue
        return Found(segments[0].text, segments[0].tokens, page)
    return None


def summed(query: Query, lines: Sequence[tuple[PageLayout, Line]], x0: float, x1: float) -> Found | None:
    """A number of a group that stands below its rows, behind its label or in a line of sums."""
    for page, line in lines[:4]:
        tokens = [t for s in line.segments if x0 <= s.box.center_x <= x1 for t in s.tokens]
        best: tuple[float, int] | None = None
        for i, token in enumerate(tokens):
            if not re.search(r"\d", token.text) or i == 0:
                continue
            words = " ".join(t.text for t in tokens[max(0, i - 3) : i] if not re.search(r"\d", t.text))
            score = label_match(query, words) if words else 0.0
            if score >= 0.45 and (best is None or score > best[0]):
                best = score, i
        if best:
            token = tokens[best[1]]
            text = re.sub(r"^[^\d(+-]*:", "", token.text)
            return Found(text, [token], page)
    return None


def group_rows(keys: Sequence[tuple[Json, ...]]) -> list[list[int]]:
    """Row numbers by group: a new group begins where a heading above a row differs from that of the row before."""
    groups: list[list[int]] = []
    current: tuple[Json, ...] | None = None
    for number, key in enumerate(keys):
        fresh = any(k is not None for k in key) and key != current
        if not groups or fresh:
            groups.append([])
            current = key if fresh else current
        groups[-1].append(number)
    return groups


def rows_span(rows: Sequence[RawRow]) -> tuple[int, float, float]:
    """Page number, top and bottom in points of the part of a group that stands on its first page."""
    first = rows[0].page
    own = [r for r in rows if r.page is first]
    return first.number, own[0].top, max(line.box.bottom for r in own for line in r.lines if line.page is first)
