"""The values of a table's cells."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from pagelift.core import Json
from pagelift.evidence import find_dates
from pagelift.evidence.dates import MONTHS
from pagelift.layout import lexicon
from pagelift.layout.lines import PageLayout, Token
from pagelift.layout.query import Query
from pagelift.layout.table_assign import cell_number
from pagelift.layout.table_columns import DAY_MONTH, DAY_MONTH_NAME, Column, amount_with_unit
from pagelift.layout.table_counts import counted_price
from pagelift.layout.table_grid import TEXT_KINDS, Grid
from pagelift.layout.table_headers import label_match
from pagelift.layout.table_rows import BARE_CODE, RawRow
from pagelift.layout.table_shared import COUNTED, Part
from pagelift.layout.values import Locale, read_value

Reading = tuple[str, list[Token], Json, PageLayout]

_BARE_NAMES = re.compile(r"names? (?:only|without)|without (?:academic )?titles", re.I)
_TITLES = re.compile(r"\b(?:prof|dr|dipl\.?-?\s?\w+|mag|ing|med|mr|mrs|ms|sir|herr|frau)\.?\s(?=\S)", re.I)
_FIRST_LINE = re.compile(r"first line|first row|main line|headline|heading of|without (?:the )?(?:further|additional) ", re.I)
_ALL_LINES = re.compile(
    r"\ball lines\b|complete (?:text|description)|full (?:text|description)|including (?:continuation|following|further) lines", re.I
)
_LABELLED = re.compile(r"[^\W\d_][\w .-]{1,24}\s?:|\S*(?:nr|no|ref|id)\b[.:]", re.I)


def document_years(pages: Sequence[PageLayout], locale: Locale) -> list[datetime.date]:
    """All complete dates of the document, most frequent years first: what dates without a year are completed from."""
    texts = [s.text for p in pages for line in p.lines for s in line.segments if re.search(r"(?:19|20)\d\d|\d[./-]\d\d", s.text)]
    found = [(t[s.start : s.end], s.date) for t in texts for s in find_dates(t, locale.order)]
    full = [date for text, date in found if re.search(r"(?:19|20)\d\d", text)] or [date for _, date in found]
    years = Counter(d.year for d in full)
    return sorted(full, key=lambda d: -years[d.year])


def read_cell(query: Query, text: str, locale: Locale, known: Sequence[datetime.date]) -> Json | None:
    """The value of a cell, or None; accepts units behind numbers and dates without a year."""
    text = text.strip()
    marks = (
        query.kind == "boolean"
        or (query.label & {"unit"} and re.search("[%‰°]", text))
        or ("flag" in query.words and re.search("[*+!]", text))
    )
    if not re.search(r"\w", text) and not marks:
        return None
    value = read_value(query, text, locale)
    if value is not None:
        return value
    if query.kind in ("number", "percent"):
        body = amount_with_unit(text)
        if body is None:
            found = re.match(r"[-+]?\d[\d.,]*(?=\s)", text) or re.search(r"(?<=\s)[-+]?\d[\d.,]*$", text)
            body = found[0] if found else None
        number = read_value(query, body, locale) if body else None
        if number is None and body and cell_number(body, locale) is not None and query.node.types == ("integer",):
            return None
        return number
    if query.kind == "date":
        return complete_date(text, locale, known)
    return None


def complete_date(text: str, locale: Locale, known: Sequence[datetime.date]) -> str | None:
    """A day and month as an ISO date in the year that the document's complete dates suggest."""
    match = DAY_MONTH.search(text)
    named = DAY_MONTH_NAME.search(text)
    if not known or not (match or named):
        return None
    if named:
        month, day = MONTHS[(named[2] or named[3]).lower()], int(named[1] or named[4])
    elif match:
        first, second = int(match[1]), int(match[2])
        month, day = (first, second) if locale.order == "mdy" else (second, first)
    if month > 12:
        month, day = day, month
    options = []
    for year in {d.year for d in known} | {d.year - 1 for d in known[:1]}:
        try:
            date = datetime.date(year, month, day)
        except ValueError:
            continue
        options.append((min(abs((date - k).days) for k in known), date))
    return min(options)[1].isoformat() if options else None


