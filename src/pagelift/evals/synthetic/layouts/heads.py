"""Letterheads, address blocks and footers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pagelift.core import Box
from pagelift.evals.synthetic.issuers import Party
from pagelift.evals.synthetic.layouts.sheet import Fact, Sheet
from pagelift.evals.synthetic.paint import GRAY, WHITE, Align, Look
from pagelift.evals.synthetic.scene import Printed

Letterhead = Literal["left", "right", "center", "band", "split", "one line", "logo", "none"]
Parties = Literal["window", "labelled", "side", "boxed", "table"]
Footer = Literal["columns", "line", "none"]


def letterhead(sheet: Sheet, party: Party, style: Letterhead, tag: str, contact: Sequence[Fact]) -> None:
    """Draw who issued the document, with address and contact, from `sheet.y` on. tag: of the name; the address has tag_address."""
    look = sheet.look
    name = look.bold().sized(sheet.scene.rng.uniform(1.4, 2.0)).colored(sheet.accent)
    small = look.sized(0.92)
    if style == "none":
        return
    if style == "band":
        _band(sheet, party, name.colored(WHITE), tag, contact)
        return
    x, align = _corner(sheet, style)
    if style == "logo":
        side = name.size * 2.2
        sheet.canvas.rectangle(Box(sheet.left, sheet.y - name.size, sheet.left + side, sheet.y - name.size + side), None, sheet.accent)
        sheet.canvas.text(party.short[:1], sheet.left + side / 2, sheet.y + name.size * 0.5, name.colored(WHITE), "center")
        x += side + look.size
    sheet.canvas.value(tag, party.name, (x, sheet.y), name, align)
    if style == "split":
        x, align = sheet.right, "right"
        sheet.y -= name.leading - small.leading
    sheet.y += name.leading
    lines = ", ".join(party.address.lines) if style in ("one line", "center") else ""
    address = Printed(party.address.data, (lines,)) if lines else party.address
    sheet.canvas.value(f"{tag}_address", address, (x, sheet.y), small, align)
    sheet.y += small.leading * len(address.lines)
    for fact in contact:
        _contact(sheet, fact, x, small, align)
    sheet.y += look.leading
    if style in ("center", "one line") or sheet.scene.chance(0.25):
        sheet.rule(sheet.y - look.leading * 0.6, 1.0)
    sheet.y += look.leading * 1.2


def _corner(sheet: Sheet, style: Letterhead) -> tuple[float, Align]:
    if style == "right":
        return sheet.right, "right"
    return ((sheet.left + sheet.right) / 2, "center") if style == "center" else (sheet.left, "left")


def _contact(sheet: Sheet, fact: Fact, x: float, look: Look, align: Align) -> None:
    """Label and value as one line of text, wherever it is aligned to."""
    if fact.value is None:
        return
    label = f"{fact.label}{sheet.colon or ':'}"
    gap = look.width("  ")
    width = look.width(label) + gap + look.width(fact.value.text)
    start = x - width if align == "right" else x - width / 2 if align == "center" else x
    sheet.canvas.text(label, start, sheet.y, look)
    sheet.canvas.value(fact.tag, fact.value, (start + look.width(label) + gap, sheet.y), look)
    sheet.y += look.leading


def _band(sheet: Sheet, party: Party, name: Look, tag: str, contact: Sequence[Fact]) -> None:
    height = name.size * 3.2
    sheet.canvas.rectangle(Box(0, 0, sheet.canvas.width_pt, height + 14), None, sheet.accent)
    sheet.canvas.value(tag, party.name, (sheet.left, height * 0.62), name)
    sheet.y = height + 14 + sheet.step * 1.6
    small = sheet.look.sized(0.92)
    sheet.canvas.value(f"{tag}_address", party.address, (sheet.left, sheet.y), small)
    below = sheet.y + small.leading * len(party.address.lines)
    for fact in contact:
        _contact(sheet, fact, sheet.right, small, "right")
    sheet.y = max(sheet.y, below) + sheet.step * 1.2


def sender_line(sheet: Sheet, party: Party, tag: str) -> None:
    """The sender in small type over an address window: name and address on one underlined line."""
    tiny = sheet.look.sized(0.75).colored(GRAY)
    box = sheet.canvas.value(tag, party.name, (sheet.left, sheet.y), tiny)
    dot = sheet.canvas.text("·", box.x1 + tiny.size * 0.5, sheet.y, tiny)
    address = Printed(party.address.data, (", ".join(party.address.lines),))
    end = sheet.canvas.value(f"{tag}_address", address, (dot.x1 + tiny.size * 0.5, sheet.y), tiny).x1
    sheet.canvas.line((sheet.left, sheet.y + tiny.size * 0.4), (end, sheet.y + tiny.size * 0.4), 0.3, GRAY)
    sheet.y += sheet.step * 1.5


def addresses(sheet: Sheet, blocks: Sequence[tuple[str, str, str, Party]], style: Parties, width: float) -> None:
    """Draw address blocks from `sheet.y` on. blocks: label (or ""), tags of name and address, party. width: for all of them."""
    top = sheet.y
    lowest = top
    if style == "window":
        blocks = [("" if index == 0 else label, *rest) for index, (label, *rest) in enumerate(blocks)]  # type: ignore[misc]
    beside = style in ("side", "boxed") and len(blocks) > 1 and width > 300
    cell = width / (len(blocks) if beside else 1)
    for index, block in enumerate(blocks):
        x = sheet.left + (index * cell if beside else 0)
        sheet.y = top if beside else sheet.y
        upper = sheet.y
        if style == "table":
            _table_block(sheet, block, x)
        else:
            _address_block(sheet, block, x + (sheet.look.size * 0.6 if style == "boxed" else 0))
        if style == "boxed":
            end = x + (cell - 8 if beside else min(cell, 240.0))
            sheet.canvas.rectangle(Box(x, upper - sheet.look.size * 1.4, end, sheet.y - sheet.look.size * 0.3), sheet.accent)
            sheet.y += sheet.step * 0.6
        sheet.y += 0 if beside else sheet.step * 0.5
        lowest = max(lowest, sheet.y)
    sheet.y = lowest + sheet.step * 0.8


def _address_block(sheet: Sheet, block: tuple[str, str, str, Party], x: float) -> None:
    label, name_tag, address_tag, party = block
    if label:
        sheet.text(label + sheet.colon, x, sheet.label_look)
    sheet.canvas.value(name_tag, party.name, (x, sheet.y), sheet.value_look)
    sheet.y += sheet.step
    sheet.canvas.value(address_tag, party.address, (x, sheet.y), sheet.look)
    sheet.y += sheet.step * len(party.address.lines)


def _table_block(sheet: Sheet, block: tuple[str, str, str, Party], x: float) -> None:
    label, name_tag, address_tag, party = block
    sheet.canvas.text((label or name_tag) + sheet.colon, x, sheet.y, sheet.label_look)
    at = x + max(90.0, sheet.label_look.width((label or name_tag) + sheet.colon) + sheet.look.size)
    sheet.canvas.value(name_tag, party.name, (at, sheet.y), sheet.value_look)
    sheet.canvas.value(address_tag, party.address, (at, sheet.y + sheet.step), sheet.look)
    sheet.y += sheet.step * (1 + len(party.address.lines))


def footer(sheet: Sheet, facts: Sequence[Fact], style: Footer) -> None:
    """Draw the foot of every page: facts, and page numbers where there are several pages."""
    look = sheet.look.sized(0.85)
    pages = len(sheet.canvas.writers)
    numbered = pages > 1 or sheet.scene.chance(0.25)
    for index in range(pages):
        sheet.canvas.page = index
        y = sheet.bottom + 24
        if style != "none" and facts:
            sheet.canvas.line((sheet.left, y - look.leading), (sheet.right, y - look.leading), 0.4, GRAY)
            y = _footer_columns(sheet, facts, y, look) if style == "columns" else _footer_line(sheet, facts, y, look)
        if numbered:
            shown = f"{sheet.scene.label('page')} {index + 1}" + (f" / {pages}" if pages > 1 else "")
            sheet.canvas.text(shown, sheet.right, sheet.canvas.height_pt - 24, look, "right")


def _footer_columns(sheet: Sheet, facts: Sequence[Fact], y: float, look: Look) -> float:
    shown = [fact for fact in facts if fact.value is not None]
    widest = max(look.width(f"{fact.label}:  {fact.value.text if fact.value else ''}") for fact in shown) + look.size
    columns = max(1, min(3, len(shown), int(sheet.width / widest)))
    for index, fact in enumerate(shown[:6]):
        row, column = divmod(index, columns)
        x, at = sheet.left + column * sheet.width / columns, y + row * look.leading * 1.1
        box = sheet.canvas.text(fact.label + (sheet.colon or ":"), x, at, look)
        if fact.value is not None:
            sheet.canvas.value(fact.tag, fact.value, (box.x1 + look.width(" ") * 1.4, at), look)
    return y + look.leading * 2.2


def _footer_line(sheet: Sheet, facts: Sequence[Fact], y: float, look: Look) -> float:
    x = sheet.left
    for fact in facts:
        if fact.value is None:
            continue
        label = fact.label + (sheet.colon or ":")
        width = look.width(label) + look.width(" ") * 1.4 + look.width(fact.value.text)
        if x > sheet.left and x + width > sheet.right:
            x, y = sheet.left, y + look.leading
        box = sheet.canvas.text(label, x, y, look)
        x = sheet.canvas.value(fact.tag, fact.value, (box.x1 + look.width(" ") * 1.4, y), look).x1 + look.size * 1.6
    return y + look.leading
