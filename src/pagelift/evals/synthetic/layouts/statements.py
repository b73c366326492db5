"""Layouts of bank statements."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Literal, get_args

from pagelift.evals.synthetic.content.statement import Statement
from pagelift.evals.synthetic.layouts.heads import Letterhead, addresses, footer, letterhead, sender_line
from pagelift.evals.synthetic.layouts.mixed import mixed
from pagelift.evals.synthetic.layouts.sheet import Arrangement, Fact, Sheet, pairs
from pagelift.evals.synthetic.layouts.tables import TABLE_STYLES, Table, TableStyle, draw_table
from pagelift.evals.synthetic.scene import Printed
from pagelift.evals.synthetic.splits import Split

Summary = Literal["top", "around", "bottom"]
"""Where balances stand: over the bookings, the opening before and the closing after them, or all after them."""
Period = Literal["two", "range", "title"]


@dataclass(frozen=True, slots=True)
class Family:
    """signed: one column of signed amounts, else debits and credits in two. balances: whether rows have a balance."""

    id: str
    split: Split
    head: Letterhead
    account: Arrangement
    period: Period
    summary: tuple[Summary, Arrangement]
    signed: bool
    balances: bool
    table: TableStyle


_NAMED: tuple[Family, ...] = (
    Family("branch", "train", "left", "left", "range", ("around", "spread"), True, False, TableStyle("rows")),
    Family("savings", "train", "band", "grid", "two", ("top", "columns"), False, True, TableStyle("grid")),
    Family("direct", "train", "logo", "inline", "range", ("top", "grid"), True, True, TableStyle("stripes")),
    Family("giro", "train", "right", "columns", "two", ("bottom", "spread"), False, False, TableStyle("head")),
    Family("union", "validation", "center", "left", "two", ("top", "spread"), True, True, TableStyle("rows", True)),
    Family("credit", "validation", "split", "above", "range", ("bottom", "columns"), False, True, TableStyle("columns")),
    Family("mutual", "test", "split", "inline", "two", ("around", "spread"), False, True, TableStyle("stripes", True)),
    Family("private", "test", "left", "grid", "range", ("bottom", "grid"), True, True, TableStyle("head")),
    Family("postal", "test", "band", "left", "two", ("top", "leader"), True, False, TableStyle("columns")),
)
FAMILIES: tuple[Family, ...] = _NAMED + mixed(
    _NAMED,
    {
        "head": get_args(Letterhead)[:-1],
        "account": get_args(Arrangement),
        "period": ("two", "range"),
        "summary": tuple(product(get_args(Summary), get_args(Arrangement))),
        "signed": (True, False, False),
        "balances": (True, False),
        "table": TABLE_STYLES,
    },
    50,
)


def draw_statement(sheet: Sheet, document: Statement, family: Family) -> None:
    """Draw a statement over as many pages as it needs."""
    scene = sheet.scene
    letterhead(sheet, document.bank, family.head, "issuer", [])
    if scene.chance(0.4):
        sender_line(sheet, document.bank, "issuer")
    holder = ("" if scene.chance(0.4) else scene.label("account_holder"), "account_holder", "holder_address", document.holder)
    addresses(sheet, [holder], "labelled", sheet.width)
    title = scene.label("title_statement")
    sheet.head = f"{title} - {document.holder.name.text}"
    sheet.text(title, look=sheet.look.bold().sized(1.5).colored(sheet.accent))
    sheet.y += sheet.step * 0.5
    facts = [sheet.fact(tag, value) for tag, value in document.account.items()]
    if family.period == "two":
        facts += [sheet.fact(tag, value) for tag, value in zip(("period_start", "period_end"), document.period, strict=True)]
    sheet.y = pairs(
        sheet, facts, (sheet.left, sheet.width * (1.0 if family.account in ("grid", "columns") else 0.6)), sheet.y, family.account
    )
    if family.period == "range":
        _range(sheet, document)
    sheet.y += sheet.step * 0.5
    place, arrangement = family.summary
    summary = [sheet.fact(tag, value) for tag, value in document.summary.items()]
    before = summary if place == "top" else summary[:1] if place == "around" else []
    _summary(sheet, before, arrangement)
    _bookings(sheet, document, family)
    _summary(sheet, [fact for fact in summary if fact not in before], arrangement)
    for sentence in scene.rng.sample(scene.words.pools["prose"], scene.rng.randint(0, 2)):
        sheet.ensure(2 * sheet.step)
        sheet.paragraph(sentence)
    footer(sheet, [], "none")


def _range(sheet: Sheet, document: Statement) -> None:
    """The period as two dates with a dash between them, under one label."""
    scene, look = sheet.scene, sheet.look
    box = sheet.canvas.text(scene.label("period") + (sheet.colon or ":"), sheet.left, sheet.y, sheet.label_look)
    first = sheet.canvas.value("period_start", document.period[0], (box.x1 + look.size, sheet.y), sheet.value_look)
    dash = sheet.canvas.text(scene.rng.choice(("-", "–")), first.x1 + look.width("  "), sheet.y, look)
    sheet.canvas.value("period_end", document.period[1], (dash.x1 + look.width("  "), sheet.y), sheet.value_look)
    sheet.y += sheet.step * 1.3


def _summary(sheet: Sheet, facts: list[Fact], arrangement: Arrangement) -> None:
    if facts:
        sheet.ensure(sheet.step * (len(facts) + 2))
        sheet.y = pairs(sheet, facts, (sheet.left, sheet.width), sheet.y + sheet.step * 0.4, arrangement) + sheet.step * 0.9


def _bookings(sheet: Sheet, document: Statement, family: Family) -> None:
    columns = ["booking_date", "booking_text"]
    if sheet.scene.chance(0.35):
        columns.insert(1, "value_date")
    columns += ["booking_amount"] if family.signed else ["debit", "credit"]
    if family.balances:
        columns.append("booking_balance")
    carried = None
    if family.balances and sheet.scene.chance(0.6):

        def carried(rows: int) -> tuple[str, Printed]:
            return sheet.scene.label("carried"), sheet.scene.cents(document.running[rows - 1])

    draw_table(sheet, Table("bookings", columns, document.rows, carried), family.table)
