"""The columns of a table: where they stand, what their cells hold, and which property each one answers."""

from __future__ import annotations

import functools
import re
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from pagelift.core import Box, union
from pagelift.evidence import find_dates, parse_number
from pagelift.layout.lines import Line, PageLayout, Segment, Token
from pagelift.layout.query import Query
from pagelift.layout.table_headers import FAMILIES, HeaderCell, cell_match
from pagelift.layout.values import Locale

DAY_MONTH = re.compile(r"(?<!\d)(0?[1-9]|[12]\d|3[01])\s?[./-]\s?(0?[1-9]|[12]\d|3[01])(?!\d)\.?")
_CLOCK = re.compile(r"\d{1,2}[:h]\d{2}(?:[:.]\d{2}){0,2}(?:\s?[AaPp]\.?[Mm]\.?)?|\d{1,2}:\d{2}(?::\d{2})?\.\d+")
_CODE = re.compile(r"(?=.*\d)[\w./#-]+")
SWITCH_COST = 0.9
"""Cost of a column change inside a phrase; a wide gap costs nothing."""
SAME_COST = 0.6
"""Cost of two separate phrases of one line in the same column."""


@dataclass(slots=True, eq=False)
class Column:
    """x0, x1: the range in points that its cells fill. left, right: the edges that most cells share, None when ragged.
    kinds: how many cells look like number, percent, date, clock, code, text."""

    heading: HeaderCell | None
    x0: float
    x1: float
    left: float | None = None
    right: float | None = None
    kinds: Counter[str] = field(default_factory=Counter)

    @property
    def main_kind(self) -> str:
        return self.kinds.most_common(1)[0][0] if self.kinds else ""


@dataclass(slots=True, eq=False)
class Cells:
    """One line of a table's body. cells: column number to tokens, left to right."""

    page: PageLayout
    line: int
    cells: dict[int, list[Token]]

    @property
    def box(self) -> Box:
        return self.page.lines[self.line].box

    def text(self, column: int) -> str:
        return " ".join(t.text for t in self.cells.get(column, ()))


@functools.lru_cache(50_000)
def kind_of(text: str) -> str:
    """The look of a cell: number, percent, date, clock, code or text."""
    body = text.strip()
    if not re.search(r"\d", body):
        return "text"
    if (
        (next(find_dates(body), None) is not None
        and len(re.sub(r"[\W\d]", "", body)) < 14)
        or (DAY_MONTH.fullmatch(body)
        and re.search(r"\D\d\d", body))
    ):
        number = parse_number(body)
        if number is None or DAY_MONTH.fullmatch(body) is None or body.endswith(".") or re.search("[/-]", body):
            return "date"
    if _CLOCK.fullmatch(body):
        return "clock"
    number = parse_number(body)
    if number is not None:
        return "percent" if number.percent else "number"
    if amount_with_unit(body):
        return "number"
    return "code" if _CODE.fullmatch(body) else "text"


def amount_with_unit(text: str) -> str | None:
    """The number of a text like "3 Stk.", "100,0000Stk.", "1.180,00 S", "2 Tag(e)", "$ 5.00 each", or None."""
    found = re.fullmatch(
        r"(?:[$€£¥]\s?|[A-Z]{2,3}\s)?([-+−–(]?\s?[$€£]?\s?\d[\d.,'’ ]*\)?-?)\s?(?:[^\W\d_µ°/%][^\W\d_]{0,11}[.²³]?(?:\([^\W\d_]{1,3}\))?|[m]\d)(?:/[A-Za-z]+\.?)?",
        text,
    )
    return found[1].strip() if found else None


def columns_of(cells: Sequence[HeaderCell]) -> list[Column]:
    return [Column(c, c.box.x0, c.box.x1) for c in cells]


def align(lines: Sequence[tuple[PageLayout, int]], columns: list[Column], learn: bool = True) -> list[Cells]:
    """Give the words of every line to columns. learn: first set the columns' edges and kinds from these lines."""
    if learn:
        _learn(columns, [Cells(p, i, _assign(p.lines[i], columns, p.unit)) for p, i in lines])
    return [Cells(p, i, _assign(p.lines[i], columns, p.unit)) for p, i in lines]


def _assign(line: Line, columns: Sequence[Column], unit: float) -> dict[int, list[Token]]:
    """The best order-keeping assignment of the line's phrases to columns (a shortest path, left to right)."""
    chunks = [c for seg in line.segments for c in _chunks(seg, columns)]
    count = len(columns)
    if not chunks or not count:
        return {}
    score = [_affinity(chunks[0], c, unit) for c in columns]
    back: list[list[int]] = []
    for previous, chunk in zip(chunks, chunks[1:], strict=False):
        gap = chunk[0].box.x0 - previous[-1].box.x1
        loose = gap > 0.85 * unit
        switch = 0.0 if loose else SWITCH_COST * (1 - max(0.0, gap) / (0.85 * unit)) + 0.1
        stay = SAME_COST if loose else 0.0
        best, best_at, steps, updated = -1e9, 0, [], []
        for i, column in enumerate(columns):
            if i and score[i - 1] - switch > best:
                best, best_at = score[i - 1] - switch, i - 1
            here = score[i] - stay
            came, at = (here, i) if here >= best else (best, best_at)
            updated.append(came + _affinity(chunk, column, unit))
            steps.append(at)
        score = updated
        back.append(steps)
    position = score.index(max(score))
    found: dict[int, list[Token]] = {}
    for number in range(len(chunks) - 1, -1, -1):
        found.setdefault(position, [])[:0] = chunks[number]
        if number:
            position = back[number - 1][position]
    return found


