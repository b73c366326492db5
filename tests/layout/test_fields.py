"""Single values: where labels stand and in which language, what is not there, addresses, names, identifiers, lists."""

from __future__ import annotations

from typing import Any

import pytest
from pages import DATE, LEFT_PT, NUMBER, STRING, STRINGS, Row, describe, extract, line_top, page, read, record, turned

from pagelift.core import PageContent, union

INVOICE = {"invoice_number": STRING, "invoice_date": DATE, "total": NUMBER}
ANSWERS = {"invoice_number": "RE-4711", "invoice_date": "2024-03-05", "total": 119}
LABELS_LEFT = page({50: "Invoice number", 200: "RE-4711"}, {50: "Invoice date", 200: "2024-03-05"}, {50: "Total", 200: "119.00"})

PLACES = {
    "left": LABELS_LEFT,
    "left, values at the right margin": page(
        {50: "Invoice number", -550: "RE-4711"}, {50: "Invoice date", -550: "05.03.2024"}, {50: "Total", -550: "119,00"}
    ),
    "inline": page("Invoice number: RE-4711", "Invoice date: 5 March 2024", "Total: $119.00"),
    "glued": page("Invoice number:RE-4711", "Invoice date:05.03.2024", "Total:119,00"),
    "above": page({50: "Invoice number", 200: "Invoice date", 350: "Total"}, {50: "RE-4711", 200: "05.03.2024", 350: "119,00 €"}),
    "above, one column": page("Invoice number", "RE-4711", "", "Invoice date", "5 March 2024", "", "Total", "119.00"),
    "two columns": page({50: "Invoice number:", 150: "RE-4711", 330: "Invoice date:", 450: "2024-03-05"}, {330: "Total:", 450: "119.00"}),
    "below": page(
        *("RE-4711", Row("Invoice number", size=7), "", "5 March 2024", Row("Invoice date", size=7), "", "119.00", Row("Total", size=7)),
        top=200,
    ),
    "among other text": page(
        Row("Alpha Tools", size=16, bold=True),
        "",
        "Thank you for your order. Please pay within 30 days to the account below.",
        "",
        {50: "Invoice number", 200: "RE-4711", 350: "Customer number", 480: "88001"},
        {50: "Invoice date", 200: "2024-03-05", 350: "Delivery date", 480: "2024-03-01"},
        "",
        {50: "Consulting", -550: "100.00"},
        {50: "VAT 19%", -550: "19.00"},
        {50: "Total", -550: "119.00"},
    ),
}


@pytest.mark.parametrize("content", PLACES.values(), ids=PLACES.keys())
def test_where_labels_stand(content: PageContent) -> None:
    assert read(INVOICE, content) == ANSWERS


LANGUAGES = {
    "German": page({50: "Rechnungsnr.", 200: "RE-4711"}, {50: "Rechnungsdatum", 200: "05.03.2024"}, {50: "Gesamtbetrag", 200: "119,00 €"}),
    "German, short": page({50: "Rechnung Nr.", 200: "RE-4711"}, {50: "Datum", 200: "5. März 2024"}, {50: "Summe", 200: "119,00 €"}),
    "French": page({50: "N° de facture", 200: "RE-4711"}, {50: "Date de facture", 200: "5 mars 2024"}, {50: "Total TTC", 200: "119,00 €"}),
    "Spanish": page({50: "Factura nº", 200: "RE-4711"}, {50: "Fecha", 200: "5 de marzo de 2024"}, {50: "Total", 200: "119,00 €"}),
    "Italian": page({50: "Fattura n.", 200: "RE-4711"}, {50: "Data", 200: "05/03/2024"}, {50: "Totale", 200: "119,00 €"}),
    "Dutch": page({50: "Factuurnummer", 200: "RE-4711"}, {50: "Factuurdatum", 200: "05-03-2024"}, {50: "Totaal", 200: "119,00 €"}),
}


@pytest.mark.parametrize("content", LANGUAGES.values(), ids=LANGUAGES.keys())
def test_labels_in_other_languages(content: PageContent) -> None:
    assert read(INVOICE, content) == ANSWERS


