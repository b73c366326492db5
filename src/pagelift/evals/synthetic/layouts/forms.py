"""Layouts of forms: lines to write on, cells, boxes to tick."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

from pagelift.core import Box
from pagelift.evals.synthetic.content.form import Form
from pagelift.evals.synthetic.layouts.heads import Letterhead, footer, letterhead
from pagelift.evals.synthetic.layouts.mixed import mixed
from pagelift.evals.synthetic.layouts.sheet import Fact, Sheet, pairs
from pagelift.evals.synthetic.paint import GRAY, Look, wrapped
from pagelift.evals.synthetic.scene import Printed
from pagelift.evals.synthetic.schemas import ENUMS
from pagelift.evals.synthetic.splits import Split

Fields = Literal["lines", "cells", "boxes", "table", "plain"]


@dataclass(frozen=True, slots=True)
class Family:
    """columns: fields beside each other. numbered: whether fields have numbers before their labels. typed: answers in another font."""

    id: str
    split: Split
    head: Letterhead
    fields: Fields
    columns: int
    numbered: bool
    typed: bool
    tick_first: bool


_NAMED: tuple[Family, ...] = (
    Family("lined", "train", "left", "lines", 1, False, True, True),
    Family("cells", "train", "center", "cells", 2, False, True, True),
    Family("register", "train", "band", "table", 1, False, False, False),
    Family("survey", "train", "right", "plain", 2, True, False, True),
    Family("claim", "validation", "logo", "boxes", 1, False, True, True),
    Family("permit", "validation", "left", "lines", 2, True, False, False),
    Family("joining", "test", "split", "cells", 3, True, False, True),
    Family("intake", "test", "center", "lines", 2, False, True, False),
    Family("request", "test", "logo", "table", 1, True, True, True),
)
FAMILIES: tuple[Family, ...] = _NAMED + mixed(
    _NAMED,
    {
        "head": get_args(Letterhead)[:-1],
        "fields": get_args(Fields),
        "columns": (1, 2, 3),
        "numbered": (True, False),
        "typed": (True, False),
        "tick_first": (True, False),
    },
    40,
)


def draw_form(sheet: Sheet, document: Form, family: Family) -> None:
    """Draw a filled form."""
    scene = sheet.scene
    letterhead(sheet, document.issuer, family.head, "issuer", [])
    sheet.text(scene.label("title_form"), look=sheet.look.bold().sized(1.6).colored(sheet.accent))
    sheet.y += sheet.step * 0.8
    number = 1
    for fields in document.sections:
        facts = [
            Fact(tag, f"{number + k}. {scene.label(tag)}" if family.numbered else scene.label(tag), v)
            for k, (tag, v) in enumerate(fields.items())
        ]
        number += len(facts)
        sheet.ensure(sheet.step * 2.4 * len(facts))
        _fields(sheet, facts, family)
        sheet.y += sheet.step * 0.6
    if document.languages is not None:
        _languages(sheet, document.languages)
    if document.status is not None:
        _status(sheet, document.status, family)
    for concept, ticked in document.ticks.items():
        _tick(sheet, concept, ticked, family)
    if scene.chance(0.7):
        sheet.y += sheet.step
        _fields(sheet, [sheet.fact("sign_date", None if scene.chance(0.2) else scene.date(0))], replace(family, columns=2, fields="lines"))
    footer(sheet, [], "none")


def _answer_look(sheet: Sheet, family: Family) -> Look:
    return Look("Courier", sheet.look.size * 1.02, (0.05, 0.1, 0.4)) if family.typed else sheet.look


def _fields(sheet: Sheet, facts: list[Fact], family: Family) -> None:
    look = _answer_look(sheet, family)
    if family.fields == "plain":
        half = sheet.width / 2
        rows = (len(facts) + 1) // 2
        below = [
            pairs(sheet, part, (sheet.left + k * half, half - 12), sheet.y, "left") for k, part in enumerate((facts[:rows], facts[rows:]))
        ]
        sheet.y = max(below)
        return
    widest = max(sheet.label_look.width(fact.label + sheet.colon) for fact in facts)
    room = widest * {"table": 2.5, "cells": 0.8}.get(family.fields, 1.0) + look.size
    columns = max(1, min(family.columns, int(sheet.width / room)))
    for start in range(0, len(facts), columns):
        row = facts[start : start + columns]
        cell = sheet.width / columns
        draw = {"lines": _on_line, "cells": _in_cell, "boxes": _in_box, "table": _in_table}[family.fields]
        sheet.y += max(draw(sheet, fact, (sheet.left + index * cell, cell), look) for index, fact in enumerate(row))


def _on_line(sheet: Sheet, fact: Fact, span: tuple[float, float], look: Look) -> float:
    """The label, and the answer on a line behind it. Returns the height, as the others do."""
    x, width = span
    box = sheet.canvas.text(fact.label + sheet.colon, x, sheet.y, sheet.label_look)
    start, end = box.x1 + sheet.look.size * 0.6, x + width - 10
    if end - start < 60 or (fact.value and look.width(fact.value.text) > end - start - 4):
        start, down = x, sheet.step * 1.15
    else:
        down = 0.0
    y = sheet.y + down
    if fact.value is not None:
        sheet.canvas.value(fact.tag, wrapped(fact.value, width, look), (start + 3, y), look)
    sheet.canvas.line((start, y + 2.5), (end, y + 2.5), 0.4, GRAY)
    return down + sheet.step * 1.55


def _in_cell(sheet: Sheet, fact: Fact, span: tuple[float, float], look: Look) -> float:
    """A cell with the label small at its top and the answer below."""
    x, width = span
    small = sheet.look.sized(0.78)
    value = wrapped(fact.value, width - 10, look) if fact.value else None
    height = small.leading + look.leading * (2 if value and len(value.lines) > 1 else 1) + 5
    top = sheet.y - small.size
    sheet.canvas.rectangle(Box(x, top, x + width, top + height), sheet.accent)
    sheet.canvas.text(fact.label, x + 4, top + small.size + 1.5, small)
    if value is not None:
        sheet.canvas.value(fact.tag, value, (x + 5, top + small.leading + look.size + 1.5), look)
    return height


def _in_box(sheet: Sheet, fact: Fact, span: tuple[float, float], look: Look) -> float:
    """The label, and under it a box with the answer."""
    x, width = span
    sheet.canvas.text(fact.label, x, sheet.y, sheet.label_look)
    top = sheet.y + sheet.step * 0.3
    sheet.canvas.rectangle(Box(x, top, x + width - 8, top + look.leading * 1.3), GRAY)
    if fact.value is not None:
        sheet.canvas.value(fact.tag, fact.value, (x + 4, top + look.size * 1.15), look)
    return sheet.step * 1.5 + look.leading * 1.4


def _in_table(sheet: Sheet, fact: Fact, span: tuple[float, float], look: Look) -> float:
    """A row of two cells: label, answer."""
    x, width = span
    middle = x + max(width * 0.36, sheet.label_look.width(fact.label) + 10)
    value = wrapped(fact.value, x + width - middle - 10, look) if fact.value else None
    height = look.leading * (len(value.lines) if value else 1) + 6
    top = sheet.y - look.size
    sheet.canvas.rectangle(Box(x, top, x + width, top + height), GRAY)
    sheet.canvas.line((middle, top), (middle, top + height), 0.4, GRAY)
    sheet.canvas.text(fact.label, x + 5, top + look.size + 2, sheet.label_look)
    if value is not None:
        sheet.canvas.value(fact.tag, value, (middle + 5, top + look.size + 2), look)
    return height


def _languages(sheet: Sheet, languages: list[str]) -> None:
    box = sheet.canvas.text(sheet.scene.label("languages") + (sheet.colon or ":"), sheet.left, sheet.y, sheet.label_look)
    x = box.x1 + sheet.look.size
    for index, language in enumerate(languages):
        if index:
            x = sheet.canvas.text("/", x + sheet.look.size * 0.4, sheet.y, sheet.look).x1 + sheet.look.size * 0.4
        x = sheet.canvas.value(f"languages/{index}", Printed(language, (language,)), (x, sheet.y), sheet.look).x1
    sheet.y += sheet.step * 1.5


def _status(sheet: Sheet, status: str, family: Family) -> None:
    """The options of the marital status with a box each."""
    scene, look = sheet.scene, sheet.look
    x = sheet.canvas.text(scene.label("marital_status") + (sheet.colon or ":"), sheet.left, sheet.y, sheet.label_look).x1 + look.size
    for option in ENUMS["marital_status"]:
        label = scene.label(option)
        if x + look.width(label) + 3 * look.size > sheet.right:
            x = sheet.left + look.size
            sheet.y += sheet.step * 1.3
        ticked = option == status
        if family.tick_first:
            x = _square(sheet, x, ticked).x1 + look.size * 0.5
        words = sheet.canvas.text(label, x, sheet.y, look)
        if ticked:
            sheet.canvas.mark("marital_status", Printed(option, (label,)), words)
        x = words.x1 + look.size * 0.5
        if not family.tick_first:
            x = _square(sheet, x, ticked).x1
        x += look.size * 1.4
    sheet.y += sheet.step * 1.5


def _tick(sheet: Sheet, concept: str, ticked: bool, family: Family) -> None:
    label = sheet.scene.label(concept)
    if family.tick_first:
        square = _square(sheet, sheet.left, ticked)
        sheet.canvas.text(label, square.x1 + sheet.look.size * 0.6, sheet.y, sheet.look)
    else:
        words = sheet.canvas.text(label, sheet.left, sheet.y, sheet.look)
        square = _square(sheet, words.x1 + sheet.look.size * 0.6, ticked)
    sheet.canvas.mark(concept, Printed(ticked, ("X" if ticked else "",)), square)
    sheet.y += sheet.step * 1.5


def _square(sheet: Sheet, x: float, ticked: bool) -> Box:
    """A box to tick at x, with a cross if it is ticked."""
    side = sheet.look.size * 1.05
    box = Box(x, sheet.y - side * 0.86, x + side, sheet.y + side * 0.14)
    sheet.canvas.rectangle(box, width=0.6)
    if ticked:
        sheet.canvas.text("X", box.center_x, sheet.y - side * 0.02, Look("Helvetica-Bold", side * 0.9), "center")
    return box