@dataclass(slots=True, eq=False)
class Reader:
    """Reads the values of rows. known: complete dates of the document, from which dates without a year are completed."""

    grid: Grid
    queries: Sequence[Query]
    locale: Locale
    known: Sequence[datetime.date]

    def value(self, query: Query, text: str) -> Json | None:
        if _BARE_NAMES.search(query.description):
            text = _TITLES.sub(" ", re.sub(r"\([^)]*\)", " ", text)).strip(" ,")
        if query.many:
            pieces = [p for p in re.split(r"\s*[;,|•·/]\s+|\s*;\s*|\s+(?:and|und|et|y|e|en|&)\s+", text) if p.strip()]
            return [v for p in pieces if (v := read_cell(query, p, self.locale, self.known)) is not None] or None
        return read_cell(query, text, self.locale, self.known)

    def read(self, raw: RawRow, number: int) -> Reading | None:
        """One property of one row: text, words, value and page; None when the row does not state it."""
        answers = self.grid.answers
        if number not in answers.chosen:
            return None
        column, query = answers.chosen[number], self.queries[number]
        if number in answers.parts:
            return self._read_part(raw, column, query, answers.parts[number])
        if number in answers.credit:
            return self._read_signed(raw, column, answers.credit[number], query)
        if query.kind in TEXT_KINDS:
            return self._read_text(raw, column, query)
        return self._read_value(raw, column, query)

    def _read_value(self, raw: RawRow, column: int, query: Query) -> Reading | None:
        for cells in raw.lines:
            text = cells.text(column)
            value = self.value(query, text) if text else None
            if query.kind == "id" and not re.search(r"\d", text) and not BARE_CODE.fullmatch(text):
                continue
            if text and query.kind == "number" and "string" in query.node.types and (value is None or re.match(r"0\d", text)):
                value = text
            if value is not None:
                return text, cells.cells[column], value, cells.page
        return None

    def _read_signed(self, raw: RawRow, debit: int, credit: int, query: Query) -> Reading | None:
        for column, sign in ((debit, -1), (credit, 1)):
            found = self._read_value(raw, column, query)
            if found is not None and isinstance(found[2], int | float) and found[2] != 0:
                value = found[2] if sign > 0 else -abs(found[2])
                return found[0], found[1], value, found[3]
        return None

    def _read_part(self, raw: RawRow, column: int, query: Query, part: Part) -> Reading | None:
        if part == "below":
            return self._read_below(raw, column, query)
        if part in ("lead", "rest", "first", "last"):
            return self._read_divided(raw, column, query, part)
        for cells in raw.lines:
            text = cells.text(column)
            piece = part_of(text, part)
            value = self.value(query, piece) if piece else None
            if piece and value is not None:
                return piece, cells.cells[column], value, cells.page
        return None

    def _read_divided(self, raw: RawRow, column: int, query: Query, part: Part) -> Reading | None:
        """A count before the item's name or the name behind it; the first or the last date or time of a period."""
        lines = [(c.page, c.cells[column]) for c in raw.lines if column in c.cells]
        if not lines:
            return None
        page = lines[0][0]
        if part in ("lead", "rest"):
            tokens, limit = lines[0][1], page.width * 0.97
            counted = COUNTED.match(" ".join(t.text for t in tokens))
            skip = len(counted[0].split()) if counted else 0
            if part == "lead":
                value = self.value(query, counted[1]) if counted else None
                return (counted[1], tokens[:skip], value, page) if counted and value is not None else None
            rest = [tokens[skip:] or tokens, *(t for p, t in lines[1:] if p is page)]
            tokens = item_lines(query, rest, limit, page.unit)
            text = " ".join(t.text for t in tokens)
            value = self.value(query, text)
            return (text, tokens, value, page) if value is not None else None
        tokens = [t for _, found in lines for t in found]
        ends = period_ends(" ".join(t.text for t in tokens))
        piece = ends[0] if part == "first" else ends[1]
        if piece and query.kind not in ("number", "date", "datetime") and "as printed" not in query.description:
            piece = clock_text(piece)
        value = self.value(query, piece) if piece else None
        return (piece, tokens, value, page) if piece and value is not None else None

    def _read_below(self, raw: RawRow, column: int, query: Query) -> Reading | None:
        """The text under a code in the same column: the second line of the cell and what wraps from it."""
        lines = [(c.page, c.cells[column]) for c in raw.lines if column in c.cells]
        if len(lines) < 2:
            return None
        page = lines[1][0]
        tokens = item_lines(query, [t for p, t in lines[1:] if p is page], page.width * 0.97, page.unit)
        text = " ".join(t.text for t in tokens)
        value = self.value(query, text)
        return (text, tokens, value, page) if value is not None else None

    def _read_text(self, raw: RawRow, number: int, query: Query) -> Reading | None:
        columns = self.grid.columns
        lines = [(c, c.cells[number]) for c in raw.lines if number in c.cells]
        if not lines:
            return None
        page = lines[0][0].page
        usable = [tokens for c, tokens in lines if c.page is page]
        skip = _skipped_lines(query, columns[number])
        usable = usable[skip:] if len(usable) > skip else usable
        right = [c.x0 for c in columns[number + 1 :]] + [c.heading.box.x0 for c in columns[number + 1 :] if c.heading]
        limit = min(right) + lines[0][0].shift if right else page.width * 0.97
        tokens = item_lines(query, usable, limit, page.unit)
        text = " ".join(t.text for t in tokens)
        value = self.value(query, text)
        return (text, tokens, value, page) if value is not None else None


