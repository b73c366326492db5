"""A completeness check of lists: the entries that a model gives against the lines on the pages that look like them.

The entries that were found show what a row looks like: which columns its line has, and where. Other lines of the same look, which
belong to no entry, are rows that were left out.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pagelift.core import Box, Field, Json, PageContent
from pagelift.layout import extract_pages, lexicon
from pagelift.layout.lines import Line, PageLayout, Token, analyse_page
from pagelift.layout.table_rows import is_total
from pagelift.schema import Schema
from pagelift.schema.keywords import join
from pagelift.schema.nodes import Array, Node, Object

FEWEST = 2
"""Entries on lines of their own that show what a row looks like."""
USUAL = 0.8
"""A column belongs to the look of a row when so many of the entries have it."""
EDGE_PT = 4.0
MOST_PAGES = 12
"""Longer documents are not read again by the built-in engine for lists without entries."""
REACH = 3.0
"""Rows go on behind the last one while gaps are at most so many times the usual one."""
SUMS = frozenset(("total", "balance"))
LineId = tuple[int, int]
"""Page number, and number of the line on it."""


@dataclass(frozen=True, slots=True)
class RowCount:
    """A list, the entries that were given, and the rows seen: entries with a place on the pages, and lines that look like them."""

    pointer: str
    given: int
    seen: int

    @property
    def warning(self) -> str:
        """What to tell of a list whose counts differ."""
        if not self.given:
            return f"{self.pointer}: no entries were given, but a table with {self.seen} rows is seen on the pages; look there"
        if self.seen > self.given:
            return f"{self.pointer}: {self.given} entries were given, but {self.seen} rows are seen on the pages; some may be missing"
        return f"{self.pointer}: {self.given} entries were given, but only {self.seen} are seen on the pages; the others may be made up"


@dataclass(slots=True)
class _Column:
    """Where the values of a column begin and end, on the main lines of entries. shapes: of their first words, see `_shape`."""

    x0: float
    x1: float
    shapes: set[str]
    count: int = 1

    @property
    def digits(self) -> bool:
        return all("9" in shape for shape in self.shapes)


@dataclass(slots=True)
class _List:
    """The entries of one list: for each, its main line, None when nothing of it was found."""

    pointer: str
    lines: list[LineId | None] = field(default_factory=list)
    columns: dict[str, _Column] = field(default_factory=dict)


def count_rows(data: Json, fields: Mapping[str, Field], pages: Sequence[PageContent]) -> list[RowCount]:
    """The counts of every list of objects with entries."""
    layouts = {page.number: analyse_page(page) for page in pages}
    lists = [_read(pointer, rows, fields, layouts) for pointer, rows in _lists(data, "")]
    taken = {line for known in lists for line in known.lines if line is not None}
    counts = []
    for known in lists:
        found = [line for line in known.lines if line is not None]
        left_out = len(_left_out(known, found, layouts, taken)) if len(set(found)) >= FEWEST else 0
        seen = len(found) + max(0, left_out - (len(found) - len(set(found))))  # entries alike may have been placed on one line
        counts.append(RowCount(known.pointer, len(known.lines), seen))
    return counts


def count_in_tables(data: Json, pages: Sequence[PageContent], schema: Schema) -> list[RowCount]:
    """The counts of lists of objects that are empty although the built-in engine sees a table with matching headings."""
    empty = list(_empty_lists(schema.root, data, ""))
    if not empty or len(pages) > MOST_PAGES:
        return []
    read = extract_pages(pages, schema).data
    counts = [(pointer, _rows_at(read, pointer)) for pointer in empty]
    return [RowCount(pointer, 0, count) for pointer, count in counts if count >= FEWEST]


def _empty_lists(node: Node, data: Json, pointer: str) -> Iterator[str]:
    """Lists of objects outside of other lists that have no entries."""
    if isinstance(node, Object) and isinstance(data, dict):
        for name, child in node.properties.items():
            if name in data:
                yield from _empty_lists(child, data[name], join(pointer, name))
    elif isinstance(node, Array) and isinstance(node.items, Object) and data == []:
        yield pointer


def _rows_at(data: Json, pointer: str) -> int:
    for step in pointer.split("/")[1:]:
        data = data.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(data, dict) else None
    return len(data) if isinstance(data, list) else 0


def _lists(data: Json, pointer: str) -> Iterator[tuple[str, list[dict[str, Json]]]]:
    """Lists of objects with their entries."""
    if isinstance(data, dict):
        for name, value in data.items():
            yield from _lists(value, join(pointer, name))
    elif isinstance(data, list) and data:
        rows = [entry for entry in data if isinstance(entry, dict)]
        if len(rows) == len(data):
            yield pointer, rows
            for number, row in enumerate(rows):
                yield from _lists(row, f"{pointer}/{number}")


def _read(pointer: str, rows: Sequence[dict[str, Json]], fields: Mapping[str, Field], layouts: Mapping[int, PageLayout]) -> _List:
    known = _List(pointer)
    for number, row in enumerate(rows):
        places: dict[str, tuple[LineId, Field]] = {}
        anything = False
        for name in row:
            value = fields.get(join(pointer, number, name))
            if value is not None and value.page is not None and value.box is not None:
                line = _line_of(value.boxes[0] if value.boxes else value.box, layouts[value.page])
                anything = True
                if line is not None:
                    places[name] = (value.page, line), value
        lines = [line for line, _ in places.values()]
        main = max(lines, key=lines.count, default=None)
        known.lines.append(main if main is not None else (-1, number) if anything or _is_nested(row) else None)
        for name, (own, value) in places.items():
            if own == main and value.box is not None:
                _widen(known.columns, name, value.box, _shape((value.raw or " ").split(" ")[0]))
    return known


def _is_nested(row: Mapping[str, Json]) -> bool:
    """Whether a row is judged by what is in it, or says nothing that could be found."""
    return any(isinstance(value, dict | list) for value in row.values()) or all(v is None or isinstance(v, bool) for v in row.values())


def _line_of(box: Box, page: PageLayout) -> int | None:
    """The line that a box on the page as shown belongs to; none on turned pages."""
    if page.turned:
        return None
    shared = [(line.box.overlap_y(box), -number) for number, line in enumerate(page.lines) if line.box.overlap_x(box) > 0]
    best, number = max(shared, default=(0.0, 0))
    return -number if best > 0.5 * box.height else None


def _widen(columns: dict[str, _Column], name: str, box: Box, shape: str) -> None:
    known = columns.get(name)
    if known is None:
        columns[name] = _Column(box.x0, box.x1, {shape})
    else:
        known.x0, known.x1 = min(known.x0, box.x0), max(known.x1, box.x1)
        known.shapes.add(shape)
        known.count += 1


def _shape(word: str) -> str:
    """Which kind of word it is: a number with its marks, without sign, currency and groups of thousands, or letters."""
    bare = re.sub(r"^[^\w]+|[^\w]+$", "", word)
    grouped = re.sub(r"(?<=\d)[.,'’](?=\d{3}(?!\d))", "", bare)
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "9", grouped))


def _left_out(known: _List, found: Sequence[LineId], layouts: Mapping[int, PageLayout], taken: set[LineId]) -> list[LineId]:
    """Lines within reach of the entries that look like them and belong to no entry of any list."""
    look = [column for column in known.columns.values() if column.count >= USUAL * len(found)]
    if len(look) < 2 or not any(column.digits for column in look):
        return []
    out = []
    with_rows = {number for number, _ in found} - {-1}
    for number, page in layouts.items():
        own = sorted(line for at, line in set(found) if at == number)
        on_the_way = not own and min(with_rows) < number <= max(with_rows) + 1
        alike = [line for line in range(len(page.lines)) if (number, line) in taken or _looks_alike(page.lines[line], look)]
        for line in alike if on_the_way else _within_reach(own, alike, page):
            if (number, line) not in taken:
                out.append((number, line))
    return out


def _within_reach(own: Sequence[int], alike: Sequence[int], page: PageLayout) -> Iterator[int]:
    """Of lines that look alike those between entries, and those before and behind them as far as the spacing of rows goes on."""
    if not own:
        return
    tops = [page.lines[line].box.top for line in own]
    gaps = sorted(b - a for a, b in itertools.pairwise(tops))
    usual = max(gaps[len(gaps) // 2] if gaps else 0.0, 1.5 * page.unit)
    yield from (line for line in alike if own[0] <= line <= own[-1])
    behind, before = [line for line in alike if line > own[-1]], [line for line in alike if line < own[0]]
    for lines, at in ((behind, own[-1]), (before[::-1], own[0])):
        last = at
        for line in lines:
            between = page.lines[min(line, last) + 1 : max(line, last)]
            if abs(page.lines[line].box.top - page.lines[last].box.top) > REACH * usual or any(map(_is_sum, between)):
                break
            yield line
            last = line


def _looks_alike(line: Line, look: Sequence[_Column]) -> bool:
    """Whether every usual column has a value of its kind on the line, and the line is no total."""
    return not _is_sum(line) and all(any(_stands_in(token, column) for token in line.tokens) for column in look)


def _is_sum(line: Line) -> bool:
    """Whether a line states a total or a balance instead of an entry."""
    words = [token.text for token in line.tokens if not any(c.isdigit() for c in token.text)]
    return is_total(line.segments) or (0 < len(words) <= 4 and any(lexicon.bag(word) & SUMS for word in words))


def _stands_in(token: Token, column: _Column) -> bool:
    """Whether a word is a value of the column, or begins one."""
    x0, x1 = column.x0 - EDGE_PT, column.x1 + EDGE_PT
    if not column.digits:
        return x0 <= token.box.x0 <= x1 and ("a" in _shape(token.text) or not all("a" in shape for shape in column.shapes))
    return x0 <= token.box.center_x <= x1 and _shape(token.text) in column.shapes