@pytest.mark.parametrize("clockwise", [True, False])
def test_a_page_on_its_side(clockwise: bool) -> None:
    assert read(INVOICE, turned(LABELS_LEFT, clockwise)) == ANSWERS


def test_later_pages_are_read_and_pages_count_from_one() -> None:
    first = page("Invoice number: RE-4711", "Invoice date: 2024-03-05", number=1)
    second = page({50: "Total", -550: "119.00"}, number=2)
    proposal = extract(INVOICE, first, second)
    assert proposal.data == ANSWERS
    assert {pointer: field.page for pointer, field in proposal.fields.items()} == {"/invoice_number": 1, "/invoice_date": 1, "/total": 2}


def test_the_last_page_of_a_long_document_is_read() -> None:
    between = [page("Terms and conditions", number=i) for i in range(2, 30)]
    proposal = extract(INVOICE, page("Invoice number: RE-4711"), *between, page({50: "Total", -550: "119.00"}, number=30))
    assert (proposal.data["total"], proposal.fields["/total"].page) == (119, 30)


def test_evidence_is_the_word_on_the_page() -> None:
    proposal = extract(INVOICE, LABELS_LEFT)
    for pointer, text in (("/invoice_number", "RE-4711"), ("/invoice_date", "2024-03-05"), ("/total", "119.00")):
        word = next(w for w in LABELS_LEFT.words if w.text == text)
        field = proposal.fields[pointer]
        assert (field.status, field.raw, field.page, field.box, field.boxes) == ("found", text, 1, word.box, (word.box,))


def test_evidence_on_a_turned_page_is_that_of_the_page_as_shown() -> None:
    content = turned(LABELS_LEFT)
    field = extract(INVOICE, content).fields["/invoice_number"]
    assert field.box == next(w.box for w in content.words if w.text == "RE-4711")


# Nothing is invented


@pytest.mark.parametrize(
    ("properties", "rows"),
    [
        ({"delivery_date": DATE, "discount": NUMBER, "iban": STRING}, ["Invoice number: RE-4711", "Total: 119.00"]),
        ({"email": STRING, "website": STRING, "phone": STRING}, ["Alpha Tools", "Total: 119.00"]),
        ({"due_date": DATE}, ["Dear Sir or Madam,", "we thank you for the pleasant talk."]),
        ({"license_plate": STRING, "vehicle_color": STRING}, ["Invoice number: RE-4711", "Total: 119.00"]),
        ({"payment_method": {"enum": ["cash", "card", None]}, "insured": {"type": ["boolean", "null"]}}, ["Total: 119.00"]),
        ({"skills": STRINGS, "currency": STRING}, ["Total: 119.00"]),
    ],
)
def test_a_label_that_is_not_there_gives_null_with_a_reason(properties: dict[str, Any], rows: list[str]) -> None:
    proposal = extract(properties, page(*rows))
    assert all(value in (None, []) for value in proposal.data.values())
    assert all(field.status == "absent" and field.reason for field in proposal.fields.values())


def test_a_value_that_cannot_be_read_as_the_type_is_not_forced() -> None:
    assert read({"due_date": DATE, "total": NUMBER}, page("Due date: upon receipt", "Total: see annex")) == {
        "due_date": None,
        "total": None,
    }


def test_words_in_the_text_layer_that_nobody_sees_are_not_read() -> None:
    hidden = page("Invoice number: RE-4711").words
    content = PageContent(1, 600, 800, page("Total: 119.00").words, hidden_words=hidden)
    assert read({"invoice_number": STRING}, content) == {"invoice_number": None}


# Addresses, names, identifiers


def test_an_address_is_one_line_of_all_its_lines() -> None:
    content = page("Delivery address:", "Hauptstraße 5", "12345 Berlin", "", "Thank you for your order")
    proposal = extract({"delivery_address": STRING}, content)
    field = proposal.fields["/delivery_address"]
    assert field.value == "Hauptstraße 5, 12345 Berlin"
    assert [box.top for box in field.boxes] == [line_top(1), line_top(2)]
    assert field.box == union(field.boxes)


