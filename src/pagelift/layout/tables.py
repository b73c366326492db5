"""Arrays of objects: finds the table that a schema's array describes and reads its rows."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from pagelift.core import Json
from pagelift.layout import lexicon
from pagelift.layout.lines import Line, PageLayout, Token
from pagelift.layout.query import Path, Query, Table
from pagelift.layout.table_columns import Cells, Column, align, assign_queries, columns_of, is_amount
from pagelift.layout.table_headers import Header, cell_match, find_headers, label_match
from pagelift.layout.table_rows import RawRow, RowModel, build_rows, drop_weak, filled_keys, is_included, is_total, usual_strength
from pagelift.layout.table_text import document_years, item_lines, read_cell
from pagelift.layout.values import Locale


@dataclass(slots=True, eq=False)
class Cell:
    """One value of a row. text: as printed. tokens: the words it was read from."""

    text: str
    tokens: list[Token]
    value: Json
    page: PageLayout
    confidence: float


@dataclass(slots=True, eq=False)
class Row:
    """One entry of an array. cells: by the path of the property in the entry. nested: entries of arrays inside the entry.
    page: number from 1. top, bottom: position on the page in points."""

    cells: dict[Path, Cell] = field(default_factory=dict)
    nested: dict[Path, list[Row]] = field(default_factory=dict)
    page: int = 0
    top: float = 0.0
    bottom: float = 0.0


@dataclass(slots=True, eq=False)
class TableResult:
    """rows: empty when nothing was found, with the reason. tokens: all words of the table, headings and totals included."""

    rows: list[Row] = field(default_factory=list)
    confidence: float = 0.0
    reason: str = ""
    tokens: list[Token] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Grid:
    """A table as read: its columns, body lines, and which column answers which property (by number)."""

    headers: list[Header]
    columns: list[Column]
    body: list[Cells]
    chosen: dict[int, int]
    rows: list[RawRow]
    model: RowModel
    score: float


def find_rows(pages: Sequence[PageLayout], table: Table, locale: Locale) -> list[Row]:
    """The entries of one array of objects, in printed order; empty when no table fits."""
    return find_table(pages, table, locale).rows


def find_table(pages: Sequence[PageLayout], table: Table, locale: Locale) -> TableResult:
    """The entries of one array of objects with confidence, the words used, and the reason when there are none."""
    columns = table.columns
    if not columns and not table.nested:
        return TableResult(reason="the items have no scalar properties")
    grid = _best_grid(pages, columns, locale)
    if grid is None:
        return TableResult(reason="no table with matching headings found")
    known = document_years(pages, locale)
    rows = [_read_row(raw, grid, columns, locale, known) for raw in grid.rows]
    rows = [r for r in rows if any(c.value is not None for c in r.cells.values())]
    tokens = [t for h in grid.headers for i in range(h.first, h.last + 1) for s in h.page.lines[i].segments for t in s.tokens]
    tokens += [t for raw in grid.rows for line in raw.lines for cell in line.cells.values() for t in cell]
    confidence = min(0.95, 0.3 + 0.5 * len(grid.chosen) / max(1, len(columns)))
    return TableResult(rows, confidence if rows else 0.0, "" if rows else "the table has no rows", tokens)


def _best_grid(pages: Sequence[PageLayout], queries: Sequence[Query], locale: Locale) -> Grid | None:
    headers = [h for page in pages for h in find_headers(page, queries)]
    groups: dict[str, list[Header]] = {}
    for header in headers:
        groups.setdefault(header.signature, []).append(header)
    ranked = sorted(groups.values(), key=lambda g: -g[0].score)
    grids = [_grid(pages, group, queries, locale) for group in ranked[:4] if group[0].score > 0.5 * ranked[0][0].score]
    return max((g for g in grids if g.rows), key=lambda g: g.score, default=None)


def _grid(pages: Sequence[PageLayout], headers: list[Header], queries: Sequence[Query], locale: Locale) -> Grid:
    columns = columns_of(headers[0].cells)
    lines = _regions(pages, headers)
    before_total = []
    for page, index in lines:
        if is_total(page.lines[index]) and before_total:
            break
        before_total.append((page, index))
    align(before_total if len(before_total) > 1 else lines, columns)
    body = align(lines, columns, learn=False)
    chosen = assign_queries(queries, columns, body[: max(1, len(before_total))], locale)
    model = _row_model(queries, columns, chosen)
    body = _cut(body, model)
    rows = drop_weak(build_rows(body, model), model)
    text_column = next((chosen[i] for i, q in enumerate(queries) if i in chosen and q.kind in ("text", "name")), None)
    rows = [r for r in rows if not is_included(r, text_column, rows)]
    score = (
        sum(cell_match(queries[q], columns[c].heading) for q, c in chosen.items() if columns[c].heading)
        + 0.3 * len(chosen)
        + min(1.0, 0.2 * len(rows))
    )
    return Grid(headers, columns, body, chosen, rows, model, score)


def _regions(pages: Sequence[PageLayout], headers: list[Header]) -> list[tuple[PageLayout, int]]:
    """The lines below the headings, to the end of the document; heading lines themselves are left out."""
    found: list[tuple[PageLayout, int]] = []
    started = False
    for page in pages:
        own = [h for h in headers if h.page is page]
        start = own[0].last + 1 if own else 0
        started = started or bool(own)
        if not started:
            continue
        skip = {i for h in own for i in range(h.first, h.last + 1)}
        found += [(page, i) for i in range(start, len(page.lines)) if i not in skip]
    return found


def _row_model(queries: Sequence[Query], columns: Sequence[Column], chosen: dict[int, int]) -> RowModel:
    keys: dict[int, int] = {}
    texts = set()
    amount = None
    for qi, ci in chosen.items():
        query = queries[qi]
        if query.kind in ("text", "name", "address"):
            texts.add(ci)
        if query.kind not in ("text", "name", "address") or columns[ci].main_kind in ("clock", "date", "number"):
            keys[ci] = ci
        if is_amount(query):
            amount = ci
    return RowModel(columns, keys, frozenset(texts), amount)


def _cut(body: list[Cells], model: RowModel) -> list[Cells]:
    """The body without totals and without what follows the table."""
    strengths = [len(filled_keys(c, model)) for c in body]
    if not model.keys:
        return body
    usual = usual_strength([s for s in strengths[: _first_total(body)] if s] or [s for s in strengths if s])
    kept: list[Cells] = []
    started = closed = False
    previous: Cells | None = None
    for cells, strong in zip(body, strengths, strict=True):
        line = cells.page.lines[cells.line]
        full = strong >= max(1, usual) and (any(cells.text(c) for c in model.texts) or not model.texts)
        closes = (is_total(line) and not (full and strong > 1)) or _is_other_heading(line, strong) or _is_far(previous, cells)
        if (started and closes) or (is_total(line) and not full):
            closed = started
            previous = cells
            continue
        previous = cells
        if closed and not full:
            continue
        closed = False
        started = started or strong > 0
        kept.append(cells)
    return kept


def _first_total(body: Sequence[Cells]) -> int:
    """Number of body lines before the first total."""
    return next((i for i, c in enumerate(body) if i and is_total(c.page.lines[c.line])), len(body))


def _is_other_heading(line: Line, strong: int) -> bool:
    """Whether a line heads another table: three phrases or more that are business terms, no digits."""
    segments = line.segments
    if strong or len(segments) < 3 or re.search(r"\d", line.text):
        return False
    known = sum(bool(lexicon.bag(s.text) & lexicon.concept_names()) for s in segments)
    return known >= 0.6 * len(segments)


def _is_far(previous: Cells | None, cells: Cells) -> bool:
    return previous is not None and previous.page is cells.page and cells.box.top - previous.box.bottom > 4.5 * cells.page.unit


def _read_row(raw: RawRow, grid: Grid, queries: Sequence[Query], locale: Locale, known: Sequence[datetime.date]) -> Row:
    row = Row(page=raw.page.number, top=raw.top, bottom=raw.lines[-1].box.bottom)
    for qi, query in enumerate(queries):
        column = grid.chosen.get(qi)
        cell = _read_column(raw, column, grid, query, locale, known) if column is not None else None
        if cell is not None:
            row.cells[query.path] = cell
    return row


def _read_column(raw: RawRow, number: int, grid: Grid, query: Query, locale: Locale, known: Sequence[datetime.date]) -> Cell | None:
    column = grid.columns[number]
    lines = [(c, c.cells[number]) for c in raw.lines if number in c.cells]
    if not lines:
        return None
    unit = raw.page.unit
    if query.kind in ("text", "name", "address"):
        skip = _skipped_lines(query, column)
        usable = [t for c, t in lines if c.page is lines[0][0].page]
        if skip and len(usable) > skip:
            usable = usable[skip:]
        right = [c.x0 for c in grid.columns[number + 1 :]] + [c.heading.box.x0 for c in grid.columns[number + 1 :] if c.heading]
        tokens = item_lines(query, usable, column, min(right, default=raw.page.width * 0.97), unit)
        text = " ".join(t.text for t in tokens)
        value = read_cell(query, text, locale, known)
        return Cell(text, tokens, value, raw.page, 0.8) if value is not None else None
    for cells, tokens in lines:
        text = " ".join(t.text for t in tokens)
        value = read_cell(query, text, locale, known)
        if value is not None:
            return Cell(text, tokens, value, cells.page, 0.85)
    return None


def _skipped_lines(query: Query, column: Column) -> int:
    """How many first lines of a cell belong to other phrases of a stacked heading ("Item no." over "Item name")."""
    if column.heading is None or len(column.heading.phrases) < 2:
        return 0
    texts = [" ".join(t.text for t in p) for p in column.heading.phrases]
    if not lexicon.bag(texts[0]) & {"number", "code", "date", "position"} or re.search(r"-$", texts[0]):
        return 0
    scores = [label_match(query, t) for t in texts]
    best = max(range(len(scores)), key=scores.__getitem__)
    return best if best and scores[best] > scores[0] + 0.2 else 0