def period_ends(text: str) -> tuple[str, str | None]:
    """The beginning and the end of a period of dates or times; the end is None when there is one date or it goes on."""
    pieces = re.split(
        r"\s*(?:[–—]|(?<=[\w.])\s?-\s?(?=\D)|\s-\s|(?<=\d)-(?=\d\d[:/.])|\b(?:to|until|bis|au|à|al|hasta|tot)\b)\s*",
        text.strip(),
        maxsplit=1,
    )
    first = re.sub(r"^(?:since|from|seit|depuis|desde|dal|vom?|de)\s+", "", pieces[0].strip(), flags=re.I)
    last = pieces[1].strip() if len(pieces) > 1 else ""
    return first, last if re.search(r"\d", last) else None


def clock_text(text: str) -> str:
    """A time of day as HH:MM; any other text as it is."""
    match = re.fullmatch(r"(\d{1,2})(?:[.:h]\s?(\d\d))?\s?(?:(a|p)\.?m\.?|uhr|h|hrs)?", text.strip(" .,"), re.I)
    if not match or not (match[2] or match[3]) or int(match[1]) > 24:
        return text
    hour = int(match[1]) % 12 + (12 if match[3].lower() == "p" else 0) if match[3] else int(match[1])
    return f"{hour:02}:{match[2] or '00'}"


def part_of(text: str, part: Part) -> str | None:
    """One end of a range, the count or the price of a counted price, or the unit or flag behind a number."""
    if part in ("count", "each"):
        counted = counted_price(text)
        return counted[part == "each"] if counted else None
    if part in ("low", "high"):
        between = re.search(r"(-?\d[\d.,]*)\s?[-–—]\s?(-?\d[\d.,]*)", text)
        if between:
            return between[1 if part == "low" else 2].rstrip(".,")
        bound = re.search(r"(<|≤|up to|bis|hasta|jusqu'à|under|unter|max\.?)\s?=?\s?(\d[\d.,]*)", text, re.I)
        if bound:
            return bound[2].rstrip(".,") if part == "high" else None
        bound = re.search(r"(>|≥|over|über|ab|from|min\.?)\s?=?\s?(\d[\d.,]*)", text, re.I)
        return bound[2].rstrip(".,") if bound and part == "low" else None
    if part == "unit":
        found = re.match(r"[<>]?\s?[-+]?\d[\d.,]*(?![\d.,])\s?(?:[HL*]+\s)?((?:10\^?[\dE]+)?[^\d\s(*].*?)\s*(?:\b[HL]|\*+)?$", text)
        return found[1] if found else None
    found = re.search(r"(?<=[\d\s])(\*+|[HL]{1,2}|high|low)\s*$", text, re.I)
    return found[1] if found else None


def without_date(text: str) -> str:
    """What a heading says besides its date and weekday."""
    rest = DAY_MONTH_NAME.sub(" ", text)
    for span in reversed(list(find_dates(rest))):
        rest = rest[: span.start] + " " + rest[span.end :]
    rest = re.sub(
        r"(?i)\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\b(?:mon|diens|donners|frei|sams|sonn)tag\b|\bmittwoch\b|\b(?:lun|mar|mercre|jeu|vendre|same)di\b",
        " ",
        rest,
    )
    return re.sub(r"\s+", " ", re.sub(r"(?:^|\s)(?:19|20)\d\d(?=\W|$)", " ", rest)).strip(" ,;:|·–—-./()")


def item_lines(query: Query, lines: list[list[Token]], limit: float, unit: float) -> list[Token]:
    """The words of a text cell that are the property's value: its first line, and what wraps from it.

    lines: the cell's words by line. limit: x up to which text of the column may reach, in points.
    """
    if _FIRST_LINE.search(query.description):
        return lines[0]
    taken = list(lines[0])
    whole = bool(_ALL_LINES.search(query.description))
    for above, below in pairwise(lines):
        gap = below[0].box.top - above[0].box.bottom
        if gap > 0.8 * unit or not (whole or _wraps(above, below, limit, unit)):
            break
        taken += below
    return taken


def _wraps(above: list[Token], below: list[Token], limit: float, unit: float) -> bool:
    """Whether the next line goes on because the line above was full."""
    text = " ".join(t.text for t in below)
    if _LABELLED.match(text) or abs(below[0].word.bold - above[-1].word.bold) > 0.5:
        return False
    if below[0].height < 0.85 * above[0].height:
        return False
    space = 0.3 * above[-1].height
    first = below[1] if len(below) > 1 and len(below[0].text) < 3 else below[0]
    return above[-1].box.x1 + space + first.box.x1 - below[0].box.x0 > limit - 1.6 * unit


def _skipped_lines(query: Query, column: Column) -> int:
    """How many first lines of a cell belong to other phrases of a stacked heading ("Item no." over "Item name")."""
    if column.heading is None or len(column.heading.phrases) < 2:
        return 0
    texts = [" ".join(t.text for t in p) for p in column.heading.phrases]
    if not lexicon.bag(texts[0]) & {"number", "code", "date", "position"} or texts[0].endswith("-"):
        return 0
    scores = [label_match(query, t) for t in texts]
    best = max(range(len(scores)), key=scores.__getitem__)
    return best if best and scores[best] > scores[0] + 0.2 else 0
