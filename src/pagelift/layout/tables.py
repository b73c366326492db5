"""Arrays of objects: finds the table that a schema's array describes and reads its rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from pagelift.core import Json
from pagelift.layout import lexicon
from pagelift.layout.lines import PageLayout, Token
from pagelift.layout.query import Path, Query, Table, split_name
from pagelift.layout.table_grid import Grid, best_grid
from pagelift.layout.table_groups import Found, gaps_between, group_rows, heading_text, labelled, rows_span, summed
from pagelift.layout.table_rows import RawRow
from pagelift.layout.table_values import Reader, document_years
from pagelift.layout.values import Locale

_HEADING = re.compile(r"\b(heading|section|group|category|panel|under which|chapter|subtitle)\b", re.I)


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


def find_rows(pages: Sequence[PageLayout], table: Table, locale: Locale) -> list[Row]:
    """The entries of one array of objects, in printed order; empty when no table fits."""
    return find_table(pages, table, locale).rows


def find_table(pages: Sequence[PageLayout], table: Table, locale: Locale) -> TableResult:
    """The entries of one array of objects with confidence, the words used, and the reason when there are none."""
    inner = max(table.nested, key=lambda t: len(t.columns), default=None)
    if inner is not None and len(inner.columns) > 1:
        return _find_groups(pages, table, inner, locale)
    if not table.columns:
        return TableResult(reason="the items have no scalar properties")
    grid = best_grid(pages, table.columns, _names(table), locale)
    if grid is None:
        return TableResult(reason="no table with matching headings found")
    reader = Reader(grid, table.columns, locale, document_years(pages, locale))
    rows = [_row(reader, raw) for raw in grid.rows]
    _fill_from_headings(grid, table.columns, reader, rows)
    rows = [r for r in rows if any(c.value is not None for c in r.cells.values())]
    return _result(grid, rows, len(table.columns))


def _names(table: Table) -> frozenset[str]:
    """Concepts of the array's own name, which headings of its items and headings above the table use."""
    return lexicon.bag(split_name(table.path[-1]) if table.path else "") - {"position"}


def _result(grid: Grid, rows: list[Row], wanted: int) -> TableResult:
    tokens = [t for h in grid.headers for c in h.cells for p in c.phrases for t in p]
    tokens += [t for raw in grid.rows for line in raw.lines for cell in line.cells.values() for t in cell]
    confidence = min(0.95, 0.3 + 0.5 * len(grid.answers.chosen) / max(1, wanted))
    return TableResult(rows, confidence if rows else 0.0, "" if rows else "the table has no rows", tokens)


def _row(reader: Reader, raw: RawRow) -> Row:
    row = Row(page=raw.page.number, top=raw.top, bottom=raw.lines[-1].box.bottom)
    for number, query in enumerate(reader.queries):
        found = reader.read(raw, number)
        if found is not None:
            text, tokens, value, page = found
            row.cells[query.path] = Cell(text, tokens, value, page, 0.8)
    return row


def _fill_from_headings(grid: Grid, queries: Sequence[Query], reader: Reader, rows: list[Row]) -> None:
    """Properties without a column that are described as a heading over the rows."""
    open_ = [
        q
        for i, q in enumerate(queries)
        if i not in grid.answers.chosen and q.kind in ("text", "name") and _HEADING.search(f"{q.words} {q.description}")
    ]
    if not open_:
        return
    current: Found | None = None
    for gap, row in zip(gaps_between(grid), rows, strict=False):
        current = heading_text(gap, grid) or current
        if current is not None:
            for query in open_:
                row.cells[query.path] = Cell(current.text, current.tokens, reader.value(query, current.text), current.page, 0.7)


def _find_groups(pages: Sequence[PageLayout], table: Table, inner: Table, locale: Locale) -> TableResult:
    """Entries with nested arrays: one table of inner rows, cut into groups by the headings between them."""
    grid = best_grid(pages, inner.columns, _names(inner) | _names(table), locale)
    if grid is None:
        return TableResult(reason="no table with matching headings found for the nested entries")
    reader = Reader(grid, inner.columns, locale, document_years(pages, locale))
    gaps = gaps_between(grid)
    x0, x1 = grid.headers[0].x0, grid.headers[0].x1
    heads: list[dict[Path, Found]] = []
    for gap in gaps[:-1]:
        heads.append({q.path: f for q in table.columns if (f := labelled(q, gap.lines, x0, x1, _names(table)))})
    title = next((q for q in table.columns if q.kind in ("text", "name", "id", "enum", "date")), None)
    if title is not None and not any(title.path in f for f in heads):
        for gap, found in zip(gaps, heads, strict=False):
            if heading := heading_text(gap, grid):
                found[title.path] = heading
    keys = [tuple(f[q.path].text if q.path in f else None for q in table.columns if q.kind not in ("number", "percent")) for f in heads]
    entries: list[Row] = []
    for numbers in group_rows(grid, keys):
        raws = [grid.rows[i] for i in numbers]
        page, top, bottom = rows_span(raws)
        entry = Row(page=page, top=top, bottom=bottom)
        entry.nested[inner.path] = [_row(reader, raw) for raw in raws]
        for query in table.columns:
            found = heads[numbers[0]].get(query.path)
            if found is None and query.kind in ("number", "percent"):
                found = summed(query, gaps[numbers[-1] + 1].lines, x0, x1)
            value = reader.value(query, found.text) if found else None
            if found and value is not None:
                entry.cells[query.path] = Cell(found.text, found.tokens, value, found.page, 0.7)
        entries.append(entry)
    return _result(grid, entries, len(inner.columns))
