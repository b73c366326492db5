"""Printed dates: what is one, and which number is the day."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagelift.evidence import Order, find_dates, infer_order, parse_date, stated_order

patient = settings(deadline=None)
ORDERS: tuple[Order, ...] = ("dmy", "mdy")


def found(text: str, order: Order = "dmy") -> list[str]:
    return [span.iso() for span in find_dates(text, order)]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("31/12/24", "2024-12-31"),
        ("12/31/24", "2024-12-31"),
        ("31.12.2024", "2024-12-31"),
        ("31 / 12 / 2024", "2024-12-31"),
        ("31 . 12 . 2024", "2024-12-31"),
        ("31.12.'24", "2024-12-31"),
        ("12 mars 2024", "2024-03-12"),
        ("1er janvier 2020", "2020-01-01"),
        ("5 août 2024", "2024-08-05"),
        ("14 février 2022", "2022-02-14"),
        ("Dec 31, 2024", "2024-12-31"),
        ("Sept. 5, 2024", "2024-09-05"),
        ("March 5th 2024", "2024-03-05"),
        ("5th of March 2024", "2024-03-05"),
        ("31. Dezember 2024", "2024-12-31"),
        ("3. März 2024", "2024-03-03"),
        ("15 JUN 2023", "2023-06-15"),
        ("3 de mayo de 2021", "2021-05-03"),
        ("7 settembre 2019", "2019-09-07"),
        ("2 maart 2018", "2018-03-02"),
        ("12-Mar-24", "2024-03-12"),
        ("12-MAR-2024", "2024-03-12"),
        ("2024-12-31", "2024-12-31"),
        ("2024/12/31", "2024-12-31"),
        ("2024.12.31", "2024-12-31"),
        ("2024年12月31日", "2024-12-31"),
        ("20241231", "2024-12-31"),
        ("29.02.2024", "2024-02-29"),
        ("01.01.1970", "1970-01-01"),
    ],
)
def test_one_reading(text: str, expected: str, order: Order) -> None:
    spans = list(find_dates(text, order))
    assert [s.iso() for s in spans] == [expected]
    assert text[spans[0].start : spans[0].end] == text
    assert not spans[0].ambiguous
    assert parse_date(text, order) == datetime.date.fromisoformat(expected)


@pytest.mark.parametrize(
    ("text", "dmy", "mdy"),
    [
        ("01/02/2024", "2024-02-01", "2024-01-02"),
        ("3.4.24", "2024-04-03", "2024-03-04"),
        ("11-12-2023", "2023-12-11", "2023-11-12"),
    ],
)
def test_two_readings_follow_the_order(text: str, dmy: str, mdy: str) -> None:
    assert found(text, "dmy") == [dmy]
    assert found(text, "mdy") == [mdy]
    assert all(span.ambiguous for order in ORDERS for span in find_dates(text, order))


def test_equal_day_and_month_are_not_ambiguous() -> None:
    assert [(s.iso(), s.ambiguous) for s in find_dates("05/05/2024")] == [("2024-05-05", False)]


@pytest.mark.parametrize(
    "text",
    [
        "31.02.2024",
        "29.02.2023",
        "32/01/2024",
        "13/13/2024",
        "00/01/2024",
        "1/0/2024",
        "2024-13-01",
        "2024-02-30",
        "20241301",
        "30 Feb 2024",
        "99 mars 2024",
        "12 nope 2024",
        "12.2024",
        "03/24",
        "5/6",
        "12.3.4",
        "1.2.3.4",
        "192.168.1.10",
        "123-45-6789",
        "tel 01-02-03-04-05",
        "120241231",
        "1,234.56",
        "4711",
        "",
        "March",
        "March 2024",
    ],
)
def test_what_is_no_date(text: str) -> None:
    assert found(text, "dmy") == found(text, "mdy") == []
    assert parse_date(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "31.12.2024 14:30",
        "31/12/2024, 14:30:05",
        "31/12/202414:30",
        "31/12/2414:30",
        "12/31/2024 2:30 PM",
        "2024-12-31T14:30:00Z",
        "2024-12-31 14:30",
        "Tuesday, 31 December 2024",
        "(31.12.2024)",
        "31.12.2024,",
    ],
)
def test_times_and_signs_around_a_date(text: str) -> None:
    assert found(text) == ["2024-12-31"]
    assert parse_date(text) == datetime.date(2024, 12, 31)


@pytest.mark.parametrize(
    "text",
    [
        "01.03.2024 - 15.03.2024",
        "01.03.2024 – 15.03.2024",
        "vom 01.03.2024 bis 15.03.2024",
        "1 March 2024 to 15 March 2024",
        "du 1er mars 2024 au 15 mars 2024",
        "2024-03-01 / 2024-03-15",
    ],
)
def test_both_ends_of_a_range(text: str) -> None:
    spans = list(find_dates(text))
    assert [s.iso() for s in spans] == ["2024-03-01", "2024-03-15"]
    assert spans[0].end <= spans[1].start
    assert parse_date(text) is None


def test_words_around_make_a_text_more_than_a_date() -> None:
    assert parse_date("31.12.2024") == datetime.date(2024, 12, 31)
    assert parse_date("payable until 31.12.2024 without deduction") is None


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["01/02/2024", "12/31/2024"], "mdy"),
        (["01/02/2024", "31/12/2024"], "dmy"),
        (["12/31/2024", "31/12/2024", "30/11/2024"], "dmy"),
        (["12/31/2024", "11/30/2024", "31/12/2024"], "mdy"),
        (["02/03/2024", "Springfield, IL 62704"], "mdy"),
        (["01.02.2024"], "dmy"),
        (["31.02.2024", "4711", "Total"], "dmy"),
        ([], "dmy"),
    ],
)
def test_the_order_of_a_document_is_that_of_most_dates(texts: list[str], expected: str) -> None:
    assert infer_order(texts) == expected
    assert infer_order(reversed(texts)) == expected


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        ("printed as MM/DD/YYYY", "mdy"),
        ("printed as dd.mm.yyyy", "dmy"),
        ("DD/MM/YY", "dmy"),
        ("d.m.yy", "dmy"),
        ("dates are month/day/year", "mdy"),
        ("the day comes before the month", "dmy"),
        ("month before day", "mdy"),
        ("US date format", "mdy"),
        ("jj/mm/aaaa", "dmy"),
        ("Date as YYYY-MM-DD", None),
        ("date of the invoice", None),
        ("", None),
    ],
)
def test_orders_that_a_schema_states(hint: str, expected: Order | None) -> None:
    assert stated_order(hint) == expected
    for dates in (["12/31/2024"], ["31/12/2024"]):
        assert expected is None or infer_order(dates, hint) == expected


DATES = st.dates(datetime.date(1970, 1, 1), datetime.date(2069, 12, 31))
MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
}
WITH_MONTH = ["{d} {month} {y}", "{d}. {month} {y}", "{d:02} {month} {y}", "{d}-{month}-{y}", "{month} {d}, {y}", "{d} de {month} de {y}"]
NUMERIC = {"dmy": ["{d:02}/{m:02}/{y}", "{d}.{m}.{y}", "{d:02}.{m:02}.{yy:02}", "{d:02}-{m:02}-{y}"]}
NUMERIC["mdy"] = [form.replace("{d", "{x").replace("{m", "{d").replace("{x", "{m") for form in NUMERIC["dmy"]]


def printed(form: str, date: datetime.date, month: str = "") -> str:
    return form.format(d=date.day, m=date.month, y=date.year, yy=date.year % 100, month=month)


@patient
@given(DATES, st.sampled_from(WITH_MONTH), st.sampled_from(sorted(MONTHS)), st.sampled_from(ORDERS))
def test_a_date_with_its_month_in_words_is_read_back(date: datetime.date, form: str, language: str, order: Order) -> None:
    text = printed(form, date, MONTHS[language].split()[date.month - 1])
    assert parse_date(text, order) == date, text


@patient
@given(DATES, st.sampled_from(ORDERS), st.integers(0, 3))
def test_a_numeric_date_is_read_back_in_its_order(date: datetime.date, order: Order, form: int) -> None:
    text = printed(NUMERIC[order][form], date)
    spans = list(find_dates(text, order))
    assert [(s.date, text[s.start : s.end]) for s in spans] == [(date, text)]
    assert spans[0].ambiguous == (date.day <= 12 and date.day != date.month)


@patient
@given(DATES, st.sampled_from(["%Y-%m-%d", "%Y/%m/%d", "%Y%m%d", "%Y-%m-%dT08:05:00"]), st.sampled_from(ORDERS))
def test_year_first_has_one_reading(date: datetime.date, form: str, order: Order) -> None:
    assert [(s.date, s.ambiguous) for s in find_dates(date.strftime(form), order)] == [(date, False)]


@patient
@given(st.lists(DATES, min_size=1, max_size=6), st.sampled_from(ORDERS))
def test_a_document_is_read_in_the_order_that_it_shows(dates: list[datetime.date], order: Order) -> None:
    texts = [printed(NUMERIC[order][0], date) for date in dates]
    if any(date.day > 12 for date in dates):
        inferred = infer_order(texts)
        assert [found(text, inferred) for text in texts] == [[date.isoformat()] for date in dates]


@patient
@given(st.text(alphabet="0123456789./-: ,TJanMar", max_size=30), st.sampled_from(ORDERS))
def test_spans_are_apart_and_inside_the_text(text: str, order: Order) -> None:
    position = 0
    for span in find_dates(text, order):
        assert position <= span.start < span.end <= len(text)
        position = span.end


@patient
@given(st.text(max_size=60))
def test_random_text_never_raises(text: str) -> None:
    list(find_dates(text))
    parse_date(text)
    infer_order([text], text)
