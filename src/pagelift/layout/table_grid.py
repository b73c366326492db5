"""A table as lines and columns: where it begins, where it ends, and which of its lines are rows, headings or totals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from pagelift.layout import lexicon
from pagelift.layout.lines import PageLayout, Token, is_numeric
from pagelift.layout.query import Query
from pagelift.layout.table_assign import assign_queries
from pagelift.layout.table_columns import Cells, Column, align, columns_of, kind_of, within
from pagelift.layout.table_headers import FAMILIES, Header, cell_match, find_headers
from pagelift.layout.table_rows import RawRow, RowModel, build_rows, drop_included, drop_weak, filled_keys, is_total, usual_strength
from pagelift.layout.table_shared import Answers, is_amount
from pagelift.layout.values import Locale

_PAGE_NUMBER = re.compile(r"\b(?:page|seite|pagina|página|blatt|p\.)\s*:?\s*0\b|^[-– ]*0\s*(?:/|of|von|de)\s*0[-– ]*$")
_EXPECTED = {"number": "number", "percent": "number", "date": "date", "datetime": "date", "id": "id"}
TEXT_KINDS = ("text", "name", "address")


@dataclass(slots=True, eq=False)
class Grid:
    """A table as read. answers: which columns answer which properties. rows: in reading order. body: all lines under the
    headings, to the end of the document, those of the rows among them."""

    headers: list[Header]
    columns: list[Column]
    body: list[Cells]
    answers: Answers
    model: RowModel
    rows: list[RawRow] = field(default_factory=list)
    score: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """What a line that starts a row holds. key: words of the marking value. text: the item's words where they are known not
    to be the rest of the line. count: words of a count with a price per unit."""

    key: list[Token]
    text: list[Token]
    count: list[Token]


@dataclass(slots=True, eq=False)
class ImplicitRegion:
    """Lines of a table that has no headings. key: the column whose values start rows. text: the column of the item's name.
    starts: by page (its identity) and line number. counted: the column for counts with a price."""

    lines: list[tuple[PageLayout, int]]
    columns: list[Column]
    answers: Answers
    key: int
    text: int
    starts: dict[tuple[int, int], Entry]
    counted: int | None = None
    x0: float = float("-inf")
    x1: float = float("inf")


def best_grid(pages: Sequence[PageLayout], queries: Sequence[Query], names: frozenset[str], locale: Locale) -> Grid | None:
    """The table whose headings and rows answer most of the properties. names: concepts of the array's own name."""
    headers = [h for page in pages for h in find_headers(page, queries, names)]
    groups: dict[str, list[Header]] = {}
    for header in headers:
        groups.setdefault(header.signature, []).append(header)
    ranked = sorted(groups.values(), key=lambda g: -g[0].score)
    grids = [_grid(pages, g, queries, names, locale) for g in ranked[:4] if g[0].score > 0.5 * ranked[0][0].score]
    return max((g for g in grids if g.rows), key=lambda g: g.score, default=None)


def _grid(pages: Sequence[PageLayout], headers: list[Header], queries: Sequence[Query], names: frozenset[str], locale: Locale) -> Grid:
    columns = columns_of(headers[0].cells)
    body = _align_regions(pages, headers, columns)
    sample = body[: _first_total(body)]
    answers = assign_queries(queries, columns, sample or body, names, locale)
    chosen = answers.chosen
    _leave_out_right(columns, [*chosen.values(), *answers.credit.values()], body)
    model = _row_model(queries, columns, answers, body)
    grid = Grid(headers, columns, body, answers, model)
    rows = drop_weak(build_rows(_cut(body, model), model), model)
    text = next((chosen[i] for i, q in enumerate(queries) if i in chosen and q.kind in TEXT_KINDS), None)
    grid.rows = drop_included(rows, text)
    labels = [cell_match(queries[q], heading, names) for q, c in chosen.items() if (heading := columns[c].heading)]
    grid.score = sum(labels) + 0.3 * len(chosen) + min(1.0, 0.2 * len(grid.rows))
    return grid


