"""Which columns answer which properties, and cells that answer several: ranges, numbers with units, names behind counts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from pagelift.layout.query import Query
from pagelift.layout.table_columns import Cells, Column, amount_with_unit
from pagelift.layout.table_headers import FAMILIES, label_match

Part = Literal["low", "high", "unit", "flag", "below", "first", "last", "lead", "rest", "count", "each"]
_RANGE = re.compile(
    r"\D{0,3}\d[\d.,]*\s?[-–—]\s?\d[\d.,]*\D{0,12}|[<>≤≥]\s?\d.*|(?:up to|bis|hasta|jusqu'à|under|over|unter|über)\s\d.*", re.I
)
_LOW = re.compile(r"\b(low|lower|min|minimum|from)\b")
_HIGH = re.compile(r"\b(high|upper|max|maximum|to)\b")
COUNTED = re.compile(r"(\d{1,4}(?:[.,]\d{1,3})?)\s?(?:[x×X*]\s?|\s(?=\D))")
"""A count before an item's name: "2x Soup", "3 Coffee"."""


@dataclass(slots=True, eq=False)
class Answers:
    """By number of the property. chosen: its column. credit: a second column with the amounts that count positive while
    those of the chosen column count negative. parts: which part of a shared cell it is."""

    chosen: dict[int, int] = field(default_factory=dict)
    credit: dict[int, int] = field(default_factory=dict)
    parts: dict[int, Part] = field(default_factory=dict)


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


def share_cells(queries: Sequence[Query], columns: Sequence[Column], body: Sequence[Cells], answers: Answers) -> None:
    """Find properties that are printed together with others in one cell, and note which part of the cell they are."""
    _divide_ranges(queries, columns, body, answers)
    _divide_counts(queries, body, answers)
    for number, query in enumerate(queries):
        if number in answers.chosen:
            if "unit" in query.label and query.kind == "text" and number not in answers.parts:
                _find_value_of_unit(number, queries, columns, body, answers)
        elif query.kind == "currency":
            amounts = [c for c in _number_columns(queries, answers) if any(re.search(r"[A-Z]{3}|[$€£]", line.text(c)) for line in body)]
            if amounts:
                answers.chosen[number] = amounts[0]
        elif query.kind in ("text", "enum", "id", "name"):
            _find_beside_others(number, queries, columns, body, answers)


def _number_columns(queries: Sequence[Query], answers: Answers) -> list[int]:
    return [column for i, column in answers.chosen.items() if queries[i].kind == "number" and i not in answers.parts]


def _divide_ranges(queries: Sequence[Query], columns: Sequence[Column], body: Sequence[Cells], answers: Answers) -> None:
    """The lower and the upper end of a range like "3.5 - 5.0" or "< 60" that stands in one column."""
    numbers = [i for i, q in enumerate(queries) if q.kind == "number"]
    low = next((i for i in numbers if _LOW.search(queries[i].words)), None)
    high = next((i for i in numbers if _HIGH.search(queries[i].words) and i != low), None)
    if low is None or high is None or (low in answers.chosen and high in answers.chosen):
        return
    best, share = None, 0.4
    for column in range(len(columns)):
        texts = [t for c in body if (t := c.text(column))]
        ranges = sum(bool(_RANGE.fullmatch(t)) for t in texts) / max(1, len(texts))
        if ranges > share:
            best, share = column, ranges
    if best is not None:
        answers.chosen |= {low: best, high: best}
        answers.parts |= {low: "low", high: "high"}


def _divide_counts(queries: Sequence[Query], body: Sequence[Cells], answers: Answers) -> None:
    """A quantity that is printed before the item's name in one cell."""
    quantity = next((i for i, q in enumerate(queries) if is_quantity(q) and i not in answers.chosen), None)
    item = next((i for i, q in enumerate(queries) if i in answers.chosen and q.label & FAMILIES[0] and q.kind in ("text", "name")), None)
    if quantity is None or item is None or item in answers.parts:
        return
    texts = [t for c in body if len(c.cells) > 1 and (t := c.text(answers.chosen[item]))]
    if texts and sum(bool(COUNTED.match(t)) for t in texts) > 0.5 * len(texts):
        answers.chosen[quantity] = answers.chosen[item]
        answers.parts |= {quantity: "lead", item: "rest"}


def _find_value_of_unit(number: int, queries: Sequence[Query], columns: Sequence[Column], body: Sequence[Cells], answers: Answers) -> None:
    """A column whose heading names a value and its unit, found for the unit, holds the value too."""
    column = answers.chosen[number]
    heading = columns[column].heading
    texts = [t for c in body if (t := c.text(column))]
    open_ = [i for i, q in enumerate(queries) if i not in answers.chosen and q.kind == "number"]
    value = next((i for i in open_ if heading and label_match(queries[i], heading.text) > 0.25), None)
    if value is not None and sum(amount_with_unit(t) is not None for t in texts) > 0.4 * len(texts):
        answers.chosen[value] = column
        answers.parts[number] = "unit"


def _find_beside_others(number: int, queries: Sequence[Query], columns: Sequence[Column], body: Sequence[Cells], answers: Answers) -> None:
    """An item's text under its code, or a unit or flag behind a value."""
    query = queries[number]
    if query.label & FAMILIES[0] or "text" in query.words:
        codes = [
            c for i, c in answers.chosen.items() if queries[i].kind == "id" and columns[c].kinds["text"] >= 0.3 * columns[c].kinds.total()
        ]
        if codes:
            answers.chosen[number] = codes[0]
            answers.parts[number] = "below"
        return
    part: Part | None = "unit" if "unit" in query.label else "flag" if "flag" in query.words else None
    values = _number_columns(queries, answers)
    if part and values:
        answers.chosen[number] = max(values, key=lambda column: sum(amount_with_unit(c.text(column)) is not None for c in body))
        answers.parts[number] = part
