"""Check boxes, choices and filled forms: AcroForm widgets, glyphs in print, and values in words."""

from __future__ import annotations

from typing import Any

import pytest
from pages import BOOLEAN, DATE, NUMBER, STRING, STRINGS, Cells, check_box, extract, line_top, page, read, text_field

from pagelift.core import FormField

PAYMENT = {"payment_method": {"enum": ["cash", "credit_card", "bank_transfer", None]}}
ANSWERS = {"smoker": BOOLEAN, "married": BOOLEAN, "pregnant": BOOLEAN}


@pytest.mark.parametrize(
    "rows",
    [
        ["Payment method: ☐ Cash ☒ Credit card ☐ Bank transfer"],
        ["Payment method: ☐ Cash ☑ Credit card ☐ Bank transfer"],
        ["Payment method", "☐ Cash", "☒ Credit card", "☐ Bank transfer"],
        ["Payment method: [ ] Cash [x] Credit card [ ] Bank transfer"],
        ["Payment method: ○ Cash ● Credit card ○ Bank transfer"],
        [{50: "Payment method", 200: "☐ Cash", 300: "☒ Credit card", 420: "☐ Bank transfer"}],
        ["Payment method: Credit card"],
        [{50: "Payment method", 300: "CREDIT CARD"}],
    ],
)
def test_one_of_several_values(rows: list[Cells]) -> None:
    assert read(PAYMENT, page(*rows)) == {"payment_method": "credit_card"}


def test_one_of_several_values_by_form_boxes() -> None:
    top = line_top(0)
    boxes = [check_box(f"p{i}", i == 1, x, top) for i, x in enumerate((150, 220, 320))]
    content = page({50: "Payment method", 165: "Cash", 235: "Credit card", 335: "Bank transfer"}, fields=boxes)
    field = extract(PAYMENT, content).fields["/payment_method"]
    assert (field.value, field.box) == ("credit_card", boxes[1].box)


def test_a_radio_button_answers_by_its_export_value() -> None:
    radio = FormField("Payment", "radio", "credit_card", check_box("", True, 150, line_top(0)).box, label="Payment method", checked=True)
    assert read(PAYMENT, page({50: "How do you pay?"}, fields=[radio])) == {"payment_method": "credit_card"}


def test_a_choice_field() -> None:
    choice = FormField("f1", "choice", "Bank transfer", text_field("", "", 200, line_top(0)).box, label="Payment method")
    assert read(PAYMENT, page({50: "Payment method"}, fields=[choice])) == {"payment_method": "bank_transfer"}


def test_a_checked_box_wins_over_the_same_word_in_a_sentence() -> None:
    content = page("We accept cash only in exceptional cases.", "", "Payment method: ☐ Cash ☒ Credit card")
    assert read(PAYMENT, content) == {"payment_method": "credit_card"}


@pytest.mark.parametrize(
    "rows",
    [
        ["Smoker: ☒ Yes ☐ No", "Married: ☐ Yes ☒ No"],
        ["Smoker ☒ Yes ☐ No Married ☐ Yes ☒ No"],
        ["☒ Smoker", "☐ Married"],
        ["[x] Smoker", "[ ] Married"],
        ["Smoker: ☒ ja ☐ nein", "Married: ☐ oui ☒ non"],
    ],
)
def test_yes_and_no(rows: list[Cells]) -> None:
    assert read(ANSWERS, page(*rows)) == {"smoker": True, "married": False, "pregnant": None}


def test_yes_and_no_by_form_boxes() -> None:
    boxes = [check_box(f"b{i}", i in (0, 3), x, line_top(i // 2)) for i, x in enumerate((150, 220, 150, 220))]
    content = page({50: "Smoker", 165: "Yes", 235: "No"}, {50: "Married", 165: "Yes", 235: "No"}, fields=boxes)
    proposal = extract(ANSWERS, content)
    assert proposal.data == {"smoker": True, "married": False, "pregnant": None}
    assert [proposal.fields[p].box for p in ("/smoker", "/married")] == [boxes[0].box, boxes[3].box]


def test_an_unanswered_question_is_null() -> None:
    data = read(ANSWERS, page("Smoker: ☐ Yes ☐ No", "Married: ☐ Yes ☒ No"))
    assert data == {"smoker": None, "married": False, "pregnant": None}


FORM = {"full_name": STRING, "birth_date": DATE, "city": STRING, "phone": STRING}
LABELS = ["Full name", "Date of birth", "City", "Phone"]
VALUES = ["Anna Berger", "05/04/1980", "", "030 1234567"]
FILLED = {"full_name": "Anna Berger", "birth_date": "1980-04-05", "city": None, "phone": "030 1234567"}


def fields(x: float = 200, **more: Any) -> list[FormField]:
    return [text_field(f"f{i}", value, x, line_top(2 * i), **more) for i, value in enumerate(VALUES)]


def spaced(labels: list[str]) -> list[str]:
    return [row for label in labels for row in (label, "")]


def test_form_fields_beside_their_captions() -> None:
    proposal = extract(FORM, page(*spaced(LABELS), fields=fields()))
    assert proposal.data == FILLED
    assert proposal.fields["/full_name"].raw == "Anna Berger"


def test_form_fields_under_their_captions() -> None:
    below = [text_field(f"f{i}", value, 50, line_top(2 * i + 1)) for i, value in enumerate(VALUES)]
    assert read(FORM, page(*spaced(LABELS), fields=below)) == FILLED


def test_form_fields_with_tooltips() -> None:
    described = [text_field(f.name, f.value, 200, f.box.top + 1, label=label) for f, label in zip(fields(), LABELS, strict=True)]
    assert read(FORM, page(fields=described)) == FILLED


def test_form_fields_with_telling_names() -> None:
    named = [text_field(f"form1[0].{label}[0]", f.value, 200, f.box.top + 1) for f, label in zip(fields(), FORM, strict=True)]
    assert read(FORM, page(fields=named)) == FILLED


def test_a_blank_field_is_null_and_not_what_stands_around_it() -> None:
    proposal = extract({"city": STRING, "full_name": STRING, "birth_date": DATE, "phone": STRING}, page(*spaced(LABELS), fields=fields()))
    assert proposal.fields["/city"].status == "absent"
    assert proposal.fields["/city"].reason


def test_numbers_and_dates_in_form_fields_follow_the_document() -> None:
    typed = [text_field("a", "1.234,50", 200, line_top(0)), text_field("b", "31.12.2024", 200, line_top(2))]
    content = page(*spaced(["Amount paid", "Date"]), fields=typed)
    assert read({"amount_paid": NUMBER, "date": DATE}, content) == {"amount_paid": 1234.5, "date": "2024-12-31"}


def test_a_number_in_several_boxes_is_joined() -> None:
    parts = [text_field(f"s{i}", v, 200 + 40 * i, line_top(0), width=35) for i, v in enumerate(("123", "45", "6789"))]
    asked = {"social_security_number": {"type": "string", "description": "Social security number as ddd-dd-dddd"}}
    assert read(asked, page({50: "Social security number"}, fields=parts)) == {"social_security_number": "123-45-6789"}


def test_words_typed_into_a_list_field() -> None:
    typed = [text_field("a", "Python, SQL", 200, line_top(0))]
    assert read({"skills": STRINGS}, page("Skills", fields=typed)) == {"skills": ["Python", "SQL"]}
