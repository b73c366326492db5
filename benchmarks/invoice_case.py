"""The fixed case of `decoding.py`: an invoice with 12 fields and 20 rows, whose values are printed on its page."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

FIELDS: dict[str, tuple[str, str]] = {
    "invoice_number": ("string", "Invoice no."),
    "invoice_date": ("date", "Date"),
    "due_date": ("date", "Payment due"),
    "supplier_name": ("string", ""),
    "supplier_vat_id": ("string", "VAT ID"),
    "customer_name": ("string", "Bill to"),
    "customer_number": ("string", "Customer no."),
    "order_number": ("string", "Your order"),
    "currency": ("string", "Currency"),
    "net_total": ("number", "Net amount"),
    "tax_total": ("number", "VAT 19 %"),
    "total": ("number", "Total due"),
}
COLUMNS = {"article": "string", "description": "string", "quantity": "integer", "unit_price": "number", "amount": "number"}
GOODS = (
    "Hex bolt M8 x 40|Lock nut M8|Flat washer 8.4|Steel plate 3 mm|Angle bracket 90|Threaded rod 1 m|Wood screw 4 x 50|Wall plug 8".split(
        "|"
    )
)
FINISHES = ("zinc", "stainless A2", "black oxide", "raw")
ROWS = 20


@dataclass(frozen=True, slots=True)
class Case:
    """schema; answer: its JSON text as a model would write it; lines: of the page in reading order."""

    schema: dict[str, Any]
    answer: str
    lines: tuple[str, ...]


def invoice(rows: int = ROWS, seed: int = 0) -> Case:
    """The invoice; other seeds give others of the same form."""
    rng = random.Random(seed)
    items = [_item(rng, index) for index in range(rows)]
    net = sum(cents for *_, cents in items)
    header = {
        "invoice_number": f"RE-2024-{rng.randrange(1000, 9999)}",
        "invoice_date": "2024-03-12",
        "due_date": "2024-04-11",
        "supplier_name": "Nordwind Eisenwaren GmbH",
        "supplier_vat_id": f"DE{rng.randrange(10**8, 10**9)}",
        "customer_name": "Metallbau Schröder & Söhne KG",
        "customer_number": f"K-{rng.randrange(10000, 99999)}",
        "order_number": f"PO {rng.randrange(100000, 999999)}",
        "currency": "EUR",
        "net_total": _json(net),
        "tax_total": _json(net * 19 // 100),
        "total": _json(net + net * 19 // 100),
    }
    printed = header | {"invoice_date": "12.03.2024", "due_date": "11.04.2024"}
    printed |= {name: _print(round(float(header[name]) * 100)) for name in ("net_total", "tax_total", "total")}
    lines = ["Nordwind Eisenwaren GmbH", "Hafenstraße 12, 24103 Kiel", "INVOICE"]
    lines += [f"{label} {printed[name]}" for name, (kind, label) in FIELDS.items() if label and kind != "number"]
    lines += ["Pos. Article Description Qty Unit price Amount"]
    lines += [f"{k + 1} {a} {d} {q} {_print(p)} {_print(c)}" for k, (a, d, q, p, c) in enumerate(items)]
    lines += [f"{label} {printed[name]} EUR" for name, (kind, label) in FIELDS.items() if kind == "number"]
    lines += ["Thank you for your order. Payable without deduction.", "Nordwind Eisenwaren GmbH · Förde Bank · DE02 1203 0000 0000 2020 51"]
    return Case(_schema(), _answer(header, items), tuple(lines))


def _item(rng: random.Random, index: int) -> tuple[str, str, int, int, int]:
    quantity, price = rng.choice((1, 2, 5, 10, 25, 100, 250)), rng.randrange(5, 9000)
    article = f"{rng.randrange(10, 99)}-{rng.randrange(1000, 9999)}"
    return article, f"{GOODS[index % len(GOODS)]} {rng.choice(FINISHES)}", quantity, price, quantity * price


def _answer(header: dict[str, str], items: list[tuple[str, str, int, int, int]]) -> str:
    fields = [
        f'"{name}": {header[name] if FIELDS[name][0] == "number" else json.dumps(header[name], ensure_ascii=False)}' for name in FIELDS
    ]
    rows = [
        f'{{"article": "{article}", "description": "{text}", "quantity": {count}, "unit_price": {_json(price)}, "amount": {_json(cents)}}}'
        for article, text, count, price, cents in items
    ]
    return "{" + ", ".join([*fields, f'"items": [{", ".join(rows)}]']) + "}"


def _schema() -> dict[str, Any]:
    kinds = {"string": {"type": ["string", "null"]}, "number": {"type": ["number", "null"]}, "integer": {"type": ["integer", "null"]}}
    kinds["date"] = {"type": ["string", "null"], "format": "date"}
    row = {"type": "object", "properties": {name: kinds[kind] for name, kind in COLUMNS.items()}}
    fields = {name: kinds[kind] for name, (kind, _) in FIELDS.items()}
    return {"type": "object", "properties": {**fields, "items": {"type": "array", "items": row}}}


def _json(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02}"


def _print(cents: int) -> str:
    """As German invoices print amounts: 1.234,50."""
    return f"{cents // 100:,}".replace(",", ".") + f",{cents % 100:02}"