def _chunks(seg: Segment, columns: Sequence[Column]) -> list[list[Token]]:
    """A segment, or its single words where it reaches over several columns."""
    if len(seg.tokens) == 1:
        return [seg.tokens]
    covered = sum(seg.box.overlap_x(Box(c.x0, 0, c.x1, 1)) > 0.3 * min(c.x1 - c.x0, seg.box.width) for c in columns)
    if covered < 2:
        return [seg.tokens]
    return [[t] for t in seg.tokens]


def _affinity(chunk: list[Token], column: Column, unit: float) -> float:
    """How well a phrase stands in a column: sum of overlap or distance, shared edge, and kind."""
    x0, x1 = chunk[0].box.x0, chunk[-1].box.x1
    overlap = min(x1, column.x1) - max(x0, column.x0)
    if overlap > 0:
        score = 1 + overlap / max(1.0, min(x1 - x0, column.x1 - column.x0))
    else:
        score = max(-4.0, 1 + overlap / (4 * unit))
    if (column.left is not None and abs(x0 - column.left) < 0.35 * unit) or (column.right is not None and abs(x1 - column.right) < 0.35 * unit):
        score += 0.8
    total = column.kinds.total()
    if total > 2:
        share = column.kinds[kind_of(" ".join(t.text for t in chunk))] / total
        score += 0.6 * share - (0.3 if share == 0 else 0.0)
    return score


