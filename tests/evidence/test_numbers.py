"""Printed numbers: what is one, what it is worth, and by whose convention."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagelift.evidence import CURRENCY_CODES, Decimalmark, infer_mark, parse_number

patient = settings(deadline=None)
SPACES = {"space": " ", "no-break": "\u00a0", "narrow no-break": "\u202f", "thin": "\u2009", "figure": "\u2007"}


def value(text: str, mark: Decimalmark | None = None) -> Decimal | None:
    number = parse_number(text, mark)
    return None if number is None else number.value


@pytest.mark.parametrize("mark", [None, ".", ","])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.234,56", "1234.56"),
        ("1,234.56", "1234.56"),
        ("12.345.678,90", "12345678.90"),
        ("12,345,678.90", "12345678.90"),
        ("1,23,456.78", "123456.78"),
        ("27,80", "27.80"),
        ("27.80", "27.80"),
        ("0,5", "0.5"),
        (".5", "0.5"),
        ("0.500", "0.500"),
        ("0,500", "0.500"),
        ("1.2345", "1.2345"),
        ("1234,567", "1234.567"),
        ("1.234.567", "1234567"),
        ("1,234,567", "1234567"),
        ("1'234.50", "1234.50"),
        ("1’234,50", "1234.50"),
        ("00123", "123"),
        ("42", "42"),
        ("１２，５０", "12.50"),
    ],
)
def test_separators_that_speak_for_themselves(text: str, expected: str, mark: Decimalmark | None) -> None:
    assert value(text, mark) == Decimal(expected)


@pytest.mark.parametrize(("text", "decimals"), [("27,80", 2), ("1.234,5", 1), ("1,234.567", 3), ("1.234.567", 0), ("42", 0)])
def test_printed_decimals_are_counted(text: str, decimals: int) -> None:
    number = parse_number(text)
    assert number is not None
    assert number.decimals == decimals


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES.keys())
def test_spaces_group_digits(space: str) -> None:
    assert value(f"1{space}234,56") == Decimal("1234.56")
    assert value(f"1{space}234{space}567") == 1234567
    assert value(f"12{space}34") is None
    assert value(f"1{space}234{space}56") is None


@pytest.mark.parametrize(
    ("text", "mark", "expected"),
    [
        ("1.234", ".", "1.234"),
        ("1.234", ",", "1234"),
        ("1.234", None, "1234"),
        ("1,234", ",", "1.234"),
        ("1,234", ".", "1234"),
        ("1,234", None, "1234"),
        ("$1,234", ".", "1234"),
        ("1.234 €", ",", "1234"),
    ],
)
def test_one_separator_before_three_digits_follows_the_document(text: str, mark: Decimalmark | None, expected: str) -> None:
    number = parse_number(text, mark)
    assert number is not None
    assert number.value == Decimal(expected)
    assert number.ambiguous


@pytest.mark.parametrize("text", ["1.234,56", "27,80", "0.500", "1234.567", "1.234.567", "1'234", "42"])
def test_nothing_else_is_ambiguous(text: str) -> None:
    number = parse_number(text)
    assert number is not None
    assert not number.ambiguous


@pytest.mark.parametrize(
    "text",
    ["(12.00)", "12.00-", "-12.00", "−12.00", "–12.00", "- 12.00", "($12.00)", "$ (12.00)", "-$12.00", "$-12.00", "-12.00 $", "12.00 -"],
)
def test_signs(text: str) -> None:
    assert value(text) == -12


@pytest.mark.parametrize(
    ("text", "currency", "expected"),
    [
        ("-$5", "USD", "-5"),
        ("$ 5.00", "USD", "5"),
        ("US$ 5.00", "USD", "5"),
        ("€12,50", "EUR", "12.5"),
        ("12,50 €", "EUR", "12.5"),
        ("12,50€", "EUR", "12.5"),
        ("EUR 1.234,56", "EUR", "1234.56"),
        ("1.234,56 EUR", "EUR", "1234.56"),
        ("CHF 1'234.50", "CHF", "1234.5"),
        ("Fr. 20.–", "CHF", "20"),
        ("£3", "GBP", "3"),
        ("¥1,000,000", "JPY", "1000000"),
        ("RM10.60", "MYR", "10.6"),
        ("Rs. 500", "INR", "500"),
        ("99,90 zł", "PLN", "99.9"),
        ("5,-", None, "5"),
        ("12.00*", None, "12"),
    ],
)
def test_currencies_before_and_after(text: str, currency: str | None, expected: str) -> None:
    number = parse_number(text)
    assert number is not None
    assert (number.value, number.currency) == (Decimal(expected), currency)


@pytest.mark.parametrize("code", sorted(CURRENCY_CODES))
def test_every_currency_code_is_read_on_both_sides(code: str) -> None:
    for text in (f"{code} 7.25", f"7.25 {code}", f"{code}7.25"):
        number = parse_number(text)
        assert number is not None, text
        assert (number.value, number.currency) == (Decimal("7.25"), code), text


def test_percent() -> None:
    for text, expected in (("12%", "12"), ("3,5 %", "3.5"), ("-0.25 %", "-0.25")):
        number = parse_number(text)
        assert number is not None
        assert (number.percent, number.value) == (True, Decimal(expected))
    plain = parse_number("12")
    assert plain is not None
    assert not plain.percent


@pytest.mark.parametrize(
    "text",
    [
        "12.3.4",
        "ABC 5",
        "5 XYZ",
        "31.12.2024",
        "12/31/2024",
        "2024-12-31",
        "+49 30 123456",
        "030 1234567",
        "(030) 123-4567",
        "555-1234",
        "1-2",
        "1/2",
        "12:30",
        "1e5",
        "1.2.3.4",
        "RE-4711",
        "No. 5",
        "5 kg",
        "$",
        "-",
        "€ -",
        ",",
        ".",
        "()",
        "%",
        "12,,5",
        "1,2,3",
        "12.",
        "1,234.56.78",
        "12 345 67",
        "two",
        "1 2 3",
    ],
)
def test_what_is_no_number(text: str) -> None:
    assert parse_number(text) is None


@pytest.mark.parametrize("text", ["", " ", "\t\n", "\u00a0"])
def test_white_space_is_no_number(text: str) -> None:
    assert parse_number(text) is None


def test_json_numbers_are_whole_where_the_print_is() -> None:
    cases = [("5", False, 5), ("5.00", False, 5.0), ("5.00", True, 5), ("5.25", True, 5.25), ("(3)", False, -3)]
    for text, integer, expected in cases:
        number = parse_number(text)
        assert number is not None
        got = number.as_json(integer)
        assert (got, type(got)) == (expected, type(expected)), text


def grouped(digits: str, separator: str) -> str:
    head = len(digits) % 3
    return separator.join(filter(None, [digits[:head], *(digits[i : i + 3] for i in range(head, len(digits), 3))]))


CONVENTIONS = [
    (",", "."),
    (".", ","),
    ("", "."),
    ("", ","),
    ("'", "."),
    ("’", "."),
    *((space, mark) for space in SPACES.values() for mark in ".,"),
]
SIGNS = ["{}", "-{}", "({})", "{}-", "−{}"]


@patient
@given(
    st.integers(0, 10**12),
    st.integers(0, 4),
    st.sampled_from(CONVENTIONS),
    st.sampled_from(SIGNS),
    st.sampled_from(["{}", "€ {}", "{} €", "USD {}", "{} CHF", "{} %"]),
)
def test_a_number_printed_in_a_convention_is_read_back(
    whole: int, places: int, convention: tuple[str, str], sign: str, around: str
) -> None:
    separator, mark = convention
    digits = str(whole).rjust(places + 1, "0")
    expected = Decimal(digits).scaleb(-places)
    printed = grouped(digits[: len(digits) - places], separator) + (mark + digits[-places:] if places else "")
    number = parse_number(around.format(sign.format(printed)), "." if mark == "." else ",")
    assert number is not None, printed
    assert number.value == (expected if sign == "{}" else -expected)
    assert number.decimals == places
    assert number.percent == ("%" in around)


@patient
@given(st.text(alphabet="0123456789.,-()$€% '", max_size=12), st.sampled_from([None, ".", ","]))
def test_any_text_is_a_finite_number_or_none(text: str, mark: Decimalmark | None) -> None:
    number = parse_number(text, mark)
    if number is not None:
        assert number.value.is_finite()
        assert any(c.isdigit() for c in text)


@patient
@given(st.text(max_size=40))
def test_random_text_never_raises(text: str) -> None:
    parse_number(text)
    infer_mark([text])


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["1,50", "2,30", "3.40"], ","),
        (["1.50", "2.30", "3,40"], "."),
        (["1.234,56", "1.50"], ","),
        (["1,234.56"], "."),
        (["1.234.567"], ","),
        (["1,234,567"], "."),
        (["€12,50", "(3,00)"], ","),
        (["1.234", "5,678"], None),
        (["1.50", "1,50"], None),
        (["31.12.2024", "31.12.24", "10:30", "4711", "Total"], None),
        (["192.168.10.10"], None),
        ([], None),
    ],
)
def test_the_mark_of_a_document_is_that_of_most_numbers(texts: list[str], expected: str | None) -> None:
    assert infer_mark(texts) == expected
    assert infer_mark(reversed(texts)) == expected
