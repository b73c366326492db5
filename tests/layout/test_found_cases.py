"""Cases that were once wrong, each as small as it goes."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from typing import Any

import pytest
from pages import BOOLEAN, DATE, INTEGER, NUMBER, STRING, Row, extract, line_top, page, read, record, text_field, turned

from pagelift.core import Box, PageContent, Word
from pagelift.evidence import find_dates, parse_number, stated_order
from pagelift.layout import extract_pages
from pagelift.schema import Schema

PAYMENT = {"payment_method": {"enum": ["cash", "card", None]}}
PARTY = record({"name": STRING, "vat_id": STRING})
PERIOD = {"start_date": DATE, "end_date": DATE}
MARCH = {"start_date": "2024-03-01", "end_date": "2024-03-15"}
LETTERHEAD = Row("Alpha Tools GmbH", 16, True)

CASES: dict[str, tuple[dict[str, Any], PageContent, dict[str, Any]]] = {
    "a footnote sign is no digit": ({"total": NUMBER}, page({50: "Total", -550: "12.50²"}), {"total": 12.5}),
    "values under the headings of two columns": (
        {"seller": PARTY, "buyer": PARTY},
        page(
            {50: "Seller", 300: "Buyer"},
            {50: "Alpha Tools GmbH", 300: "Beta Foods Ltd"},
            {50: "VAT ID: DE123456789", 300: "VAT ID: GB987654321"},
        ),
        {"seller": {"name": "Alpha Tools GmbH", "vat_id": "DE123456789"}, "buyer": {"name": "Beta Foods Ltd", "vat_id": "GB987654321"}},
    ),
    "from and bill to": (
        {"seller": record({"name": STRING}), "buyer": record({"name": STRING})},
        page({50: "From:", 320: "Bill to:"}, {50: "Alpha Tools GmbH", 320: "Beta Foods Ltd"}),
        {"seller": {"name": "Alpha Tools GmbH"}, "buyer": {"name": "Beta Foods Ltd"}},
    ),
    "one number does not answer for two parties": (
        {"seller_vat_id": STRING, "buyer_vat_id": STRING},
        page("Seller", "Alpha Tools GmbH", "VAT ID: DE123456789"),
        {"seller_vat_id": "DE123456789", "buyer_vat_id": None},
    ),
    "no order number": ({"order_number": STRING}, page("Invoice number: RE-4711"), {"order_number": None}),
    "no due date": ({"due_date": DATE}, page("Invoice date: 2024-03-05"), {"due_date": None}),
    "no box is checked": (PAYMENT, page("Payment method: ☐ Cash ☐ Card"), {"payment_method": None}),
    "a word of a sentence is no answer": (
        {"status": {"enum": ["open", "paid", None]}},
        page("Opening hours: we are open from 9 to 5"),
        {"status": None},
    ),
    "a range without spaces": (PERIOD, page("Period 01.03.2024-15.03.2024"), MARCH),
    "a range without spaces, month first": (PERIOD, page("From 03/01/24-03/15/24"), MARCH),
    "a letterhead ends with its line": (
        {"seller_name": STRING},
        page(LETTERHEAD, "Hauptstraße 5, 12345 Berlin", "", "Invoice number: 4711"),
        {"seller_name": "Alpha Tools GmbH"},
    ),
    "a street after its label": (
        {"street": STRING, "city": STRING, "postcode": STRING},
        page("Street: Hauptstraße 5", "City: Berlin", "Postcode: 12345"),
        {"street": "Hauptstraße 5", "city": "Berlin", "postcode": "12345"},
    ),
    "a rate beside its label": ({"tax_rate": NUMBER}, page({50: "VAT 19%", -550: "19.00"}), {"tax_rate": 19}),
    "captions of a blank form are no values": (
        {"full_name": STRING, "city": STRING},
        page("Full name", "", "City", "", "Phone", fields=[text_field(f"f{i}", "", 200, line_top(2 * i)) for i in range(3)]),
        {"full_name": None, "city": None},
    ),
    "text of a form is no phone number": (
        {"phone": STRING, "website": STRING},
        page("Full name", fields=[text_field("a", "Anna Berger", 200, line_top(0))]),
        {"phone": None, "website": None},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    properties, content, expected = CASES[name]
    assert read(properties, content) == expected


def test_values_at_the_root() -> None:
    assert extract_pages([page("Total: 12.50")], Schema.load({"type": "number", "title": "Total"})).data == 12.5
    skills = Schema.load({"type": "array", "title": "Skills", "items": {"type": "string"}})
    assert extract_pages([page("Skills: Python, SQL")], skills).data == ["Python", "SQL"]


def test_numbers_and_dates_that_look_alike() -> None:
    assert parse_number("31.12.24") is None
    assert parse_number("--5") is None
    crowns = parse_number("100,50 kr")
    assert crowns is not None
    assert float(crowns.value) == 100.5
    dash = parse_number("1.000,-", ".")
    assert dash is not None
    assert (dash.value, dash.ambiguous) == (1000, False)
    assert [stated_order(hint) for hint in ("TT.MM.JJJJ", "month first", "day first")] == ["dmy", "mdy", "dmy"]


def test_a_date_keeps_its_place_in_decomposed_text() -> None:
    text = unicodedata.normalize("NFD", "5 décembre 2024.")
    span = next(find_dates(text))
    assert text[span.start : span.end] == text[:-1]


def test_the_reason_of_a_blank_field() -> None:
    proposal = extract({"city": STRING}, page("City", fields=[text_field("c", "", 200, line_top(0), label="City")]))
    assert proposal.fields["/city"].reason == "the form field is blank"


@pytest.mark.parametrize("items", [NUMBER, INTEGER])
def test_an_array_of_numbers(items: dict[str, Any]) -> None:
    assert read({"readings": {"type": "array", "items": items}}, page("Readings: 12, 13")) == {"readings": [12, 13]}


@pytest.mark.parametrize(("size", "box"), [(600, Box(50, 50, 80, 50)), (0, Box(50, 50, 80, 60)), (800, Box(50, 1e6, 80, 1e6 + 10))])
@pytest.mark.parametrize("properties", [{"status": {"enum": ["open", "paid"]}}, {"seller_name": STRING}])
def test_odd_boxes(size: float, box: Box, properties: dict[str, Any]) -> None:
    content = PageContent(1, size, size, (Word("paid", box), Word("x", Box(0, 0, 9, 9))))
    assert extract_pages([content], Schema.load(record(properties))).data.keys() == properties.keys()


def test_a_check_box_on_a_page_on_its_side() -> None:
    assert read({"paid": BOOLEAN}, turned(page("Total Total ☐ paid"))) == {"paid": False}


def square(x0: float, top: float, side: float = 10.0) -> tuple[Box, ...]:
    x1, bottom = x0 + side, top + side
    return Box(x0, top, x1, top + 0.5), Box(x0, bottom, x1, bottom + 0.5), Box(x0, top, x0 + 0.5, bottom), Box(x1 - 0.5, top, x1, bottom)


def test_a_square_crossed_by_a_letter_is_a_checked_box() -> None:
    content = page({50: "Marital status:", 160: "Single", 230: "Married", 300: "Divorced"})
    cross = Word("X", Box(218, line_top(0) + 1, 224, line_top(0) + 9))
    rules = tuple(edge for x in (146, 216, 286) for edge in square(x, line_top(0)))
    status = {"marital_status": {"enum": ["single", "married", "divorced", None]}}
    schema = Schema.load(record(status))
    assert extract_pages([replace(content, words=(*content.words, cross), rules=rules)], schema).data == {"marital_status": "married"}


def test_a_year_is_no_count() -> None:
    assert read({"months": INTEGER}, page("The contract runs for some months from 1 March 2021")) == {"months": None}


def test_a_page_upside_down() -> None:
    content = page("Invoice number: RE-4711", "Invoice date: 2024-03-05", "Customer number: 88001", "Total amount due: 12.50")
    width, height = content.width_pt, content.height_pt
    turned_words = tuple(
        replace(w, box=Box(width - w.box.x1, height - w.box.bottom, width - w.box.x0, height - w.box.top)) for w in content.words
    )
    asked = {"invoice_number": STRING, "invoice_date": DATE, "total": NUMBER}
    proposal = extract_pages([replace(content, words=turned_words)], Schema.load(record(asked)))
    assert proposal.data == {"invoice_number": "RE-4711", "invoice_date": "2024-03-05", "total": 12.5}
    assert proposal.fields["/invoice_number"].box == turned_words[2].box


def test_a_name_without_meaning_is_not_guessed() -> None:
    assert read({"a": STRING}, page(LETTERHEAD, "Hauptstraße 5, 12345 Berlin", "Invoice number: 4711")) == {"a": None}
