"""The columns of a table: where they stand, what their cells hold, and which property each one answers."""

from __future__ import annotations

import functools
import re
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from pagelift.core import Box, union
from pagelift.evidence import find_dates, parse_number
from pagelift.evidence.dates import MONTHS
from pagelift.layout.lines import WIDE_GAP, Line, PageLayout, Segment, Token
from pagelift.layout.table_headers import HeaderCell

DAY_MONTH = re.compile(r"(?<!\d)(0?[1-9]|[12]\d|3[01])\s?[./-]\s?(0?[1-9]|[12]\d|3[01])(?!\d)\.?")
_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
DAY_MONTH_NAME = re.compile(rf"(?<!\d)(\d{{1,2}})(?:\.|st|nd|rd|th)?[\s-]?(?:de\s)?({_MONTH})\.?|\b({_MONTH})\.?\s?(\d{{1,2}})(?!\d)", re.I)
_PADDED = re.compile(r"[0-3]\d[./-][0-3]\d\.?")
_DATE_HEADINGS = frozenset({"date", "day", "value", "transaction", "time"})
_WITH_UNIT = re.compile(
    r"(?:[$€£¥]\s?|[A-Z]{2,3}\s)?([-+−–(]?\s?[$€£]?\s?\d[\d.,'’ ]*\)?-?)\s?"
    r"(?:(?:10\^?\d+)?/?[^\W\d_][^\W\d_]{0,11}[.²³]?(?:\([^\W\d_]{1,3}\))?|m\d|/\s?\d+)(?:/[A-Za-zµμ]+\.?)?"
)
_CLOCK = re.compile(r"\d{1,2}[:h]\d{2}(?:[:.]\d{2}){0,2}(?:\s?[AaPp]\.?[Mm]\.?)?|\d{1,2}:\d{2}(?::\d{2})?\.\d+")
_CODE = re.compile(r"(?=.*\d)[\w./#-]+")
_MEASURES = ("number", "percent", "date", "clock")
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

    @property
    def is_numeric(self) -> bool:
        return self.main_kind in _MEASURES


@dataclass(slots=True, eq=False)
class Cells:
    """One line of a table's body. cells: column number to tokens, left to right. x0, x1: the table's part of the page.
    region: count of the column headings above. shift: how far right its columns stand from those of the first heading, in
    points."""

    page: PageLayout
    line: int
    cells: dict[int, list[Token]]
    x0: float = float("-inf")
    x1: float = float("inf")
    region: int = 0
    shift: float = 0.0

    @property
    def box(self) -> Box:
        return self.page.lines[self.line].box

    @property
    def segments(self) -> list[Segment]:
        return within(self.page.lines[self.line], self.x0, self.x1)

    @property
    def left(self) -> float:
        """Left edge in points, as if the line stood under the first heading."""
        return self.segments[0].box.x0 - self.shift

    @property
    def right(self) -> float:
        return self.segments[-1].box.x1 - self.shift

    def text(self, column: int) -> str:
        return " ".join(t.text for t in self.cells.get(column, ()))


