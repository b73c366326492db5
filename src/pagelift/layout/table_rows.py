"""From the lines of a table's body to rows: which lines start a row, continue one, or belong to none."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from pagelift.layout import lexicon
from pagelift.layout.lines import PageLayout, Segment
from pagelift.layout.table_columns import DAY_MONTH, Cells, Column, kind_of

_TOTAL_WORDS = (
    r"summe|\w*summe\b|(?:netto|brutto|end|rest|zahl|gesamt|rechnungs|steuer|mwst-?)betrag|moyenne|average|durchschnitt",
    r"sub-?\s?totaa?l|grand\s?total|total|totaal|totale|totaux|totais|gesamt\b|somma|suma|somme|amount due|net à payer",
    r"übertrag|saldovortrag|carr(?:ied|y)[\s-]?forward|brought[\s-]?forward|[bc]/?fwd|[àa] reporter|report\b|riporto|suma y sigue",
    r"balance (?:due|brought|carried|forward)|(?:opening|closing|ending|beginning|previous|new|starting)\s?balance",
    r"kontostand|(?:alter|neuer|anfangs|end)\s?-?(?:saldo|kontostand)|ancien solde|nouveau solde|solde\b|saldo\b|beginsaldo|eindsaldo",
)
_TOTAL_START = re.compile(rf"\W*(?:{'|'.join(_TOTAL_WORDS)})", re.I)
_TOTAL_END = re.compile(r"\D*totals?\W*$", re.I)
_INCLUDED = re.compile(r"\W*(incl|inkl|inbegr|davon|dont\b|of which|thereof|included|waarvan|incluido|compreso)", re.I)
BARE_CODE = re.compile(r"[A-Z0-9][A-Z0-9./-]{1,11}")
_STAND_IN = re.compile(r"(?-i:[A-Z]{2,4})|n/?a|[-–—]+|(?:incl|inkl|frei|gratis|free|offert)\.?", re.I)
"""What stands in a column of numbers or times instead of a value: DNS, n/a, a dash, "incl."."""
_TOTAL_CONCEPTS = frozenset({"total", "net", "gross", "tax", "balance", "rounding", "average"})
_TOTAL_COMPANIONS = _TOTAL_CONCEPTS | {
    "amount", "invoice", "due", "opening", "closing", "currency", "value", "eur", "usd", "gbp", "chf", "discount", "shipping_cost",
    "price", "delivery", "date", "rate", "page", "paid", "salary", "deduction", "hours", "credit", "consumption",
}  # fmt: skip


@dataclass(slots=True, eq=False)
class RawRow:
    """Lines of one row. keys: key groups that have a value. loose: lines that may belong to it by position only."""

    lines: list[Cells] = field(default_factory=list)
    keys: set[int] = field(default_factory=set)

    @property
    def page(self) -> PageLayout:
        return self.lines[0].page

    @property
    def top(self) -> float:
        return self.lines[0].box.top


@dataclass(slots=True, eq=False)
class RowModel:
    """What the lines of a table are judged by.

    keys: column to key group, for columns whose values occur once a row. texts: columns of text properties. amount: the
    column of the line total, None when there is none. expected: what the key columns hold by the kind of their property:
    "date", "number", "id" or "any" (number or text). starts: page (identity) and line number of the lines with key values
    when these are known beforehand. Of the lines with key values: left, right (edges in points), bold and upper (shares of
    such lines), filled (usual number of cells), text_first (the items' texts stand above them). gap: usual distance in
    points between lines.
    """

    columns: Sequence[Column]
    keys: dict[int, int]
    texts: frozenset[int]
    amount: int | None = None
    starts: frozenset[tuple[int, int]] | None = None
    expected: dict[int, str] = field(default_factory=dict)
    left: float = 0.0
    right: float = 0.0
    bold: float = 0.0
    upper: float = 0.0
    filled: int = 0
    text_first: bool = False
    gap: float = 0.0

    def learn_style(self, body: Sequence[Cells]) -> None:
        """Look of the lines that hold key values."""
        body = [c for c in body if c.segments]
        few = len(self.keys) < 2
        wide = [c for c in body if len(filled_keys(c, self)) > (0 if few else 1)] or [c for c in body if len(c.cells) > 1]
        if not wide:
            return
        self.left = min([c.left for c in wide] + [self.columns[c].x0 for c in self.texts])
        self.right = max(c.right for c in wide)
        self.bold = statistics.mean(c.segments[0].bold for c in wide)
        texts = [t for c in wide if (t := "".join(c.text(i) for i in self.texts))]
        self.text_first = bool(self.texts) and len(texts) < 0.5 * len(wide)
        self.upper = sum(t.isupper() for t in texts) / max(1, len(texts))
        self.filled = statistics.median_high([len(c.cells) for c in wide])
        gaps = [b.box.top - a.box.bottom for a, b in pairwise(body) if a.page is b.page]
        self.gap = statistics.median(gaps) if gaps else 0.0

    def looks_summed(self, cells: Cells) -> bool:
        """Whether a line that is worded as a total also looks unlike the rows: bolder, or with fewer cells."""
        bold = statistics.mean(s.bold for s in cells.segments)
        return len(cells.cells) < self.filled or bold > self.bold + 0.5


def is_group_heading(before: Cells | None, cells: Cells, after: Cells | None, model: RowModel) -> bool:
    """Whether a line without key values heads the rows below: it stands alone and looks unlike the text of the rows."""
    segments, unit = cells.segments, cells.page.unit
    if not segments or len(segments) > 2 or not re.search(r"[^\W\d_]{2}", segments[0].text) or len(segments[0].tokens) > 12:
        return False
    first, left = segments[0], cells.left
    if model.starts is not None and min(model.keys) < min(model.texts) and left < model.columns[min(model.texts)].x0 - unit:
        return True  # it begins where the times of the list stand
    if left > (model.left + model.right) / 2:
        return False
    words = "".join(t.text for s in segments for t in s.tokens)
    if first.bold > model.bold + 0.6 or (words.isupper() and model.upper < 0.3 and left < model.left + unit):
        return True
    middle = abs(left + first.box.width / 2 - (model.left + model.right) / 2) < 2 * unit and left > model.left + 2 * unit
    if middle and len(segments) == 1 and len(first.tokens) < 6 and words.isupper() and model.upper < 0.3:
        return True
    if left < model.left - 0.4 * unit or _starts_in_value_column(cells, model):
        return True
    if before is None or model.text_first:  # the first line under the column headings
        return before is None and not model.text_first and len(segments) == 1 and left < model.left + 0.5 * unit
    above = cells.box.top - before.box.bottom if before.page is cells.page else 1e3
    below = after.box.top - cells.box.bottom if after is not None and after.page is cells.page else 1e3
    return left < model.left + 0.5 * unit and above > max(model.gap, below) + 0.35 * unit


def _starts_in_value_column(cells: Cells, model: RowModel) -> bool:
    """Whether words begin where codes, dates or numbers stand, at the left edge of the table: no text of a row goes on there."""
    first = cells.segments[0]
    if len(cells.segments) > 1 or cells.left > model.left + 0.5 * cells.page.unit or len(re.sub(r"[\W\d_]", "", first.text)) < 4:
        return False
    number = min(cells.cells, default=-1)
    return (
        number >= 0
        and number not in model.texts
        and model.columns[number].main_kind in ("code", "number", "date", "clock")
        and kind_of(first.text) == "text"
    )


def is_stated_total(segments: Sequence[Segment]) -> bool:
    """Whether a phrase of a line begins with the word for a total, a balance or a sum carried over, or ends with "total"."""
    return any(_TOTAL_START.match(s.text) or (len(s.tokens) < 5 and _TOTAL_END.match(s.text)) for s in segments[:4])


def is_total(segments: Sequence[Segment]) -> bool:
    """Whether a line states a total, a balance or a sum carried over instead of an entry."""
    if is_stated_total(segments):
        return True
    for seg in segments[:1]:
        if not re.search(r"[^\W\d_]{2}", seg.text):
            continue
        words = lexicon.bag(re.sub(r"[\d.,%€$£()]+", " ", seg.text))
        if words and len(seg.tokens) <= 7 and words & _TOTAL_CONCEPTS and words <= _TOTAL_COMPANIONS:
            return True
    return False


def filled_keys(cells: Cells, model: RowModel) -> set[int]:
    if model.starts is not None:
        return set(model.keys.values()) if (id(cells.page), cells.line) in model.starts else set()
    found = set()
    for column, group in model.keys.items():
        text = cells.text(column)
        if text and _is_key_value(text, model.columns[column], model.expected.get(column, "")):
            found.add(group)
    return found


def _is_key_value(text: str, column: Column, expected: str) -> bool:
    kind, main = kind_of(text), column.main_kind
    if expected == "date":
        return kind == "date" or DAY_MONTH.fullmatch(text) is not None
    if expected == "number":
        return kind in ("number", "percent") or bool(_STAND_IN.fullmatch(text))
    if expected == "id":
        return (bool(re.search(r"\d", text)) and text.count(" ") < 2) or bool(BARE_CODE.fullmatch(text))
    if main in (kind, "text") or (expected == "any" and text.count(" ") < 3):
        return True
    if main == "code":
        return kind == "number" or (len(text) <= 14 and text.count(" ") < 2)
    if main in ("number", "percent", "clock"):
        return kind in ("number", "percent", "clock") or bool(_STAND_IN.fullmatch(text))
    return False


def build_rows(body: Sequence[Cells], model: RowModel) -> list[RawRow]:
    """Rows from body lines in reading order."""
    if not model.keys:
        return _rows_of_texts(body, model)
    rows: list[RawRow] = []
    waiting: list[Cells] = []
    headed = False
    for number, cells in enumerate(body):
        keys = filled_keys(cells, model)
        current = rows[-1] if rows else None
        if not keys:
            before, after = body[number - 1] if number else None, body[number + 1] if number + 1 < len(body) else None
            if is_group_heading(before, cells, after, model):
                if current is not None:
                    _share_out(waiting, current, None, model)
                waiting, headed = [], True
            else:
                waiting.append(cells)
            continue
        if current is not None and not headed and _continues(current, cells, keys, model):
            current.lines += [*waiting, cells]
            current.keys |= keys
        else:
            row = RawRow([cells], keys)
            _share_out(waiting, None if headed else current, row, model)
            rows.append(row)
        waiting, headed = [], False
    if rows:
        _share_out(waiting, rows[-1], None, model)
    return rows


def _continues(row: RawRow, cells: Cells, keys: set[int], model: RowModel) -> bool:
    """Whether a line with key values still belongs to the row: it repeats none of them and stands close."""
    if row.lines[-1].page is not cells.page:
        return False
    if keys & row.keys:  # "9:30 -" in one line, "10:15" in the next
        return all(
            row.lines[-1].text(c)[-1:] in ("-", "–", "—") and row.lines[-1].text(c)[:-1].strip() for c in model.keys if cells.text(c)
        )
    distance = cells.box.top - row.lines[-1].box.bottom
    if distance > 2.5 * cells.page.unit:
        return False
    has_text = any(cells.text(c) for c in model.texts)
    if not has_text or not any(line.text(c) for line in row.lines for c in model.texts):
        return True
    amount = model.keys.get(model.amount, -1) if model.amount is not None else -1
    raised = distance < 0.5 * cells.page.unit and (len(row.keys) > 1 or distance < 0.6 * model.gap)
    return amount in keys and len(keys) == 1 and raised


def _share_out(waiting: list[Cells], before: RawRow | None, after: RawRow | None, model: RowModel) -> None:
    """Lines without key values between two rows go to the row that lacks text, else to the row before while they stand close."""

    def has_text(row: RawRow | None) -> bool:
        return row is not None and any(line.text(c) for line in row.lines for c in model.texts)

    if after is not None and not has_text(after) and model.texts:
        split = _widest_gap(before, waiting, after) if before is not None else max(0, len(waiting) - 1)
        mine = [w for w in waiting[split:] if w.page is after.page]
        after.lines[:0] = mine
        waiting = waiting[:split]
    if before is None:
        return
    for line in waiting:
        last = before.lines[-1]
        if line.page is not last.page or line.box.top - last.box.bottom > 1.6 * line.page.unit:
            break
        before.lines.append(line)


def _widest_gap(before: RawRow, waiting: list[Cells], after: RawRow) -> int:
    """Where lines between two rows divide: at the widest gap, the earliest of equals."""
    boxes = [before.lines[-1], *waiting, after.lines[0]]
    gaps = [b.box.top - a.box.bottom if a.page is b.page else 1e3 for a, b in pairwise(boxes)]
    return max(range(len(gaps)), key=lambda i: gaps[i] - 0.01 * i)


def _rows_of_texts(body: Sequence[Cells], model: RowModel) -> list[RawRow]:
    """Rows of a table without numbers or dates: a line that fills the leading column and another one starts a row."""
    wide = [c for c in body if len(c.cells) > 1]
    if not wide:
        return []
    counts = {i: sum(i in c.cells for c in wide) for i in range(len(model.columns))}
    leading = next(i for i in range(len(model.columns)) if counts[i] >= 0.7 * max(counts.values()))
    rows: list[RawRow] = []
    for cells in body:
        assigned = sum(bool(cells.text(c)) for c in model.texts)
        if leading in cells.cells and (len(cells.cells) > 1 or (assigned and len(model.texts) == 1)):
            rows.append(RawRow([cells], set()))
        elif rows and rows[-1].page is cells.page and cells.box.top - rows[-1].lines[-1].box.bottom < 1.2 * cells.page.unit:
            rows[-1].lines.append(cells)
    return rows


def drop_weak(rows: list[RawRow], model: RowModel) -> list[RawRow]:
    """Leave out rows that lack what nearly all full rows have: notes, sub-lines and headings that look like rows."""
    if len(rows) < 2 or not model.keys:
        return rows
    usual = usual_strength([len(r.keys) for r in rows])
    full = [r for r in rows if len(r.keys) >= usual]
    share = {g: sum(g in r.keys for r in full) / len(full) for g in set(model.keys.values())}
    total = sum(share.values())
    amount = model.keys.get(model.amount) if model.amount is not None else None
    dated = any(model.columns[c].main_kind == "date" for c in model.keys)
    kept = []
    for row in rows:
        have = sum(share[g] for g in row.keys)
        if amount is not None and amount not in row.keys and share[amount] > 0.6:
            continue
        if have >= 0.45 * total or (amount in row.keys and not dated and _stands_in_line(row, model)):
            kept.append(row)
    return kept


def _stands_in_line(row: RawRow, model: RowModel) -> bool:
    """Whether the row's text begins where that of the other rows does."""
    first = row.lines[0]
    edges = [(first.cells[c][0].box.x0, model.columns[c].left) for c in model.texts if first.cells.get(c)]
    return any(left is not None and abs(x0 - left) < 0.4 * row.page.unit for x0, left in edges)


def usual_strength(strengths: Sequence[int]) -> int:
    """The number of key values that a full row has: the upper quartile."""
    return sorted(strengths)[(3 * len(strengths)) // 4] if strengths else 0


def drop_included(rows: list[RawRow], text_column: int | None) -> list[RawRow]:
    """Leave out sub-lines: rows set in under an item's name and introduced as part of its price ("incl. ...")."""
    if text_column is None:
        return rows
    lefts = [cell[0].box.x0 for r in rows if (cell := r.lines[0].cells.get(text_column))]
    usual = statistics.median(lefts) if lefts else 0.0

    def is_included(row: RawRow) -> bool:
        cell = row.lines[0].cells.get(text_column)
        indented = cell is not None and cell[0].box.x0 > usual + 0.7 * row.page.unit
        return indented and _INCLUDED.match(row.lines[0].text(text_column)) is not None

    return [r for r in rows if not is_included(r)]
