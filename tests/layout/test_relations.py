"""Values that say something about each other: two parties, nested objects, periods, and amounts that add up."""

from __future__ import annotations

import pytest
from pages import DATE, INTEGER, NUMBER, STRING, Cells, Row, describe, page, read, record

from pagelift.core import PageContent

# Parties

PARTIES = {"seller": record({"name": STRING}), "buyer": record({"name": STRING})}
NAMES = {"seller": {"name": "Alpha Tools GmbH"}, "buyer": {"name": "Beta Foods Ltd"}}
ALPHA = ["Alpha Tools GmbH", "12 High Street", "12345 Berlin"]
BETA = ["Beta Foods Ltd", "7 Low Road", "54321 Munich"]
HEADINGS = [("Seller", "Buyer"), ("Verkäufer", "Käufer"), ("Supplier", "Customer")]


def side_by_side(left: list[str], right: list[str]) -> PageContent:
    rows: list[Cells] = [{50: a, 320: b} for a, b in zip(left, right, strict=True)]
    return page(*rows)


@pytest.mark.parametrize(("selling", "buying"), HEADINGS)
def test_two_parties_side_by_side(selling: str, buying: str) -> None:
    assert read(PARTIES, side_by_side([selling, *ALPHA], [buying, *BETA])) == NAMES
    assert read(PARTIES, side_by_side([buying, *BETA], [selling, *ALPHA])) == NAMES


@pytest.mark.parametrize(("selling", "buying"), HEADINGS)
def test_two_parties_one_under_the_other(selling: str, buying: str) -> None:
    one: list[Row | Cells] = [Row(selling, bold=True), *ALPHA, ""]
    other: list[Row | Cells] = [Row(buying, bold=True), *BETA, ""]
    assert read(PARTIES, page(*one, *other)) == NAMES
    assert read(PARTIES, page(*other, *one)) == NAMES


def test_an_address_goes_with_its_party() -> None:
    content = side_by_side(["Seller", *ALPHA], ["Buyer", *BETA])
    expected = {
        "seller_name": "Alpha Tools GmbH",
        "seller_address": "12 High Street, 12345 Berlin",
        "buyer_name": "Beta Foods Ltd",
        "buyer_address": "7 Low Road, 54321 Munich",
    }
    assert read(dict.fromkeys(expected, STRING), content) == expected


def test_identifiers_under_the_heading_of_their_party() -> None:
    party = record({"name": STRING, "vat_id": STRING})
    content = page("Seller:", "Alpha Tools GmbH", "VAT ID: DE123456789", "", "Buyer:", "Beta Foods Ltd", "VAT ID: GB987654321")
    assert read({"seller": party, "buyer": party}, content) == {
        "seller": {"name": "Alpha Tools GmbH", "vat_id": "DE123456789"},
        "buyer": {"name": "Beta Foods Ltd", "vat_id": "GB987654321"},
    }


@pytest.mark.parametrize("name", ["seller_name", "vendor", "supplier_name", "issuer"])
def test_the_letterhead_is_the_issuer_that_no_label_names(name: str) -> None:
    content = page(
        Row("Alpha Tools GmbH", size=16, bold=True),
        Row("Hauptstraße 5, 12345 Berlin", size=8),
        "",
        "",
        "Invoice number: RE-4711",
        "Invoice date: 05.03.2024",
        Row({50: "Total", -550: "119,00 €"}, skip=300),
    )
    assert read({name: STRING, "invoice_number": STRING}, content) == {name: "Alpha Tools GmbH", "invoice_number": "RE-4711"}


def test_nested_objects_are_told_apart_by_their_labels() -> None:
    properties = {"patient": record({"name": STRING, "birth_date": DATE}), "doctor": record({"name": STRING})}
    expected = {"patient": {"name": "Anna Berger", "birth_date": "1980-04-22"}, "doctor": {"name": "Karl Weiss"}}
    rows = ["Patient name: Anna Berger", "Date of birth: 22.04.1980", "Doctor name: Karl Weiss"]
    assert read(properties, page(*rows)) == expected
    assert read(properties, page(*reversed(rows))) == expected
    assert (
        read(
            properties,
            page({50: "Patient:", 150: "Anna Berger"}, {50: "Date of birth:", 150: "22.04.1980"}, {50: "Doctor:", 150: "Karl Weiss"}),
        )
        == expected
    )


# Dates

PERIOD = {"start_date": DATE, "end_date": DATE}