@functools.lru_cache(50_000)
def kind_of(text: str) -> str:
    """The look of a cell: number, percent, date, clock, code or text."""
    body = text.strip()
    if not re.search(r"\d", body):
        return "text"
    if DAY_MONTH_NAME.fullmatch(body):
        return "date"
    if (next(find_dates(body), None) is not None and len(re.sub(r"[\W\d]", "", body)) < 14) or (
        DAY_MONTH.fullmatch(body) and re.search(r"\D\d\d", body)
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
    found = _WITH_UNIT.fullmatch(text)
    return found[1].strip() if found else None


def columns_of(cells: Sequence[HeaderCell]) -> list[Column]:
    return [Column(c, c.box.x0, c.box.x1) for c in cells]


def within(line: Line, x0: float, x1: float) -> list[Segment]:
    """The segments of a line in one part of the page."""
    return [s for s in line.segments if x0 <= s.box.center_x <= x1]


def align(lines: Sequence[tuple[PageLayout, int]], columns: list[Column], x0: float, x1: float, learn: bool = False) -> list[Cells]:
    """Give the words of every line between x0 and x1 to columns. learn: first set the columns' edges and kinds from them."""
    body = [Cells(p, i, _assign(within(p.lines[i], x0, x1), columns, p.unit), x0, x1) for p, i in lines]
    if learn:
        _learn(columns, body)
    return body


def _assign(segments: Sequence[Segment], columns: Sequence[Column], unit: float) -> dict[int, list[Token]]:
    """The best order-keeping assignment of phrases to columns (a shortest path, left to right)."""
    if not segments or not columns:
        return {}
    if len(segments) == 1 and len(segments[0].tokens) > 3:
        start = segments[0].box.x0  # a line of running text is not cut
        own = next((i for i, c in enumerate(columns) if abs((c.left or c.x0) - start) < 0.4 * unit), None)
        if own is not None and not columns[own].is_numeric:
            return {own: segments[0].tokens}
    chunks = [c for seg in segments for c in _chunks(seg, columns, unit)]
    score = [_affinity(chunks[0], c, unit) for c in columns]
    back: list[list[int]] = []
    for previous, chunk in pairwise(chunks):
        gap = chunk[0].box.x0 - previous[-1].box.x1
        loose = gap > WIDE_GAP * unit
        switch = 0.0 if loose else SWITCH_COST * (1 - max(0.0, gap) / (WIDE_GAP * unit)) + 0.1
        stay = SAME_COST if loose else 0.0
        best, best_at = -1e9, 0
        steps: list[int] = []
        updated: list[float] = []
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
    return {i: _own_piece(tokens, columns[i], unit) for i, tokens in found.items()}


def _own_piece(tokens: list[Token], column: Column, unit: float) -> list[Token]:
    """The part of a cell that stands under the heading, when it is a value and more stands beyond a wide gap."""
    if len(tokens) == 1 or column.heading is None:
        return tokens
    pieces = [[tokens[0]]]
    for left, right in pairwise(tokens):
        if right.box.x0 - left.box.x1 > WIDE_GAP * unit:
            pieces.append([])
        pieces[-1].append(right)
    if len(pieces) == 1:
        return tokens
    box = column.heading.box
    own = [p for p in pieces if min(box.x1, p[-1].box.x1) > max(box.x0, p[0].box.x0)]
    text = " ".join(t.text for p in own for t in p)
    if own and (kind_of(text) != "text" or re.fullmatch(r"[A-Z]{2,4}", text)):
        return [t for p in own for t in p]
    return tokens


def _chunks(seg: Segment, columns: Sequence[Column], unit: float) -> list[list[Token]]:
    """A segment, or its pieces where it reaches over several columns: cut at wider gaps, between words and numbers, and
    where a word stands at the left edge of a column."""
    if len(seg.tokens) == 1:
        return [seg.tokens]
    covered = sum(min(c.x1, seg.box.x1) - max(c.x0, seg.box.x0) > 0.3 * min(c.x1 - c.x0, seg.box.width) for c in columns)
    if covered < 2:
        return [seg.tokens]
    gaps = [b.box.x0 - a.box.x1 for a, b in pairwise(seg.tokens)]
    usual = statistics.median_low(gaps)
    chunks = [[seg.tokens[0]]]
    for i, (gap, right) in enumerate(zip(gaps, seg.tokens[1:], strict=True), start=1):
        left, longer, rest = (" ".join(t.text for t in part) for part in (chunks[-1], [*chunks[-1], right], seg.tokens[i:]))
        if re.search(r"\d", left):
            changes = kind_of(left) in _MEASURES and (kind_of(longer) not in _MEASURES or _apart(chunks[-1][-1], right, columns))
        else:
            changes = kind_of(rest) in _MEASURES
        coded = re.search(r"\d", left) and len(chunks[-1]) == 1
        at_edge = (coded or gap > 1.08 * usual) and any(
            abs((c.x0 if c.left is None else c.left) - right.box.x0) < 0.25 * unit for c in columns
        )
        if changes or at_edge or gap > 1.4 * usual + 0.05 * unit:
            chunks.append([])
        chunks[-1].append(right)
    return chunks


def _apart(left: Token, right: Token, columns: Sequence[Column]) -> bool:
    """Whether a number and the word behind it stand under different headings."""

    def under(token: Token) -> int | None:
        return next((i for i, c in enumerate(columns) if c.heading and c.heading.box.x0 <= token.box.center_x <= c.heading.box.x1), None)

    first, second = under(left), under(right)
    return first is not None and second is not None and first != second


def _affinity(chunk: list[Token], column: Column, unit: float) -> float:
    """How well a phrase stands in a column: sum of overlap or distance, shared edge, and kind."""
    x0, x1 = chunk[0].box.x0, chunk[-1].box.x1
    overlap = min(x1, column.x1) - max(x0, column.x0)
    near = 1 + overlap / max(1.0, min(x1 - x0, column.x1 - column.x0))
    score = near if overlap > 0 else max(-4.0, 1 + overlap / (4 * unit))
    edges = ((x0, column.left), (x1, column.right))
    if any(edge is not None and abs(x - edge) < 0.35 * unit for x, edge in edges):
        score += 0.8
    total = column.kinds.total()
    if total > 2:
        kind = kind_of(" ".join(t.text for t in chunk))
        share = column.kinds[kind] / total
        score += 0.6 * share - (0.3 if share == 0 else 0.0) - (0.9 if share < 0.1 and kind == "text" else 0.0)
    return score


def _learn(columns: list[Column], body: Sequence[Cells]) -> None:
    """Edges and range of the columns from lines that fill at least two of them (else from all), kinds from all lines."""
    body = [c for c in body if c.cells and not (len(c.cells) < 3 and any(len(s.tokens) > 7 for s in c.segments))]
    for number, column in enumerate(columns):
        filled = [c for c in body if number in c.cells]
        texts = [c.text(number) for c in filled]
        column.kinds.update(map(kind_of, texts))
        if (
            column.heading
            and column.heading.concepts & _DATE_HEADINGS
            and sum(bool(_PADDED.fullmatch(t)) for t in texts) > 0.8 * len(texts)
        ):
            column.kinds = Counter(date=len(texts))  # "03.06" is also a number
        boxes = [union(t.box for t in c.cells[number]) for c in filled if len(c.cells) > 1] or [
            union(t.box for t in c.cells[number]) for c in filled
        ]
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