def _learn(columns: list[Column], body: Sequence[Cells]) -> None:
    """Edges, range and kinds of the columns from lines that fill at least two of them."""
    rows = [c for c in body if len(c.cells) > 1] or list(body)
    for number, column in enumerate(columns):
        boxes = []
        for row in rows:
            tokens = row.cells.get(number)
            if tokens:
                boxes.append(union(t.box for t in tokens))
                column.kinds[kind_of(row.text(number))] += 1
        if not boxes:
            continue
        lefts, rights = [b.x0 for b in boxes], [b.x1 for b in boxes]
        unit = body[0].page.unit
        column.left = _shared(lefts, unit)
        column.right = _shared(rights, unit)
        if len(boxes) > 1:
            column.x0, column.x1 = sorted(lefts)[len(lefts) // 8], sorted(rights)[-1 - len(rights) // 8]
        else:
            column.x0, column.x1 = min(column.x0, lefts[0]), max(column.x1, rights[0])


def _shared(edges: list[float], unit: float) -> float | None:
    """The edge at which at least half of the cells stand."""
    middle = statistics.median(edges)
    near = sum(abs(e - middle) < 0.3 * unit for e in edges)
    return middle if len(edges) > 1 and near >= 0.5 * len(edges) else None


def assign_queries(queries: Sequence[Query], columns: Sequence[Column], body: Sequence[Cells], locale: Locale) -> dict[int, int]:
    """Query number to column number, one to one: the greatest sum of heading, kind, arithmetic and position."""
    fits = [[_fit(q, c) for c in columns] for q in queries]
    labels = [[cell_match(q, c.heading) if c.heading else 0.0 for c in columns] for q in queries]
    bonus = _arithmetic(queries, columns, body, locale)
    pairs = []
    for qi, query in enumerate(queries):
        for ci in range(len(columns)):
            evidence = labels[qi][ci] + bonus.get((qi, ci), 0.0)
            score = 2.0 * labels[qi][ci] + fits[qi][ci] + bonus.get((qi, ci), 0.0) + _position(query, ci, columns)
            if evidence >= 0.3 and score > 0.9:
                pairs.append((score, qi, ci))
    chosen: dict[int, int] = {}
    for _, qi, ci in sorted(pairs, key=lambda p: (-p[0], p[1], p[2])):
        if qi not in chosen and ci not in chosen.values():
            chosen[qi] = ci
    _fall_back(queries, columns, chosen)
    return chosen


def _fit(query: Query, column: Column) -> float:
    """Whether the column's cells look like the property, in [-1.5, 1]."""
    total = column.kinds.total()
    if not total:
        return 0.0
    kinds = column.kinds
    share = {
        "number": kinds["number"] + 0.1 * kinds["code"],
        "percent": kinds["percent"] + 0.7 * kinds["number"],
        "date": kinds["date"],
        "datetime": kinds["date"],
        "time": kinds["clock"] + 0.3 * kinds["number"],
        "id": kinds["code"] + kinds["number"] + 0.5 * kinds["text"],
        "name": kinds["text"],
        "address": kinds["text"],
    }.get(
        query.kind, total if query.kind == "enum" else kinds["text"] + kinds["code"] * 0.8 + kinds["clock"] * 0.8 + kinds["number"] * 0.4
    ) / total
    if query.kind in ("number", "percent", "date", "datetime"):
        return 1.0 if share > 0.6 else 2.5 * share - 1.5 if share < 0.6 else share
    return 1.6 * share - 0.6


def _position(query: Query, number: int, columns: Sequence[Column]) -> float:
    """Small priors: a line total stands far right, a rank or position far left, an item's name before the numbers."""
    place = number / max(1, len(columns) - 1)
    if query.kind == "number" and query.label & {"amount", "total", "net", "gross"}:
        return 0.25 * place
    if query.label & {"rank", "position"} or query.label & FAMILIES[0]:
        return 0.1 * (1 - place)
    return 0.0


def is_price(query: Query) -> bool:
    return query.kind == "number" and bool(query.label & {"price", "unit"} and "qty" not in query.label)


def is_quantity(query: Query) -> bool:
    return query.kind == "number" and bool(query.label & {"qty", "hours"}) and not is_price(query)


def is_amount(query: Query) -> bool:
    return (
        query.kind == "number"
        and bool(query.label & {"amount", "total", "net", "gross", "value"})
        and not query.label & {"price", "tax", "qty", "discount"}
    )


def _arithmetic(queries: Sequence[Query], columns: Sequence[Column], body: Sequence[Cells], locale: Locale) -> dict[tuple[int, int], float]:
    """Evidence that three columns are quantity, price and amount: their product holds in the rows."""
    quantity = next((i for i, q in enumerate(queries) if is_quantity(q)), None)
    price = next((i for i, q in enumerate(queries) if is_price(q)), None)
    amount = next((i for i, q in enumerate(queries) if is_amount(q)), None)
    if amount is None or (quantity is None and price is None):
        return {}
    numeric = [i for i, c in enumerate(columns) if c.kinds["number"] >= 0.4 * max(1, c.kinds.total())]
    table = [{i: v for i in numeric if (v := cell_number(row.text(i), locale)) is not None} for row in body]
    table = [row for row in table if len(row) >= 3]
    best: tuple[float, tuple[int, int, int]] | None = None
    for k in numeric:
        for i in numeric:
            for j in numeric:
                if len({i, j, k}) < 3 or k < max(i, j) - 1:
                    continue
                rows = [r for r in table if i in r and j in r and k in r]
                holds = sum(abs(r[i] * r[j] - r[k]) <= max(0.011, 0.002 * abs(r[k])) for r in rows)
                plain = sum(r[i] == 1 or r[j] == 1 for r in rows)
                score = holds / max(1, len(rows)) if holds and holds >= 0.5 * len(rows) else 0.0
                score += (
                    0.05 * (k / len(columns))
                    - 0.3 * (plain == len(rows))
                    + (0.1 if sum(r[i] % 1 == 0 for r in rows) > sum(r[j] % 1 == 0 for r in rows) else 0.0)
                )
                if score > 0.5 and (best is None or score > best[0]):
                    best = score, (i, j, k)
    if best is None:
        return {}
    places = zip((quantity, price, amount), best[1], strict=True)
    return {(q, c): 0.7 for q, c in places if q is not None}


def cell_number(text: str, locale: Locale) -> float | None:
    number = parse_number(text, locale.mark)
    if number is None:
        body = amount_with_unit(text)
        number = parse_number(body, locale.mark) if body else None
    return None if number is None or number.percent else float(number.value)


def _fall_back(queries: Sequence[Query], columns: Sequence[Column], chosen: dict[int, int]) -> None:
    """Properties without a matching heading: the widest text column is the item's name, the last numeric one its amount."""
    free = [i for i in range(len(columns)) if i not in chosen.values()]
    for qi, query in enumerate(queries):
        if qi in chosen:
            continue
        options: list[int] = []
        if query.label & FAMILIES[0] or (query.kind in ("name", "text") and query.label & FAMILIES[2]):
            if not any(other in chosen and queries[other].label & FAMILIES[0] for other in range(len(queries))):
                options = sorted((i for i in free if _fit(query, columns[i]) > 0.3), key=lambda i: columns[i].x1 - columns[i].x0)
        elif is_amount(query) and not any(is_amount(queries[other]) for other in chosen):
            options = [
                i for i in free if columns[i].kinds["number"] > 0.6 * columns[i].kinds.total() > 0 and i >= max(chosen.values(), default=0)
            ]
        elif query.kind in ("date", "datetime"):
            options = [i for i in free if _fit(query, columns[i]) > 0.5]
            options = options if len(options) == 1 else []
        if options:
            chosen[qi] = options[-1]
            free.remove(options[-1])
