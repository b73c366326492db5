"""Layouts of letters, with the facts in sentences or as a list."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from pagelift.core import Box
from pagelift.evals.synthetic.content.letter import Letter
from pagelift.evals.synthetic.issuers import person
from pagelift.evals.synthetic.layouts.heads import Letterhead, footer, letterhead, sender_line
from pagelift.evals.synthetic.layouts.mixed import mixed
from pagelift.evals.synthetic.layouts.sheet import Arrangement, Fact, Sheet, pairs
from pagelift.evals.synthetic.scene import Printed
from pagelift.evals.synthetic.splits import Split

Address = Literal["window", "right", "memo"]
References = Literal["right", "row", "left", "date line"]
_FACT = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Family:
    """listing: how facts are listed, None for sentences. subject: whether its line has a label."""

    id: str
    split: Split
    head: Letterhead
    address: Address
    references: References
    listing: Arrangement | None
    subject: bool


_NAMED: tuple[Family, ...] = (
    Family("formal", "train", "right", "window", "right", None, False),
    Family("notice", "train", "left", "window", "row", "left", True),
    Family("memo", "train", "center", "memo", "left", None, True),
    Family("modern", "train", "band", "window", "date line", "grid", False),
    Family("bureau", "validation", "split", "window", "right", "above", True),
    Family("reminder", "validation", "logo", "right", "left", None, False),
    Family("advice", "test", "logo", "window", "row", None, True),
    Family("circular", "test", "left", "right", "date line", "columns", False),
    Family("agency", "test", "split", "memo", "right", "leader", True),
)
FAMILIES: tuple[Family, ...] = _NAMED + mixed(
    _NAMED,
    {
        "head": get_args(Letterhead)[:-1],
        "address": get_args(Address),
        "references": get_args(References),
        "listing": (None, None, None, *get_args(Arrangement)),
        "subject": (True, False),
    },
    40,
)


def draw_letter(sheet: Sheet, document: Letter, family: Family) -> None:
    """Draw a letter."""
    scene = sheet.scene
    contact = [sheet.fact(tag, value) for tag, value in document.contact.items()]
    letterhead(sheet, document.sender, family.head, "sender", contact)
    _opening(sheet, document, family)
    label = scene.label("subject") + sheet.colon if family.subject else ""
    bold = sheet.look.bold()
    x = sheet.canvas.text(label, sheet.left, sheet.y, bold).x1 + bold.width("  ") if label else sheet.left
    sheet.canvas.value("subject", document.subject, (x, sheet.y), bold)
    sheet.y += sheet.step * 2
    sheet.text(scene.label("s_hello"))
    sheet.y += sheet.step * 0.7
    before, after = scene.rng.sample(scene.words.pools["prose"], 2)
    sheet.paragraph(before)
    sheet.y += sheet.step * 0.6
    _facts(sheet, document, family)
    sheet.y += sheet.step * 0.6
    sheet.paragraph(after)
    sheet.y += sheet.step
    sheet.text(scene.label("s_bye"))
    sheet.y += sheet.step * 2.2
    sheet.text(f"{person(scene).name.text}")
    _enclosures(sheet, document)
    footer(sheet, [], "none")


def _opening(sheet: Sheet, document: Letter, family: Family) -> None:
    """The recipient, and date and references beside or below."""
    scene = sheet.scene
    listed = [sheet.fact(tag, value) for tag, value in document.references.items()]
    top = sheet.y
    if family.address == "memo":
        facts = [
            sheet.fact("recipient", document.recipient.name),
            Fact("recipient_address", scene.label("address"), document.recipient.address),
        ]
        sheet.y = pairs(sheet, facts, (sheet.left, sheet.width * 0.6), sheet.y, "left") + sheet.step * 0.3
    else:
        if family.address == "window" and scene.chance(0.6):
            sender_line(sheet, document.sender, "sender")
        x = sheet.left if family.address == "window" else sheet.left + sheet.width * 0.58
        sheet.canvas.value("recipient", document.recipient.name, (x, sheet.y), sheet.look)
        sheet.canvas.value("recipient_address", document.recipient.address, (x, sheet.y + sheet.step), sheet.look)
        sheet.y += sheet.step * 3.6
    if family.references == "right":
        column = sheet.left + sheet.width * 0.62
        start = sheet.y if family.address == "right" else top
        sheet.y = max(sheet.y, pairs(sheet, listed, (column, sheet.right - column), start, "left"))
    elif family.references == "date line":
        sheet.canvas.value("letter_date", document.references["letter_date"], (sheet.right, sheet.y), sheet.look, "right")
        sheet.y = pairs(sheet, listed[1:], (sheet.left, sheet.width * 0.5), sheet.y, "inline") + sheet.step * 0.4
    else:
        arrangement: Arrangement = "columns" if family.references == "row" else "left"
        sheet.y = pairs(sheet, listed, (sheet.left, sheet.width * (0.9 if family.references == "row" else 0.6)), sheet.y, arrangement)
    sheet.y += sheet.step * 1.5


def _facts(sheet: Sheet, document: Letter, family: Family) -> None:
    if family.listing is not None:
        facts = [sheet.fact(tag, value) for tag, value in document.facts.items()]
        width = sheet.width * (0.7 if family.listing in ("left", "leader", "above") else 1.0)
        sheet.y = pairs(sheet, facts, (sheet.left, width), sheet.y, family.listing)
        return
    facts_left = document.facts
    names = ["s_contract", "s_valid", "s_price" if "old_price" in facts_left else "s_price_only"]
    names += [f"s_{name}" for name, fact in (("notice", "notice_date"), ("term", "term_months")) if fact in facts_left]
    _sentences(sheet, " ".join(sheet.scene.label(name) for name in names), document.facts)


def _sentences(sheet: Sheet, text: str, facts: dict[str, Printed]) -> None:
    """A paragraph with values in it; a value is never broken over lines."""
    look = sheet.look
    lines: list[list[str]] = [[]]
    for chunk in text.split():
        line = " ".join([*lines[-1], chunk])
        if lines[-1] and look.width(_FACT.sub(lambda name: facts[name[1]].text, line)) > sheet.width:
            lines.append([])
        lines[-1].append(chunk)
    for chunks in lines:
        line = " ".join(chunks)
        box = sheet.canvas.text(_FACT.sub(lambda name: facts[name[1]].text, line), sheet.left, sheet.y, look)
        for name in _FACT.finditer(line):
            x = sheet.left + look.width(_FACT.sub(lambda name: facts[name[1]].text, line[: name.start()]))
            value = facts[name[1]]
            sheet.canvas.mark(name[1], value, Box(x, box.top, x + look.width(value.text), box.bottom))
        sheet.y += sheet.step


def _enclosures(sheet: Sheet, document: Letter) -> None:
    if not document.enclosures:
        return
    sheet.y += sheet.step
    sheet.text(sheet.scene.label("enclosures") + (sheet.colon or ":"), look=sheet.label_look)
    dash = sheet.scene.chance(0.5)
    for index, name in enumerate(document.enclosures):
        x = sheet.left
        if dash:
            x = sheet.canvas.text("-", x, sheet.y, sheet.look).x1 + sheet.look.width("  ")
        sheet.canvas.value(f"enclosures/{index}", Printed(name, (name,)), (x, sheet.y), sheet.look)
        sheet.y += sheet.step
