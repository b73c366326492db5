"""The values of a table's cells."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Sequence

from pagelift.core import Json
from pagelift.evidence import find_dates
from pagelift.layout.lines import PageLayout, Token
from pagelift.layout.query import Query
from pagelift.layout.table_columns import DAY_MONTH, Column, amount_with_unit, cell_number
from pagelift.layout.values import Locale, read_value

_FIRST_LINE = re.compile(r"first line|first row|main line|headline|heading of|without (?:the )?(?:further|additional) ", re.I)
_ALL_LINES = re.compile(
    r"\ball lines\b|complete (?:text|description)|full (?:text|description)|including (?:all )?(?:continuation|following|further) lines|multi-?line",
    re.I,
)
_LABELLED = re.compile(r"[^\W\d_][\w .-]{1,24}\s?:")


def document_years(pages: Sequence[PageLayout], locale: Locale) -> list[datetime.date]:
    """All complete dates of the document, most frequent years first: what dates without a year are completed from."""
    dates = [s.date for p in pages for line in p.lines for s in find_dates(line.text, locale.order)]
    years = Counter(d.year for d in dates)
    return sorted(dates, key=lambda d: -years[d.year])


def read_cell(query: Query, text: str, locale: Locale, known: Sequence[datetime.date]) -> Json | None:
    """The value of a cell, or None; accepts units behind numbers and dates without a year."""
    text = text.strip()
    if not re.search(r"\w", text) and query.kind != "boolean":
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
    if not match or not known:
        return None
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


def item_lines(query: Query, lines: list[list[Token]], column: Column, limit: float, unit: float) -> list[Token]:
    """The words of a text cell that are the property's value: its first line, and what wraps from it.

    lines: the cell's words by line. limit: x up to which text of the column may reach, in points.
    """
    if not lines:
        return []
    if _FIRST_LINE.search(query.description):
        return lines[0]
    taken = list(lines[0])
    whole = bool(_ALL_LINES.search(query.description))
    for above, below in zip(lines, lines[1:], strict=False):
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
    return above[-1].box.x1 + space + below[0].box.width > limit - 1.2 * unit
