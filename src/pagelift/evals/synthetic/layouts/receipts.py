"""Layouts of receipts: till rolls of several widths, and receipts on paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from pagelift.evals.synthetic.content.receipt import Receipt
from pagelift.evals.synthetic.layouts.mixed import mixed
from pagelift.evals.synthetic.layouts.sheet import Arrangement, Fact, Sheet, new_sheet, pairs
from pagelift.evals.synthetic.layouts.tables import Table, TableStyle, draw_table
from pagelift.evals.synthetic.paint import Align, Look, wrapped
from pagelift.evals.synthetic.pdf import BLACK
from pagelift.evals.synthetic.scene import Printed, Scene
from pagelift.evals.synthetic.splits import Split

Items = Literal["one line", "count first", "two lines", "always two lines", "count below", "table"]
"""How items stand: the amount below the name for several pieces, or always; or the count and the price below name and amount."""


@dataclass(frozen=True, slots=True)
class Family:
    """head: where the name of the shop stands. divider: a sign repeated over the width, "" for a drawn line."""

    id: str
    split: Split
    head: Align
    meta: Arrangement
    items: Items
    divider: str
    facts_last: bool


_NAMED: tuple[Family, ...] = (
    Family("roll", "train", "center", "inline", "two lines", "-", False),
    Family("till", "train", "left", "left", "count first", "=", False),
    Family("market", "train", "center", "spread", "one line", "-", True),
    Family("counter", "train", "left", "columns", "table", "", False),
    Family("kiosk", "validation", "center", "left", "count first", "*", True),
    Family("bistro", "validation", "left", "spread", "table", "-", False),
    Family("corner", "test", "center", "spread", "count first", "-", False),
    Family("pharmacy", "test", "left", "inline", "table", "=", True),
    Family("forecourt", "test", "center", "left", "two lines", "", True),
)
FAMILIES: tuple[Family, ...] = _NAMED + mixed(
    _NAMED,
    {
        "head": ("left", "center", "right"),
        "meta": get_args(Arrangement),
        "items": get_args(Items),
        "divider": ("-", "=", "*", "_", ".", "~", "#", ""),
        "facts_last": (True, False),
    },
    50,
)


def receipt_sheet(scene: Scene, document: Receipt) -> Sheet:
    """A strip as wide as a till roll, longer than the receipt needs."""
    width = scene.rng.uniform(205, 300)
    sheet = new_sheet(scene, (width, 460.0 + 34 * len(document.rows)))
    sheet.look = Look(scene.rng.choice(("Courier", "Courier", "Helvetica")), scene.rng.uniform(7.4, 8.6))
    sheet.left, sheet.accent, sheet.bold = scene.rng.uniform(10, 18), BLACK, "neither"
    sheet.right = width - sheet.left
    sheet.bottom = sheet.canvas.height_pt
    sheet.y = 28.0
    return sheet


def draw_receipt(sheet: Sheet, document: Receipt, family: Family) -> None:
    """Draw a receipt."""
    _shop(sheet, document, family)
    listed = [sheet.fact(tag, value) for tag, value in document.facts.items()]
    if not family.facts_last:
        sheet.y = pairs(sheet, listed, (sheet.left, sheet.width), sheet.y, family.meta)
    _divider(sheet, family)
    _items(sheet, document, family)
    _divider(sheet, family)
    for tag, behind, value in document.totals:
        big = tag == "total"
        look = sheet.look.bold().sized(1.25) if big else sheet.look
        _line(sheet, Fact(tag, sheet.scene.label(tag) + behind + sheet.colon, value), look)
    if document.payment:
        _divider(sheet, family)
        for tag, value in document.payment:
            _line(sheet, sheet.fact(tag, value), sheet.look)
    if family.facts_last:
        _divider(sheet, family)
        sheet.y = pairs(sheet, listed, (sheet.left, sheet.width), sheet.y, family.meta)
    sheet.y += sheet.step * 0.8
    sheet.text(sheet.scene.label("thanks"), (sheet.left + sheet.right) / 2, align="center")
    sheet.canvas.cut(sheet.y + sheet.scene.rng.uniform(4, 40))


def _shop(sheet: Sheet, document: Receipt, family: Family) -> None:
    x: float = {"left": sheet.left, "center": (sheet.left + sheet.right) / 2, "right": sheet.right}[family.head]
    look = sheet.look.bold().sized(1.3)
    name = wrapped(document.shop.name, sheet.width, look)
    sheet.canvas.value("seller", name, (x, sheet.y), look, family.head)
    sheet.y += look.leading * len(name.lines)
    address = wrapped(document.shop.address, sheet.width, sheet.look)
    sheet.canvas.value("seller_address", address, (x, sheet.y), sheet.look, family.head)
    sheet.y += sheet.step * len(address.lines)
    for tag, value in document.contact.items():
        label = sheet.scene.label(tag) + (sheet.colon or ":")
        width = sheet.look.width(f"{label}  {value.text}")
        start = x - width * {"left": 0.0, "center": 0.5, "right": 1.0}[family.head]
        box = sheet.canvas.text(label, start, sheet.y, sheet.look)
        sheet.canvas.value(tag, value, (box.x1 + sheet.look.width("  "), sheet.y), sheet.look)
        sheet.y += sheet.step
    sheet.y += sheet.step * 0.6
    if sheet.scene.chance(0.5):
        sheet.text(sheet.scene.label("title_receipt"), x, sheet.look.bold(), family.head)
        sheet.y += sheet.step * 0.4


def _divider(sheet: Sheet, family: Family) -> None:
    if family.divider:
        count = int(sheet.width / sheet.look.width(family.divider))
        sheet.text(family.divider * count)
    else:
        sheet.rule(sheet.y - sheet.look.size * 0.4)
        sheet.y += sheet.step * 0.6


def _line(sheet: Sheet, fact: Fact, look: Look) -> None:
    """Label on the left, value on the right; the value on a line of its own where both are too long."""
    label, value = fact.label, fact.value
    if value is None:
        return
    if look.width(f"{label}  {value.text}") > sheet.width:
        look = look.sized(0.8)
    sheet.canvas.text(label, sheet.left, sheet.y, look)
    if look.width(f"{label}  {value.text}") > sheet.width:
        sheet.y += look.leading
    sheet.canvas.value(fact.tag, value, (sheet.right, sheet.y), look, "right")
    sheet.y += look.leading


def _items(sheet: Sheet, document: Receipt, family: Family) -> None:
    if family.items == "table":
        columns = ["item", "quantity", "unit_price", "amount"] if sheet.width > 230 else ["item", "quantity", "amount"]
        draw_table(sheet, Table("items", columns, document.rows), TableStyle("head" if not family.divider else "none"))
        return
    for index, row in enumerate(document.rows):
        cells = row.cells
        start = sheet.left
        if family.items == "count first":
            box = _cell(sheet, index, "quantity", cells["quantity"], start)
            start = box + sheet.look.width("   ")
        _cell(sheet, index, "item", cells["item"], start)
        several = cells["quantity"].data != 1
        if family.items == "count below":
            sheet.canvas.value(f"items/{index}/amount", cells["amount"], (sheet.right, sheet.y), sheet.look, "right")
        if family.items == "always two lines" or (several and family.items in ("two lines", "count below")):
            sheet.y += sheet.step
            end = _cell(sheet, index, "quantity", cells["quantity"], sheet.left + sheet.look.size * 2)
            end = sheet.canvas.text("x", end + sheet.look.width(" "), sheet.y, sheet.look).x1
            _cell(sheet, index, "unit_price", cells["unit_price"], end + sheet.look.width(" "))
        if family.items != "count below":
            sheet.canvas.value(f"items/{index}/amount", cells["amount"], (sheet.right, sheet.y), sheet.look, "right")
        sheet.y += sheet.step


def _cell(sheet: Sheet, index: int, column: str, value: Printed, x: float) -> float:
    return sheet.canvas.value(f"items/{index}/{column}", value, (x, sheet.y), sheet.look).x1
