"""What is asked for and in which form it is answered: label words, questions, the locale of a document, values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pages import BOOLEAN, DATE, INTEGER, NUMBER, STRING, STRINGS, describe, layout, page, query, record

from pagelift.layout.lexicon import bag, only_label_words
from pagelift.layout.plan import plan
from pagelift.layout.values import Locale, infer_locale, read_value
from pagelift.schema import Schema

patient = settings(deadline=None)


# Label words


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Invoice number", "Rechnungsnummer"),
        ("Invoice number", "N° de facture"),
        ("Invoice number", "Invoice No.:"),
        ("Invoice date", "Rechnungsdatum"),
        ("invoice_date", "INVOICE DATE"),
        ("customer", "Kunde"),
        ("customer", "client"),
        ("address", "Anschrift"),
        ("address", "adresse"),
        ("phone", "Telefon"),
        ("phone", "téléphone"),
        ("first name", "prénom"),
        ("total", "Gesamtbetrag"),
    ],
)
def test_labels_in_several_languages_say_the_same(one: str, other: str) -> None:
    assert bag(one) & bag(other)


def test_numbers_and_function_words_say_nothing() -> None:
    assert bag("12.50 of the 2024") == frozenset()
    assert bag("") == frozenset()


def test_words_outside_the_thesaurus_stand_for_themselves() -> None:
    assert bag("Zebrafish") == bag("zebrafish:") != frozenset()
    assert not bag("Zebrafish") & bag("Wolverine")
    assert only_label_words("Invoice Date")
    assert not only_label_words("Zebrafish Date")
    assert not only_label_words("4711")


def test_a_part_of_a_compound_gives_all_its_concepts() -> None:
    """It gave only the one that a set held first, so results changed from run to run."""
    assert bag("Zahlbetrag") <= bag("Restzahlbetrag")


@patient
@given(st.text(max_size=60))
def test_any_text_has_a_bag(text: str) -> None:
    assert all(bag(text))
    assert bag(text) == bag(f"  {text}  ")


# Questions


def questions(properties: dict[str, Any]) -> dict[str, str]:
    return {q.pointer: q.kind for q in plan(Schema.load(record(properties)).root)[0]}


def test_kinds_come_from_types_formats_names_and_descriptions() -> None:
    asked = {
        "total": NUMBER,
        "pages": INTEGER,
        "discount_percent": NUMBER,
        "issued": DATE,
        "invoiceDate": STRING,
        "paid": BOOLEAN,
        "status": {"enum": ["open", "closed", None]},
        "invoice_number": STRING,
        "iban": STRING,
        "email": STRING,
        "contact": {"type": "string", "format": "email"},
        "phone": STRING,
        "website": STRING,
        "currency": STRING,
        "billing_address": STRING,
        "postcode": STRING,
        "customer_name": STRING,
        "remark": STRING,
    }
    kinds = [
        "number",
        "number",
        "percent",
        "date",
        "date",
        "boolean",
        "enum",
        "id",
        "iban",
        "email",
        "email",
        "phone",
        "url",
        "currency",
        "address",
        "place",
        "name",
        "text",
    ]
    assert list(questions(asked).values()) == kinds


def test_questions_keep_schema_order_and_escape_their_pointers() -> None:
    nested = {"b/c": STRING, "a~": record({"x": NUMBER, "list": STRINGS}), "rows": {"type": "array", "items": record({"n": NUMBER})}}
    queries, tables = plan(Schema.load(record(nested)).root)
    assert [q.pointer for q in queries] == ["/b~1c", "/a~0/x", "/a~0/list"]
    assert [q.many for q in queries] == [False, False, True]
    assert [t.pointer for t in tables] == ["/rows"]


def test_a_recursive_schema_is_entered_once() -> None:
    person = {"type": "object", "properties": {"name": STRING, "parent": {"$ref": "#/$defs/person"}}}
    definition = {"$defs": {"person": person}, "type": "object", "properties": {"owner": {"$ref": "#/$defs/person"}}}
    queries, _ = plan(Schema.load(definition).root)
    assert [q.pointer for q in queries][:1] == ["/owner/name"]
    assert len(queries) < 20


def test_descriptions_state_digits_shape_and_date_order() -> None:
    assert query("customer", describe(STRING, "8-digit customer number")).digits == 8
    assert query("ssn", describe(STRING, "Social security number as ddd-dd-dddd")).shape == "9-9-9"
    assert query("day", describe(DATE, "Date, printed as MM/DD/YYYY")).order == "mdy"
    assert query("day", DATE).order is None


# Locale and values


def test_the_locale_of_a_document() -> None:
    german = infer_locale([layout(page("Datum 31.12.2024", "Summe 1.119,00 €", "davon 19,00 €"))])
    assert (german.mark, german.order, german.currency) == (",", "dmy", "EUR")
    american = infer_locale([layout(page("Date 12/31/2024", "Total $1,119.00"))])
    assert (american.mark, american.order, american.currency) == (".", "mdy", "USD")
    nothing = infer_locale([])
    assert (nothing.mark, nothing.currency) == (None, None)


def test_the_order_that_the_schema_states_wins() -> None:
    asked = query("date", describe(DATE, "The date, printed as DD/MM/YYYY"))
    locale = infer_locale([layout(page("Date 12/31/2024"))], [asked])
    assert locale.order == "dmy"
    assert read_value(asked, "01/02/2024", Locale(order="mdy")) == "2024-02-01"


@pytest.mark.parametrize(
    ("name", "definition", "text", "expected"),
    [
        ("total", NUMBER, "1.234,50 €", 1234.5),
        ("total", NUMBER, "five", None),
        ("weight", NUMBER, "12 kg", 12),
        ("pages", INTEGER, "1.234", 1234),
        ("pages", INTEGER, "12,5", None),
        ("discount_percent", NUMBER, "19 %", 19),
        ("due_date", DATE, "5 mars 2024", "2024-03-05"),
        ("due_date", DATE, "soon", None),
        ("sent", {"type": "string", "format": "date-time"}, "05.03.2024 14:30", "2024-03-05T14:30:00Z"),
        ("start", {"type": "string", "format": "time"}, "2:30 pm", "14:30:00"),
        ("paid", BOOLEAN, "Yes", True),
        ("paid", BOOLEAN, "nein", False),
        ("paid", BOOLEAN, "perhaps", None),
        ("status", {"enum": ["in_progress", "done"]}, "In progress", "in_progress"),
        ("status", {"enum": ["in_progress", "done"]}, "lost", None),
        ("currency", STRING, "€", "EUR"),
        ("currency", STRING, "CHF", "CHF"),
        ("email", STRING, "Mail: a.b@c.example", "a.b@c.example"),
        ("iban", STRING, "DE89 3704 0044 0532 0130 00", "DE89370400440532013000"),
        ("remark", STRING, "  two   words ", "two words"),
        ("remark", STRING, "  ", None),
        ("tax_id", describe(STRING, "Tax number without spaces"), "12 345 678", "12345678"),
    ],
)
def test_values_in_the_type_asked_for(name: str, definition: dict[str, Any], text: str, expected: Any) -> None:
    value = read_value(query(name, definition), text, Locale(","))
    assert value == expected
    assert type(value) is type(expected) or isinstance(expected, int | float)