@pytest.mark.parametrize(
    "row",
    [
        "Period: 01.03.2024 - 15.03.2024",
        "Rental period 01/03/2024 to 15/03/2024",
        "Period 2024-03-01 - 2024-03-15",
        "Zeitraum vom 01.03.2024 bis 15.03.2024",
        "Période du 1er mars 2024 au 15 mars 2024",
        "Period: 03/01/2024 - 03/15/2024",
        "Period 1 March 2024 – 15 March 2024",
        "Start date: 01.03.2024 End date: 15.03.2024",
        {50: "Start date", 150: "01.03.2024", 300: "End date", 400: "15.03.2024"},
    ],
)
def test_both_ends_of_a_period(row: Cells) -> None:
    assert read(PERIOD, page(row)) == {"start_date": "2024-03-01", "end_date": "2024-03-15"}


def test_dates_with_labels_of_their_own() -> None:
    properties = {"due_date": DATE, "invoice_date": DATE, "delivery_date": DATE}
    content = page({50: "Invoice date", 200: "05.03.2024"}, {50: "Delivery date", 200: "01.03.2024"}, {50: "Due date", 200: "04.04.2024"})
    assert read(properties, content) == {"due_date": "2024-04-04", "invoice_date": "2024-03-05", "delivery_date": "2024-03-01"}


@pytest.mark.parametrize(("other", "expected"), [("12/31/2024", "2024-01-02"), ("31/12/2024", "2024-02-01")])
def test_the_document_decides_which_number_is_the_day(other: str, expected: str) -> None:
    content = page("Invoice date: 01/02/2024", f"Due date: {other}")
    assert read({"invoice_date": DATE, "due_date": DATE}, content) == {"invoice_date": expected, "due_date": "2024-12-31"}


@pytest.mark.parametrize(("order", "expected"), [("MM/DD/YYYY", "2024-01-02"), ("DD/MM/YYYY", "2024-02-01")])
def test_the_schema_decides_over_the_document(order: str, expected: str) -> None:
    properties = {"invoice_date": describe(DATE, f"Date of the invoice, printed as {order}")}
    for other in ("12/31/2024", "31/12/2024"):
        assert read(properties, page("Invoice date: 01/02/2024", f"Printed on {other}")) == {"invoice_date": expected}


# Amounts

SUMS = {"subtotal": NUMBER, "tax": NUMBER, "total": NUMBER, "currency": STRING}


@pytest.mark.parametrize(
    ("rows", "currency"),
    [
        ([("Subtotal", "1,000.00"), ("VAT 19%", "190.00"), ("Total USD", "1,190.00")], "USD"),
        ([("Nettobetrag", "1.000,00 €"), ("MwSt 19%", "190,00 €"), ("Gesamtbetrag", "1.190,00 €")], "EUR"),
        ([("Total HT", "1 000,00 €"), ("TVA 19%", "190,00 €"), ("Total TTC", "1 190,00 €")], "EUR"),
        ([("Net", "CHF 1'000.00"), ("Tax", "CHF 190.00"), ("Gross", "CHF 1'190.00")], "CHF"),
        ([("Total", "£1,190.00"), ("thereof VAT", "£190.00"), ("Subtotal", "£1,000.00")], "GBP"),
    ],
)
def test_net_tax_gross_and_currency(rows: list[tuple[str, str]], currency: str) -> None:
    lines: list[Cells] = [{50: label, -550: amount} for label, amount in rows]
    assert read(SUMS, page(*lines)) == {"subtotal": 1000, "tax": 190, "total": 1190, "currency": currency}


def test_a_labelled_currency() -> None:
    assert read({"currency": STRING}, page("Currency: CHF", "Total: 12.50")) == {"currency": "CHF"}


def test_decimal_commas_never_become_thousands() -> None:
    assert read({"total": NUMBER}, page({50: "Summe", -550: "27,80"})) == {"total": 27.8}
    assert read({"total": NUMBER, "tax": NUMBER}, page({50: "Summe", -550: "1.234"}, {50: "MwSt", -550: "7,50"})) == {
        "total": 1234,
        "tax": 7.5,
    }
    assert read({"total": NUMBER, "tax": NUMBER}, page({50: "Total", -550: "1,234"}, {50: "VAT", -550: "7.50"})) == {
        "total": 1234,
        "tax": 7.5,
    }


def test_negative_amounts() -> None:
    assert read({"balance": NUMBER}, page({50: "Balance", -550: "(12.00)"})) == {"balance": -12}
    assert read({"balance": NUMBER}, page({50: "Saldo", -550: "12,00-"})) == {"balance": -12}


def test_whole_numbers() -> None:
    data = read({"pages": INTEGER, "guests": INTEGER}, page("Number of guests: 4", "Pages: 12"))
    assert data == {"pages": 12, "guests": 4}
    assert all(isinstance(value, int) for value in data.values())