def _leave_out_right(columns: Sequence[Column], used: Sequence[int], body: Sequence[Cells]) -> None:
    """Columns to the right of all that are asked for say nothing about the rows: another table may stand there."""
    last = max(used, default=len(columns) - 1)
    if last + 1 < len(columns):
        for cells in body:
            cells.x1 = min(cells.x1, max(columns[last].x1, columns[last + 1].x0 - cells.page.unit / 2))


def implicit_grid(region: ImplicitRegion, queries: Sequence[Query]) -> Grid:
    """A table without headings, from its lines, columns and answers."""
    body = align(region.lines, region.columns, region.x0, region.x1)
    for cells in body:
        _settle_key(cells, region)
    header = Header(region.lines[0][0], region.lines[0][1], region.lines[0][1] - 1, [], x0=region.x0, x1=region.x1)
    model = _row_model(queries, region.columns, region.answers, body)
    model.keys = {region.key: region.key}
    model.texts = frozenset({region.text})
    model.starts = frozenset(region.starts)
    model.learn_style(body)
    grid = Grid([header], region.columns, body, region.answers, model)
    grid.rows = build_rows([c for c in body if (id(c.page), c.line) in region.starts or not _is_other_entry(c, region)], model)
    return grid


def _settle_key(cells: Cells, region: ImplicitRegion) -> None:
    """The key column holds the marking value and nothing else; other words there belong to the item's text."""
    entry = region.starts.get((id(cells.page), cells.line))
    own = set(map(id, entry.key)) if entry else set()
    rest = [t for t in cells.cells.pop(region.key, []) if id(t) not in own]
    text = [t for t in cells.cells.pop(region.text, []) if id(t) not in own]
    if entry and entry.count and region.counted is not None:
        cells.cells = {region.text: entry.text, region.key: entry.key, region.counted: entry.count}
        return
    if entry:
        cells.cells[region.key] = entry.key
    if rest or text:
        cells.cells[region.text] = sorted([*rest, *text], key=lambda t: t.box.x0)


def _is_other_entry(cells: Cells, region: ImplicitRegion) -> bool:
    """Whether a line between the entries is a total or a sub-line with a value of its own."""
    last = cells.segments[-1].tokens[-1].text if cells.segments else ""
    return is_total(cells.segments) or (region.columns[region.key].main_kind == "number" and kind_of(last) == "number")


def _align_regions(pages: Sequence[PageLayout], headers: list[Header], columns: list[Column]) -> list[Cells]:
    """The lines under the headings, cut into cells; a heading printed at another place moves its own columns."""
    body: list[Cells] = []
    first = headers[0]
    regions = _regions(pages, headers)
    sample = [line for header, lines in regions if header is None or _same_place(header, first) for line in lines]
    learned = _before_total(sample, first)
    align(learned if len(learned) > 1 else sample, columns, first.x0, first.x1, learn=True)
    region = 0
    for header, lines in regions:
        region += header is not None
        place, own = first, columns
        if header is not None and not _same_place(header, first):
            place, own = header, columns_of(header.cells)
            align(_before_total(lines, place), own, place.x0, place.x1, learn=True)
        part = align(lines, own, place.x0, place.x1)
        shift = place.cells[0].box.x0 - first.cells[0].box.x0 if place is not first else 0.0
        for cells in part:
            cells.region, cells.shift = region, shift
        body += part
    return body


def _same_place(header: Header, first: Header) -> bool:
    pairs = zip(header.cells, first.cells, strict=False)
    return len(header.cells) != len(first.cells) or all(abs(a.box.x0 - b.box.x0) < header.page.unit for a, b in pairs)


def _before_total(lines: list[tuple[PageLayout, int]], place: Header) -> list[tuple[PageLayout, int]]:
    end = next((n for n, (page, i) in enumerate(lines) if n and is_total(within(page.lines[i], place.x0, place.x1))), len(lines))
    return lines[:end]


def _regions(pages: Sequence[PageLayout], headers: list[Header]) -> list[tuple[Header | None, list[tuple[PageLayout, int]]]]:
    """The lines below each heading; pages without a heading of their own follow with None."""
    found: list[tuple[Header | None, list[tuple[PageLayout, int]]]] = []
    furniture = page_furniture(pages)
    for page in pages:
        own = [h for h in headers if h.page is page]
        if not own and found:
            found.append((None, [(page, i) for i in range(len(page.lines)) if (id(page), i) not in furniture]))
        for header, following in zip(own, [*own[1:], None], strict=False):
            end = following.first if following else len(page.lines)
            found.append((header, [(page, i) for i in range(header.last + 1, end) if (id(page), i) not in furniture]))
    return found


