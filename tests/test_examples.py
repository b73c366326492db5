"""The shipped example: what is drawn on it is what comes out, and what the README shows is true."""

import json
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pagelift import Extraction, extract

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def result() -> Extraction:
    return extract(ROOT / "examples" / "invoice.pdf", ROOT / "examples" / "invoice.schema.json")


@pytest.fixture(scope="module")
def items(load_script: Callable[[Path], Any]) -> Any:
    """What is drawn in the table: article number, description, quantity, unit price."""
    return load_script(ROOT / "examples" / "make_invoice.py").ITEMS


def test_the_head_and_the_totals_of_the_example(result: Extraction, items: Any) -> None:
    net = sum(quantity * Decimal(price) for _, _, quantity, price in items)
    assert {k: v for k, v in result.data.items() if k != "line_items"} == {
        "invoice_number": "2025-0417",
        "invoice_date": "2025-03-14",
        "due_date": "2025-04-13",
        "order_number": "PO-88213",
        "delivery_note_number": None,
        "seller": {"name": "Lumen & Oak Workshop GmbH", "vat_id": "DE301984527"},
        "buyer": {"name": "Studio Weitblick AG"},
        "currency": "EUR",
        "subtotal": float(net),
        "vat_amount": float(net * 19 / 100),
        "total": float(net * 119 / 100),
        "iban": "DE89370400440532013000",
    }


def test_the_items_of_the_example(result: Extraction, items: Any) -> None:
    names = ("article_number", "description", "quantity", "unit_price", "amount")
    assert [tuple(item[name] for name in names) for item in result.data["line_items"]] == [
        (number, description, quantity, float(price), float(quantity * Decimal(price))) for number, description, quantity, price in items
    ]


def test_the_readme_shows_what_comes_out(result: Extraction) -> None:
    (shown,) = map(json.loads, re.findall(r"```json\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL))
    actual = result.to_dict()
    for key, value in shown["data"].items():
        assert actual["data"][key] == value
    for pointer, evidence in shown["evidence"].items():
        for key in evidence.keys() - {"confidence"}:
            assert actual["evidence"][pointer][key] == evidence[key], (pointer, key)
    assert (actual["engine"], actual["pages"]) == (shown["engine"], shown["pages"])
