"""Arrays of objects: finds the table that a schema's array describes and reads its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pagelift.core import Json
from pagelift.layout import lexicon
from pagelift.layout.lines import PageLayout, Token
from pagelift.layout.query import Path, Query, Table, split_name
from pagelift.layout.table_assign import HEADED
from pagelift.layout.table_grid import Grid, best_grid
from pagelift.layout.table_groups import Found, Heading, gaps_between, group_rows, heading_text, labelled, rows_span, summed
from pagelift.layout.table_lists import find_list
from pagelift.layout.table_pages import unfold
from pagelift.layout.table_pairs import find_pairs
from pagelift.layout.table_rows import RawRow
from pagelift.layout.table_values import Reader, document_years, without_date
from pagelift.layout.values import Locale, read_value


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
    """rows: empty when nothing was found, with the reason. tokens: the words of the table, its headings included.
    row_tokens: those of the rows' values. score: how well headings and columns match, to compare tables."""

    rows: list[Row] = field(default_factory=list)
    confidence: float = 0.0
    reason: str = ""
    tokens: list[Token] = field(default_factory=list)
    row_tokens: list[Token] = field(default_factory=list)
    score: float = 0.0


def find_tables(pages: Sequence[PageLayout], tables: Sequence[Table], locale: Locale) -> list[TableResult]:
    """The entries of all arrays of objects of a schema. Two arrays never take the same lines: the better match keeps them."""
    results = [find_table(pages, table, locale) for table in tables]
    order = sorted(range(len(results)), key=lambda i: -results[i].score)
    taken: set[int] = set()
    for i in order:
        result = results[i]
        words = {id(t) for t in result.row_tokens}
        if result.rows and len(words & taken) > 0.3 * len(words):
            results[i] = TableResult(reason="the matching table holds the entries of another array")
        else:
            taken |= words
    return results


def find_table(pages: Sequence[PageLayout], table: Table, locale: Locale) -> TableResult:
    """The entries of one array of objects with confidence, the words used, and the reason when there are none."""
    pages = unfold(pages, [q for t in (table, *table.nested) for q in t.columns])
    inner = max(table.nested, key=lambda t: len(t.columns), default=None)
    if inner is not None and len(inner.columns) > 1:
        return _find_groups(pages, table, inner, locale)
    if not table.columns:
        return TableResult(reason="the items have no scalar properties")
    grid = best_grid(pages, table.columns, _names(table), locale) or find_list(pages, table)
    if grid is None:
        return _find_pairs(pages, table, locale)
    reader = Reader(grid, table.columns, locale, document_years(pages, locale))
    rows = [_row(reader, raw) for raw in grid.rows]
    _fill_from_headings(grid, table.columns, reader, rows)
    rows = [r for r in rows if _is_row(r, grid, table.columns)]
    return _result(grid, rows, len(table.columns))


def _names(table: Table) -> frozenset[str]:
    """Concepts of the array's own name, which headings of its items and headings above the table use."""
    return lexicon.bag(split_name(table.path[-1]) if table.path else "") - {"position"}


def _result(grid: Grid, rows: list[Row], wanted: int) -> TableResult:
    if not rows:
        return TableResult(reason="the table has no rows")
    tokens = [t for h in grid.headers for c in h.cells for p in c.phrases for t in p]
    tokens += [t for raw in grid.rows for line in raw.lines for cell in line.cells.values() for t in cell]
    values = [t for row in rows for t in _value_tokens(row)]
    confidence = min(0.95, 0.3 + 0.5 * len(grid.answers.chosen) / max(1, wanted))
    return TableResult(rows, confidence, "", tokens, values, grid.score)


def _value_tokens(row: Row) -> Iterator[Token]:
    for cell in row.cells.values():
        yield from cell.tokens
    for entries in row.nested.values():
        for entry in entries:
            yield from _value_tokens(entry)


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
        if i not in grid.answers.chosen and q.kind in ("text", "name") and HEADED.search(f"{q.words} {q.description}")
    ]
    if not open_:
        return
    current: Found | None = None
    for gap, row in zip(gaps_between(grid), rows, strict=False):
        current = heading_text(gap, grid) or current
        if current is not None:
            for query in open_:
                row.cells[query.path] = Cell(current.text, current.tokens, reader.value(query, current.text), current.page, 0.7)


def _add_headings(grid: Grid, gaps: list[Heading], heads: list[dict[Path, Found]], queries: Sequence[Query], reader: Reader) -> None:
    """Entries without labels are named by the headings over their rows: the first text property, and a date in the heading."""
    title = next((q for q in queries if q.kind in ("text", "name", "id", "enum")), None)
    date = next((q for q in queries if q.kind == "date"), None)
    if any(q and any(q.path in f for f in heads) for q in (title, date)) or not (title or date):
        return
    for gap, found in zip(gaps, heads, strict=False):
        heading = heading_text(gap, grid)
        if heading is None:
            continue
        rest = heading
        if date is not None and reader.value(date, heading.text) is not None:
            found[date.path] = heading
            rest = Found(without_date(heading.text), heading.tokens, heading.page)
        if title is not None and rest.text:
            found[title.path] = rest


def _is_row(row: Row, grid: Grid, queries: Sequence[Query]) -> bool:
    """Whether values from two columns were read, or from the only one that items of one or two properties need. Of entries
    without headings, which are found by a value that need not be asked for, the name is enough."""
    filled = {grid.answers.chosen.get(i, -1) for i, q in enumerate(queries) if q.path in row.cells}
    named = grid.model.starts is not None and bool(filled & grid.model.texts)
    return len(filled) > 1 or (len(filled) == 1 and len(queries) < 3) or named


def _find_pairs(pages: Sequence[PageLayout], table: Table, locale: Locale) -> TableResult:
    """Entries of a name and a remark under a heading."""
    rows = []
    for pair in find_pairs(pages, table.columns, _names(table)):
        row = Row(page=pair.page.number, top=pair.top, bottom=max(t.box.bottom for t in pair.tokens))
        for query, text in zip(table.columns, (pair.name, pair.remark), strict=False):
            value = read_value(query, text, locale) if text else None
            if text and value is not None:
                row.cells[query.path] = Cell(text, pair.tokens, value, pair.page, 0.6)
        rows.append(row)
    rows = [r for r in rows if r.cells]
    if not rows:
        return TableResult(reason="no table with matching headings and no list of such entries found")
    tokens = [t for r in rows for c in r.cells.values() for t in c.tokens]
    return TableResult(rows, 0.6, "", tokens, tokens, 1.0)


def _find_groups(pages: Sequence[PageLayout], table: Table, inner: Table, locale: Locale) -> TableResult:
    """Entries with nested arrays: one table of inner rows, cut into groups by the headings between them."""
    names = _names(inner) | _names(table)
    grid = best_grid(pages, inner.columns, names, locale) or find_list(pages, inner)
    if grid is None:
        return TableResult(reason="no table with matching headings found for the nested entries")
    reader = Reader(grid, inner.columns, locale, document_years(pages, locale))
    gaps = gaps_between(grid)
    x0, x1 = grid.headers[0].x0, grid.headers[0].x1
    heads: list[dict[Path, Found]] = []
    for gap in gaps[:-1]:
        heads.append({q.path: f for q in table.columns if (f := labelled(q, gap.lines, x0, x1, _names(table)))})
    _add_headings(grid, gaps, heads, table.columns, reader)
    keys = [tuple(f[q.path].text if q.path in f else None for q in table.columns if q.kind not in ("number", "percent")) for f in heads]
    entries: list[Row] = []
    for numbers in group_rows(keys):
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
