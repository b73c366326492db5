"""Tables with headings, lines or stripes, details under rows, and headings repeated on following pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from pagelift.core import Box
from pagelift.evals.synthetic.layouts.sheet import Sheet
from pagelift.evals.synthetic.paint import GRAY, PALE, WHITE, Align, Look, wrap, wrapped
from pagelift.evals.synthetic.scene import Printed

Lines = Literal["grid", "rows", "stripes", "head", "none", "columns"]
TEXT_COLUMNS = {"item", "booking_text"}
LEFT_COLUMNS = {"sku", "unit", "booking_date", "value_date", "pos"}


@dataclass(frozen=True, slots=True)
class TableStyle:
    """lines: where lines or stripes are. filled: headings on a ground of the accent colour. numbers: how numbers stand."""

    lines: Lines
    filled: bool = False
    numbers: Align = "right"


TABLE_STYLES = tuple(
    TableStyle(lines, filled, numbers) for lines in get_args(Lines) for filled in (False, True) for numbers in ("right", "right", "center")
)


@dataclass(slots=True)
class Row:
    """One row. cells: by column. detail: a further line under the text, which is not part of a value."""

    cells: dict[str, Printed]
    detail: str = ""


@dataclass(slots=True)
class Table:
    """tag: of the array. columns: in printed order. carried: label and amount at the foot of a page that is full after so many rows."""

    tag: str
    columns: Sequence[str]
    rows: Sequence[Row]
    carried: Callable[[int], tuple[str, Printed]] | None = None
    spans: dict[str, tuple[float, float]] = field(default_factory=dict)


def draw_table(sheet: Sheet, table: Table, style: TableStyle) -> None:
    """Draw the table from `sheet.y` on, over several pages where needed."""
    full = sheet.look
    sheet.look = look = _narrow_enough(sheet, table)
    heads = look.bold() if sheet.bold != "neither" or style.lines == "none" or style.filled else look
    labels = {column: sheet.scene.label(column) for column in table.columns}
    table.spans = _spans(sheet, table, labels, heads)
    cells = [_fitted(sheet, table, row) for row in table.rows]
    start = _headings(sheet, table, labels, heads, style)
    for index, row in enumerate(table.rows):
        height = look.leading * (max(len(value.lines) for value in cells[index].values()) + bool(row.detail)) + _gap(look, style)
        if sheet.y + height > sheet.bottom - (2 * look.leading if table.carried else 0):
            _close(sheet, table, style, start)
            _carry(sheet, table, index)
            sheet.next_page()
            if sheet.scene.chance(0.3):
                sheet.text(f"({sheet.scene.label('continued')})", look=look.sized(0.9).colored(GRAY))
            start = _headings(sheet, table, labels, heads, style)
            _carry(sheet, table, index)
        _row(sheet, table, index, cells[index], (height, style))
    _close(sheet, table, style, start)
    sheet.look = full
    sheet.y += full.leading * 0.8


def _narrow_enough(sheet: Sheet, table: Table) -> Look:
    """The look of the sheet, smaller where the columns leave too little room for the text."""
    look = sheet.look
    others = [column for column in table.columns if column not in TEXT_COLUMNS]
    while look.size > 5.5:
        bold, taken = look.bold(), 0.0
        for column in others:
            words = [row.cells[column].text for row in table.rows if column in row.cells]
            heads = sheet.scene.label(column).split(" ")
            taken += max([look.width(word) for word in words] + [bold.width(word) for word in heads]) + 1.1 * look.size
        if sheet.width - taken >= min(110.0, 12 * look.size):
            break
        look = look.sized(0.93)
    return look


def _gap(look: Look, style: TableStyle) -> float:
    return look.size * (0.45 if style.lines in ("grid", "rows", "stripes") else 0.15)


def _spans(sheet: Sheet, table: Table, labels: dict[str, str], heads: Look) -> dict[str, tuple[float, float]]:
    """Left and right end of every column: as wide as its cells and the words of its heading, the text takes the rest."""
    pad = sheet.look.size * 0.55
    widths = {}
    for column in table.columns:
        if column not in TEXT_COLUMNS:
            widest = max((sheet.look.width(row.cells[column].text) for row in table.rows if column in row.cells), default=0.0)
            word = max(heads.width(part) for part in labels[column].split(" "))
            widths[column] = max(widest, word) + 2 * pad
    rest = sheet.width - sum(widths.values())
    texts = [column for column in table.columns if column in TEXT_COLUMNS]
    for column in texts:
        widths[column] = rest / len(texts)
    spans, x = {}, sheet.left
    for column in table.columns:
        spans[column] = (x, x + widths[column])
        x += widths[column]
    return spans


def _align(column: str, style: TableStyle) -> Align:
    return "left" if column in TEXT_COLUMNS | LEFT_COLUMNS else style.numbers


def _at(sheet: Sheet, span: tuple[float, float], align: Align) -> float:
    pad = sheet.look.size * 0.5
    return span[0] + pad if align == "left" else span[1] - pad if align == "right" else (span[0] + span[1]) / 2


def _fitted(sheet: Sheet, table: Table, row: Row) -> dict[str, Printed]:
    pad = sheet.look.size
    return {
        column: wrapped(value, table.spans[column][1] - table.spans[column][0] - pad, sheet.look) if column in TEXT_COLUMNS else value
        for column, value in row.cells.items()
        if column in table.spans
    }


def _headings(sheet: Sheet, table: Table, labels: dict[str, str], heads: Look, style: TableStyle) -> float:
    """Draw the headings. Returns the upper end of the table on this page."""
    wrapped_labels = {c: wrap(labels[c], table.spans[c][1] - table.spans[c][0] - heads.size * 0.9, heads) for c in table.columns}
    deepest = max(len(lines) for lines in wrapped_labels.values())
    top = sheet.y - heads.size * 1.15
    bottom = top + heads.leading * deepest + heads.size * 0.5
    box = Box(sheet.left, top, table.spans[table.columns[-1]][1], bottom)
    if style.filled:
        sheet.canvas.rectangle(box, None, sheet.accent)
        heads = heads.colored(WHITE)
    elif style.lines == "grid":
        sheet.canvas.rectangle(box, sheet.accent, PALE if sheet.scene.chance(0.4) else None)
    elif style.lines != "none":
        sheet.canvas.line((box.x0, bottom), (box.x1, bottom), 0.8, sheet.accent)
    for column, lines in wrapped_labels.items():
        align = _align(column, style)
        for index, line in enumerate(lines):
            sheet.canvas.text(line, _at(sheet, table.spans[column], align), sheet.y + index * heads.leading, heads, align)
    sheet.y = bottom + sheet.look.size * 1.15
    return top if style.lines == "grid" else bottom


def _row(sheet: Sheet, table: Table, index: int, cells: dict[str, Printed], look: tuple[float, TableStyle]) -> None:
    height, style = look
    end = table.spans[table.columns[-1]][1]
    top = sheet.y - sheet.look.size * 1.05
    if style.lines == "stripes" and index % 2:
        sheet.canvas.rectangle(Box(sheet.left, top, end, top + height), None, PALE)
    for column in table.columns:
        if column not in cells:
            continue
        align = _align(column, style)
        x = _at(sheet, table.spans[column], align)
        sheet.canvas.value(f"{table.tag}/{index}/{column}", cells[column], (x, sheet.y), sheet.look, align)
        if column in TEXT_COLUMNS and table.rows[index].detail:
            y = sheet.y + len(cells[column].lines) * sheet.look.leading
            sheet.canvas.text(table.rows[index].detail, x, y, sheet.look.sized(0.88).colored(GRAY))
    sheet.y += height
    if style.lines in ("grid", "rows"):
        sheet.canvas.line((sheet.left, top + height), (end, top + height), 0.4, sheet.accent if style.lines == "grid" else GRAY)


def _close(sheet: Sheet, table: Table, style: TableStyle, start: float) -> None:
    """Draw the lines between columns and the last line on this page."""
    end = table.spans[table.columns[-1]][1]
    bottom = sheet.y - sheet.look.size * 1.05
    if style.lines in ("grid", "columns"):
        edges = [sheet.left, *(table.spans[column][1] for column in table.columns)]
        for x in edges:
            sheet.canvas.line((x, start), (x, bottom), 0.4, sheet.accent)
    if style.lines in ("head", "columns", "stripes"):
        sheet.canvas.line((sheet.left, bottom), (end, bottom), 0.8, sheet.accent)


def _carry(sheet: Sheet, table: Table, rows: int) -> None:
    if table.carried is not None and rows:
        label, amount = table.carried(rows)
        pad = sheet.look.size * 0.5
        sheet.canvas.text(label, sheet.left + pad, sheet.y, sheet.look.bold())
        last = table.spans[table.columns[-1]][1]
        sheet.canvas.text(amount.text, last - pad, sheet.y, sheet.look.bold(), "right")
        sheet.y += sheet.look.leading * 1.4
