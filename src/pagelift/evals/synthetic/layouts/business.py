"""Layouts of invoices and purchase orders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from pagelift.core import Box
from pagelift.evals.synthetic.content.business import Business
from pagelift.evals.synthetic.layouts.heads import Footer, Letterhead, Parties, addresses, footer, letterhead, sender_line
from pagelift.evals.synthetic.layouts.mixed import mixed
from pagelift.evals.synthetic.layouts.sheet import Arrangement, Fact, Sheet, pairs
from pagelift.evals.synthetic.layouts.tables import TABLE_STYLES, Table, TableStyle, draw_table
from pagelift.evals.synthetic.scene import Printed
from pagelift.evals.synthetic.splits import Split

Title = Literal["left", "right", "center", "with number"]
Totals = Literal["right", "boxed", "columns", "leader", "wide"]


@dataclass(frozen=True, slots=True)
class Family:
    """meta: how document numbers and dates stand. beside: whether they are right of the addresses, else below them."""

    id: str
    split: Split
    letterhead: Letterhead
    title: Title
    parties: Parties
    meta: Arrangement
    beside: bool
    table: TableStyle
    totals: Totals
    footer: Footer


_NAMED: tuple[Family, ...] = (
    Family("ledger", "train", "left", "right", "labelled", "left", True, TableStyle("grid"), "right", "line"),
    Family("window", "train", "right", "left", "window", "left", True, TableStyle("rows"), "right", "columns"),
    Family("banner", "train", "band", "right", "side", "above", True, TableStyle("stripes", True), "boxed", "none"),
    Family("classic", "train", "center", "center", "labelled", "inline", False, TableStyle("head"), "right", "line"),
    Family("strip", "train", "left", "with number", "window", "columns", False, TableStyle("head"), "wide", "columns"),
    Family("boxes", "train", "logo", "left", "boxed", "grid", False, TableStyle("grid", True), "boxed", "line"),
    Family("plain", "train", "one line", "left", "table", "left", False, TableStyle("none"), "right", "none"),
    Family("split", "train", "split", "right", "side", "spread", True, TableStyle("columns"), "leader", "columns"),
    Family("summary", "train", "left", "left", "side", "inline", True, TableStyle("rows", True), "columns", "line"),
    Family("tall", "validation", "logo", "right", "window", "spread", True, TableStyle("stripes"), "right", "columns"),
    Family("flat", "validation", "center", "left", "side", "columns", False, TableStyle("rows", True), "boxed", "line"),
    Family("office", "validation", "split", "with number", "labelled", "above", True, TableStyle("columns"), "wide", "none"),
    Family("nordic", "test", "split", "left", "window", "inline", True, TableStyle("stripes", True), "right", "columns"),
    Family("panel", "test", "right", "right", "boxed", "columns", False, TableStyle("head", True), "leader", "line"),
    Family("docket", "test", "band", "with number", "table", "grid", False, TableStyle("rows"), "boxed", "none"),
    Family("column", "test", "one line", "center", "side", "above", True, TableStyle("grid"), "columns", "columns"),
)  # fmt: skip
FAMILIES: tuple[Family, ...] = _NAMED + mixed(
    _NAMED,
    {
        "letterhead": get_args(Letterhead)[:-1],
        "title": get_args(Title),
        "parties": get_args(Parties),
        "meta": get_args(Arrangement),
        "beside": (True, False),
        "table": TABLE_STYLES,
        "totals": get_args(Totals),
        "footer": get_args(Footer),
    },
    60,
)


def draw_business(sheet: Sheet, document: Business, family: Family, kind: str) -> None:
    """Draw an invoice or order. kind: invoice or order."""
    scene = sheet.scene
    issuer, partner = ("orderer", "supplier") if kind == "order" else ("seller", "buyer")
    # who issues an order does not sell, so nothing that is asked of a seller is there
    contact = [sheet.fact("" if kind == "order" else tag, value, tag) for tag, value in document.contact.items()]
    at_top = contact if family.footer == "none" or scene.chance(0.4) else []
    letterhead(sheet, document.issuer, family.letterhead, issuer, at_top)
    if family.parties == "window" and scene.chance(0.6):
        sender_line(sheet, document.issuer, issuer)
    facts = dict(document.facts)
    title = scene.label(f"title_{kind}")
    sheet.head = f"{title} {document.facts[document.number].text}"
    if family.title == "with number" or not family.beside:
        _title(sheet, family, title, document.number, facts)
    _parties_and_meta(sheet, document, family, facts, (title, partner))
    if scene.chance(0.3):
        sheet.paragraph(scene.pick("filler"))
        sheet.y += sheet.step * 0.6
    _table(sheet, document, family)
    _totals(sheet, document, family)
    _remarks(sheet, document)
    rest = [fact for fact in contact if fact not in at_top]
    footer(sheet, [sheet.fact(tag, value) for tag, value in document.payment.items()] + rest, family.footer)


def _title(sheet: Sheet, family: Family, title: str, number: str, facts: dict[str, Printed]) -> None:
    """The title; with the number behind it where the family has it there."""
    look = sheet.look.bold().sized(1.5).colored(sheet.accent)
    if family.title == "with number":
        box = sheet.canvas.text(title, sheet.left, sheet.y, look)
        sheet.canvas.value(number, facts.pop(number), (box.x1 + look.width(" ") * 1.3, sheet.y), look)
        sheet.y += look.leading
    else:
        x = {"right": sheet.right, "center": (sheet.left + sheet.right) / 2}.get(family.title, sheet.left)
        sheet.text(title, x, look, "right" if family.title == "right" else "center" if family.title == "center" else "left")
    sheet.y += sheet.step * 0.8


def _parties_and_meta(sheet: Sheet, document: Business, family: Family, facts: dict[str, Printed], names: tuple[str, str]) -> None:
    scene = sheet.scene
    title, partner = names
    blocks = [(scene.label(partner), partner, f"{partner}_address", document.partner)]
    if document.ship_to is not None:
        blocks.append((scene.label("ship_to"), "ship_to", "ship_address", document.ship_to))
    listed = [sheet.fact(tag, value) for tag, value in facts.items()]
    top = sheet.y
    if not family.beside:
        addresses(sheet, blocks, family.parties, sheet.width)
        sheet.y = pairs(sheet, listed, (sheet.left, sheet.width), sheet.y, family.meta) + sheet.step
        return
    column = sheet.left + sheet.width * 0.57
    if family.title != "with number":
        _title(sheet, family, title, document.number, facts)
        if family.title != "right":
            top = sheet.y
    meta_top = sheet.y
    sheet.y = top
    style: Parties = "labelled" if family.parties == "side" and len(blocks) > 1 else family.parties
    addresses(sheet, blocks, style, sheet.width * 0.5)
    below = pairs(sheet, listed, (column, sheet.right - column), meta_top, family.meta)
    sheet.y = max(sheet.y, below) + sheet.step


def _table(sheet: Sheet, document: Business, family: Family) -> None:
    scene = sheet.scene
    carried = None
    if scene.chance(0.5):

        def carried(rows: int) -> tuple[str, Printed]:
            return scene.label("carried"), scene.cents(document.running[rows - 1])

    draw_table(sheet, Table("items", document.columns, document.rows, carried), family.table)


def _totals(sheet: Sheet, document: Business, family: Family) -> None:
    facts = [Fact(tag, sheet.scene.label(tag) + rate, value) for tag, rate, value in document.totals]
    sheet.ensure(sheet.step * (len(facts) + 3))
    last = sheet.look.size * 0.5
    if family.totals == "columns":
        sheet.y = pairs(sheet, facts, (sheet.left, sheet.width), sheet.y + sheet.step * 0.5, "columns")
        return
    widest = max(sheet.label_look.width(fact.label + sheet.colon) for fact in facts)
    amounts = max(sheet.value_look.width(fact.value.text) for fact in facts if fact.value)
    width = max(widest + amounts + sheet.look.size * 3, 170.0) if family.totals != "wide" else sheet.width - 2 * last
    start = sheet.right - width - last
    top = sheet.y
    y = pairs(sheet, facts, (start, width), top + sheet.look.size * 0.4, "leader" if family.totals == "leader" else "spread")
    if family.totals == "boxed":
        sheet.canvas.rectangle(Box(start - 6, top - sheet.look.size, sheet.right, y - sheet.look.size * 0.6), sheet.accent)
    sheet.y = y + sheet.step


def _remarks(sheet: Sheet, document: Business) -> None:
    scene = sheet.scene
    sheet.y += sheet.step * 0.6
    due = document.facts.get("due_date")
    for sentence in scene.rng.sample(scene.words.pools["filler"], scene.rng.randint(0, 2)):
        sheet.ensure(2 * sheet.step)
        sheet.paragraph(sentence)
    if due is not None and scene.chance(0.3):
        sheet.ensure(2 * sheet.step)
        sheet.paragraph(scene.label("s_due").format(due_date=due.text))