def page_furniture(pages: Sequence[PageLayout]) -> set[tuple[int, int]]:
    """Running heads and feet, by identity of the page and line number: lines near the edges that say "page n" or come again."""
    seen: dict[str, set[tuple[int, int]]] = {}
    found: set[tuple[int, int]] = set()
    for page in pages:
        for i, line in enumerate(page.lines):
            if 0.14 * page.height < line.box.top < 0.86 * page.height or sum(is_numeric(s.text) for s in line.segments) > 2:
                continue
            place = (id(page), i)
            text = re.sub(r"\d+", "0", line.text).lower()
            if _PAGE_NUMBER.search(text) and len(line.segments) < 4:
                found.add(place)
            seen.setdefault(f"{text}@{round(line.box.top / (2 * page.unit))}", set()).add(place)
    return found.union(*(places for places in seen.values() if len({page for page, _ in places}) > 1))


def _row_model(queries: Sequence[Query], columns: Sequence[Column], answers: Answers, body: Sequence[Cells]) -> RowModel:
    chosen = answers.chosen
    texts = {ci for qi, ci in chosen.items() if queries[qi].kind in TEXT_KINDS and qi not in answers.parts}
    prose = {ci for qi, ci in chosen.items() if queries[qi].label & FAMILIES[0] or queries[qi].kind == "name"}
    keys = {ci: ci for ci in chosen.values() if ci not in texts or (columns[ci].is_numeric and ci not in prose)}
    keys |= {credit: chosen[qi] for qi, credit in answers.credit.items()}
    amount = next((ci for qi, ci in chosen.items() if is_amount(queries[qi])), None)
    model = RowModel(columns, keys, frozenset(texts - keys.keys()), amount)
    for qi, ci in chosen.items():
        kind = _EXPECTED.get(queries[qi].kind)
        if kind == "number" and "string" in queries[qi].node.types:
            kind = "any"
        if kind and (qi not in answers.parts or kind == "date"):
            model.expected.setdefault(ci, kind)
    model.learn_style(body)
    return model


def _cut(body: list[Cells], model: RowModel) -> list[Cells]:
    """The body without totals and without what follows the table."""
    strengths = [len(filled_keys(c, model)) for c in body]
    if not model.keys:
        return body
    usual = usual_strength([s for s in strengths[: _first_total(body)] if s] or [s for s in strengths if s])
    kept: list[Cells] = []
    started = closed = False
    ended = -1
    previous: Cells | None = None
    for cells, strong in zip(body, strengths, strict=True):
        if cells.region != (previous.region if previous else cells.region):
            closed = False
        full = strong >= max(1, usual) and (not model.texts or any(re.search(r"[^\W\d_]{2}", cells.text(c)) for c in model.texts))
        total = is_total(cells.segments) and not (full and strong > 1 and not model.looks_summed(cells))
        if started and _is_other_heading(cells, strong):
            ended = cells.region
        elif cells.region != ended:
            if total or (started and _is_far(previous, cells)):
                closed = started
            if not total and ((full and usual > 1) or not closed):
                closed = False
                started = started or strong > 0
                kept.append(cells)
        previous = cells
    return kept


def _first_total(body: Sequence[Cells]) -> int:
    """Number of body lines before the first total."""
    return next((i for i, c in enumerate(body) if i and is_total(c.segments)), len(body))


def _is_other_heading(cells: Cells, strong: int) -> bool:
    """Whether a line heads another table: three phrases or more that are business terms, no digits."""
    segments = cells.segments
    if strong or len(segments) < 3 or any(re.search(r"\d", s.text) for s in segments):
        return False
    known = sum(bool(lexicon.bag(s.text) & lexicon.concept_names()) for s in segments)
    return known >= 0.6 * len(segments)


def _is_far(previous: Cells | None, cells: Cells) -> bool:
    return previous is not None and previous.page is cells.page and cells.box.top - previous.box.bottom > 4.5 * cells.page.unit