def test_an_address_in_parts() -> None:
    parts = {"street": STRING, "postcode": STRING, "city": STRING, "country": STRING}
    expected = {"street": "Hauptstraße 5", "postcode": "12345", "city": "Berlin", "country": "Germany"}
    assert read({"address": record(parts)}, page("Address:", "Hauptstraße 5", "12345 Berlin", "Germany")) == {"address": expected}


def test_values_over_two_lines() -> None:
    content = page({50: "Project:", 150: "Northern Harbour and"}, {150: "Railway Bridge"}, {50: "Total:", 150: "119.00"})
    proposal = extract({"project": STRING, "total": NUMBER}, content)
    assert proposal.data == {"project": "Northern Harbour and Railway Bridge", "total": 119}
    assert len(proposal.fields["/project"].boxes) == 2


HONORIFICS = {"Herr Johann Schmidt": "Johann Schmidt", "Mme Jeanne Martin": "Jeanne Martin", "Frau Dr. Eva Weiss": "Dr. Eva Weiss"}


@pytest.mark.parametrize(("printed", "expected"), HONORIFICS.items())
def test_forms_of_address_are_no_part_of_a_name(printed: str, expected: str) -> None:
    proposal = extract({"patient_name": STRING}, page(f"Patient: {printed}"))
    assert proposal.data == {"patient_name": expected}


def test_contacts_have_a_form_of_their_own() -> None:
    properties = {"email": STRING, "phone": STRING, "website": STRING, "iban": STRING}
    content = page("Tel. +49 30 123456", "info@alpha.example", "www.alpha.de", "DE89 3704 0044 0532 0130 00")
    assert read(properties, content) == {
        "email": "info@alpha.example",
        "phone": "+49 30 123456",
        "website": "www.alpha.de",
        "iban": "DE89370400440532013000",
    }


def test_a_stated_number_of_digits() -> None:
    content = page({50: "Customer", 200: "123"}, {50: "Customer", 200: "12345678"}, {50: "Customer", 200: "1234"})
    assert read({"customer_number": describe(STRING, "8-digit customer number")}, content) == {"customer_number": "12345678"}


def test_a_stated_shape() -> None:
    content = page({50: "Policy number", 200: "77001"}, {50: "Policy number", 200: "AB-123"})
    properties = {"policy_number": describe(STRING, "Number of the policy, for example XY-987")}
    assert read(properties, content) == {"policy_number": "AB-123"}


def test_two_identifiers_are_not_mixed_up() -> None:
    content = page({50: "Order number", 200: "B-2001", 330: "Invoice number", 480: "RE-4711"}, {50: "Customer number", 200: "88001"})
    expected = {"customer_number": "88001", "order_number": "B-2001", "invoice_number": "RE-4711"}
    assert read(dict.fromkeys(expected, STRING), content) == expected


@pytest.mark.parametrize(
    "rows",
    [
        ["Skills: Python, SQL, Excel"],
        ["Skills", "• Python", "• SQL", "• Excel"],
        ["Skills:", "Python", "SQL", "Excel"],
        ["Skills: Python; SQL; Excel"],
    ],
)
def test_lists_of_words(rows: list[str]) -> None:
    proposal = extract({"skills": STRINGS}, page(*rows))
    assert proposal.data == {"skills": ["Python", "SQL", "Excel"]}
    assert list(proposal.fields) == ["/skills/0", "/skills/1", "/skills/2"]


def test_a_list_with_one_entry_and_an_empty_one() -> None:
    assert read({"skills": STRINGS, "languages": STRINGS}, page("Skills: Python")) == {"skills": ["Python"], "languages": []}


def test_recognised_words_lower_the_confidence() -> None:
    def confidence(score: float) -> float:
        words = [type(w)(w.text, w.box, "ocr", score) for w in LABELS_LEFT.words]
        return extract(INVOICE, PageContent(1, 600, 800, tuple(words), source="ocr")).fields["/total"].confidence

    assert confidence(0.5) < confidence(0.9) < confidence(1.0)


def test_boxes_start_where_the_value_starts() -> None:
    field = extract({"invoice_number": STRING}, page("Invoice number: RE-4711")).fields["/invoice_number"]
    assert field.box is not None
    assert field.box.x0 > LEFT_PT + 70
