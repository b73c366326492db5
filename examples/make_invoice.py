"""Draws examples/invoice.pdf, a fictitious invoice. Run `python examples/make_invoice.py`; needs reportlab (in requirements/dev.txt).

The file is the same on every run, so that it changes in the repository only when the drawing does.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

from reportlab.lib.colors import HexColor
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

WIDTH, HEIGHT = A4
LEFT, RIGHT = 56, WIDTH - 56
INK, GREY, ACCENT, BAND = HexColor("#1d2733"), HexColor("#6b7684"), HexColor("#0f6b5c"), HexColor("#eef4f2")
ITEMS = [
    ("LO-1140", "Oak writing desk, 160 x 75 cm, oiled", 2, "684.00"),
    ("LO-2207", "Task lamp \u201cFjord\u201d, brass", 4, "129.50"),
    ("LO-3018", "Shelf board, solid oak, 120 cm", 12, "38.25"),
    ("LO-9001", "Assembly on site", 6, "52.00"),
    ("LO-9100", "Delivery to the 3rd floor", 1, "95.00"),
]
VAT_PERCENT = 19
COLUMNS = {"pos": LEFT + 8, "number": LEFT + 34, "description": LEFT + 96, "quantity": 362, "price": 442, "amount": RIGHT - 8}


def draw(path: Path) -> None:
    """Write the invoice to `path`."""
    canvas = Canvas(str(path), pagesize=A4, invariant=1)
    canvas.setTitle("Invoice 2025-0417")
    _letterhead(canvas)
    _parties(canvas)
    bottom = _items(canvas)
    _payment(canvas, bottom - 34)
    canvas.showPage()
    canvas.save()


def _text(canvas: Canvas, x: float, y: float, text: str, **style: Any) -> None:
    """Write `text` with its left end, or with right=True its right end, at x. style: size, bold, color, right."""
    canvas.setFont("Helvetica-Bold" if style.get("bold") else "Helvetica", style.get("size", 9.5))
    canvas.setFillColor(style.get("color", INK))
    (canvas.drawRightString if style.get("right") else canvas.drawString)(x, y, text)


def _letterhead(canvas: Canvas) -> None:
    canvas.setFillColor(ACCENT)
    canvas.rect(0, HEIGHT - 8, WIDTH, 8, stroke=0, fill=1)
    canvas.circle(LEFT + 13, HEIGHT - 62, 13, stroke=0, fill=1)
    canvas.setFillColor(HexColor("#ffffff"))
    canvas.circle(LEFT + 13, HEIGHT - 62, 5, stroke=0, fill=1)
    _text(canvas, LEFT + 36, HEIGHT - 60, "Lumen & Oak Workshop GmbH", size=15, bold=True)
    _text(canvas, LEFT + 36, HEIGHT - 74, "Furniture and light, made in Hamburg", size=8.5, color=GREY)
    for k, line in enumerate(("Speicherweg 14, 20457 Hamburg", "VAT ID: DE301984527", "orders@lumen-oak.example")):
        _text(canvas, RIGHT, HEIGHT - 56 - 12 * k, line, size=8.5, color=GREY, right=True)


def _parties(canvas: Canvas) -> None:
    top = HEIGHT - 138
    _text(canvas, LEFT, top, "Bill to", size=8, bold=True, color=ACCENT)
    for k, line in enumerate(("Studio Weitblick AG", "Accounts payable", "Lindenallee 8", "50968 K\u00f6ln", "Germany")):
        _text(canvas, LEFT, top - 16 - 13 * k, line, size=10, bold=k == 0)
    _text(canvas, 350, top, "Invoice", size=22, bold=True)
    facts = (
        ("Invoice number", "2025-0417"),
        ("Invoice date", "14 March 2025"),
        ("Due date", "13 April 2025"),
        ("Your order", "PO-88213"),
        ("Customer number", "10452"),
    )
    for k, (label, value) in enumerate(facts):
        _text(canvas, 350, top - 22 - 14 * k, label, size=9, color=GREY)
        _text(canvas, RIGHT, top - 22 - 14 * k, value, size=9.5, right=True)


def _items(canvas: Canvas) -> float:
    """Draw the table of items and the totals; returns the lowest y that was used."""
    y = HEIGHT - 272
    canvas.setFillColor(ACCENT)
    canvas.rect(LEFT, y - 7, RIGHT - LEFT, 22, stroke=0, fill=1)
    titles = {
        "pos": "#", "number": "Article", "description": "Description",
        "quantity": "Quantity", "price": "Unit price", "amount": "Amount EUR",
    }  # fmt: skip
    white = HexColor("#ffffff")
    for name, title in titles.items():
        _text(canvas, COLUMNS[name], y, title, size=9, bold=True, color=white, right=name in ("quantity", "price", "amount"))
    net = Decimal(0)
    for k, (number, description, quantity, price) in enumerate(ITEMS):
        y -= 24
        if k % 2:
            canvas.setFillColor(BAND)
            canvas.rect(LEFT, y - 8, RIGHT - LEFT, 24, stroke=0, fill=1)
        amount = quantity * Decimal(price)
        net += amount
        row = {
            "pos": str(k + 1), "number": number, "description": description,
            "quantity": str(quantity), "price": price, "amount": f"{amount:,.2f}",
        }  # fmt: skip
        for name, text in row.items():
            _text(canvas, COLUMNS[name], y, text, right=name in ("quantity", "price", "amount"))
    canvas.setStrokeColor(ACCENT)
    canvas.line(LEFT, y - 12, RIGHT, y - 12)
    vat = (net * VAT_PERCENT / 100).quantize(Decimal("0.01"))
    for label, value in (("Subtotal", net), (f"VAT {VAT_PERCENT}%", vat)):
        y -= 18 if label != "Subtotal" else 32
        _text(canvas, COLUMNS["price"], y, label, color=GREY, right=True)
        _text(canvas, COLUMNS["amount"], y, f"{value:,.2f}", right=True)
    y -= 28
    canvas.setFillColor(BAND)
    canvas.rect(340, y - 9, RIGHT - 340, 26, stroke=0, fill=1)
    _text(canvas, COLUMNS["price"], y, "Total EUR", size=11, bold=True, right=True)
    _text(canvas, COLUMNS["amount"], y, f"{net + vat:,.2f}", size=11, bold=True, color=ACCENT, right=True)
    return y


def _payment(canvas: Canvas, y: float) -> None:
    _text(canvas, LEFT, y, "Payment", size=8, bold=True, color=ACCENT)
    _text(canvas, LEFT, y - 15, "Please pay within 30 days without deduction and quote the invoice number.")
    for k, (label, value) in enumerate((("IBAN", "DE89 3704 0044 0532 0130 00"), ("BIC", "HAFBDEHHXXX"), ("Bank", "Hafenbank Hamburg"))):
        _text(canvas, LEFT, y - 34 - 14 * k, label, color=GREY)
        _text(canvas, LEFT + 40, y - 34 - 14 * k, value)
    canvas.setStrokeColor(HexColor("#cfd6dd"))
    canvas.line(LEFT, 64, RIGHT, 64)
    footer = "Lumen & Oak Workshop GmbH \u00b7 Speicherweg 14 \u00b7 20457 Hamburg \u00b7 Commercial register Hamburg HRB 159203"
    _text(canvas, LEFT, 50, footer, size=7.5, color=GREY)
    _text(canvas, RIGHT, 50, "Page 1 of 1", size=7.5, color=GREY, right=True)


if __name__ == "__main__":
    draw(Path(__file__).with_name("invoice.pdf"))
