"""Values to the words they were read from: formats, scripts, line ends, repeated values, and never an invented box."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagelift.core import Box, PageContent, Word
from pagelift.evidence import rows as rows_module
from pagelift.evidence.align import align, leaves

CHAR_PT, LINE_PT = 6.0, 14.0


def page(*lines: str, number: int = 1, column_pt: float = 0.0) -> PageContent:
    """Words at fixed widths, one line below the other; two blanks or more leave a gap as wide as they are."""
    words = []
    for row, line in enumerate(lines):
        at = 0
        for text in line.split(" "):
            if text:
                x = 40 + column_pt + CHAR_PT * at
                words.append(Word(text, Box(x, 50 + LINE_PT * row, x + CHAR_PT * len(text), 60 + LINE_PT * row)))
            at += len(text) + 1
    return PageContent(number, 600, 800, tuple(words))


def raw(value: Any, *lines: str) -> str | None:
    place = align({"v": value}, [page(*lines)]).get("/v")
    return place.raw if place else None


@pytest.mark.parametrize(
    ("value", "line", "printed"),
    [
        ("ACME GmbH", "Seller: Acme GmbH, Bonn", "Acme GmbH,"),
        ("INV-2024-17", "Invoice INV‑2024‑17", "INV‑2024‑17"),
        ("INV202417", "Invoice INV-2024-17", "INV-2024-17"),
        ("DE89370400440532013000", "IBAN DE89 3704 0044 0532 0130 00", "DE89 3704 0044 0532 0130 00"),
        ("O'Neil", "by O’Neil today", "O’Neil"),
        ("ﬁle", "the file here", "file"),
        (1234.5, "Total 1.234,50 EUR", "1.234,50 EUR"),
        (1234.5, "Total $1,234.50", "$1,234.50"),
        (1234.5, "Total 1 234,50", "1 234,50"),
        (-12.0, "Credit (12.00)", "(12.00)"),
        (-12.0, "Rabatt 12,00-", "12,00-"),
        (0.19, "MwSt. 19 %", "19 %"),
        (19, "MwSt. 19%", "19%"),
        (5, "Qty 5 of 15", "5"),
        ("2024-03-05", "Date: 05.03.2024", "05.03.2024"),
        ("2024-03-05", "Date: March 5, 2024", "March 5, 2024"),
        ("2024-03-05", "Date: 3/5/2024", "3/5/2024"),
        ("2024-03-05", "Am 5. März 2024 bezahlt", "5. März 2024"),
        ("1,234.50", "Total 1.234,50", "1.234,50"),
        ("株式会社山田", "請求書 株式会社山田御中", "株式会社山田御中"),
        ("金額合計", "金額 合計", "金額 合計"),
        ("0049", "Code 0049", "0049"),
        ("Lindenweg 7, 70995 Trier", "Lindenweg 7 70995 Trier", "Lindenweg 7 70995 Trier"),
        ("Lindenweg 7 70995 Trier", "an: Lindenweg 7, 70995 Trier", "Lindenweg 7, 70995 Trier"),
        ("EUR", "Total 5,00 €", "€"),
        ("GBP", "Total £5.00", "£5.00"),
        ("USD", "Total USD 5.00 or $6", "USD"),
    ],
)
def test_formats(value: Any, line: str, printed: str) -> None:
    found = raw(value, line)
    assert found is not None
    assert found in (printed, printed.removesuffix(" EUR"))


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (5, "Total 15 or 51 or 0.5 or 5.5"),
        ("art", "article party"),
        ("2024-03-05", "Date: 06.03.2024"),
        (12, "12345"),
        (True, "true yes"),
        (None, "null none"),
        ("", "anything"),
        ("--", "- -"),
        ("ab", "a b"),
        ("INV-17", "INV-171"),
        ("Rate 1.5 percent", "Rate 15 percent"),
        ("Rate 15 percent", "Rate 1.5 percent"),
        ("EUR", "Total £5.00"),
        (float("1e300"), "1e300"),
    ],
)
def test_what_is_not_printed_has_no_place(value: Any, line: str) -> None:
    assert raw(value, line) is None


def test_values_over_several_lines_have_a_box_per_line() -> None:
    place = align({"v": "Long street name 5, 53111 Bonn"}, [page("Ship to", "Long street", "name 5,", "53111 Bonn")])["/v"]
    assert place.raw == "Long street name 5, 53111 Bonn"
    assert [round(box.top) for box in place.boxes] == [64, 78, 92]
    hyphenated = align({"v": "Lieferschein"}, [page("der Liefer-", "schein ist")])["/v"]
    assert (hyphenated.raw, len(hyphenated.boxes)) == ("Liefer- schein", 2)


def test_text_in_columns_is_found_in_the_order_of_the_words() -> None:
    left, right = page("Acme", "Main Street"), page("Beta", "Side Road", column_pt=200)
    both = PageContent(1, 600, 800, left.words + right.words)
    found = align({"a": "Acme Main Street", "b": "Beta Side Road"}, [both])
    assert found["/a"].box.x1 < found["/b"].box.x0


def test_rows_stay_together_and_each_takes_its_own_words() -> None:
    lines = ["Qty  Item    Price", "1    Nut     2.00", "1    Bolt    2.00", "2    Nut     4.00"]
    data = {
        "rows": [{"qty": 1, "item": "Nut", "price": 2.0}, {"qty": 1, "item": "Bolt", "price": 2.0}, {"qty": 2, "item": "Nut", "price": 4.0}]
    }
    found = align(data, [page(*lines)])
    for row in range(3):
        tops = {round(found[f"/rows/{row}/{key}"].box.top) for key in ("qty", "item", "price")}
        assert tops == {round(50 + LINE_PT * (row + 1))}


def test_equal_rows_take_their_lines_in_order_and_single_values_their_words() -> None:
    lines = ["Nut  2.00", "Bolt  2.00", "Nut  2.00", "Nut  2.00"]
    rows = [{"item": "Nut", "price": 2.0}, {"item": "Nut", "price": 2.0}]
    found = align({"rows": [rows[0], {"item": "Bolt", "price": 2.0}, *rows]}, [page(*lines)])
    assert [round(found[f"/rows/{k}/price"].box.top) for k in range(4)] == [50, 64, 78, 92]
    tags = align({"tags": ["red", "blue", "red"]}, [page("red blue red")])
    assert [round(tags[f"/tags/{k}"].box.x0) for k in range(3)] == [40, 64, 94]


def test_values_of_a_row_may_stand_on_the_lines_around_it() -> None:
    lines = ["Nut  1  2.00", "steel, blue", "Nut  1  2.00", "brass"]
    rows = [{"item": "Nut", "kind": "steel, blue", "price": 2.0}, {"item": "Nut", "kind": "brass", "price": 2.0}]
    found = align({"rows": rows}, [page(*lines)])
    assert [round(found[f"/rows/{k}/{key}"].box.top) for k in range(2) for key in ("item", "kind", "price")] == [50, 64, 50, 78, 92, 78]


def test_rows_in_another_order_than_printed_are_found() -> None:
    found = align({"rows": [{"a": "Zeta", "b": 9.5}, {"a": "Alpha", "b": 7.25}]}, [page("Alpha 7.25", "Zeta 9.50")])
    assert [round(found[f"/rows/{k}/a"].box.top) for k in range(2)] == [64, 50]


def test_short_values_far_from_their_row_have_no_place() -> None:
    lines = ["7", *["filler words here"] * 20, "Nut  2.00", "Bolt  3.00"]
    found = align({"rows": [{"item": "Nut", "qty": 7}, {"item": "Bolt", "qty": None}]}, [page(*lines)])
    assert "/rows/0/qty" not in found
    assert "/rows/0/item" in found


def test_long_arrays_are_placed_in_parts_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    data = {"rows": [{"item": "Nut" if k % 3 else "Bolt", "price": 2.0} for k in range(30)]}
    pages = [page(*[f"{row['item']}  2.00" for row in data["rows"]])]
    whole = align(data, pages)
    monkeypatch.setattr(rows_module, "MOST_STEPS", 100)
    assert align(data, pages) == whole
    assert [round(whole[f"/rows/{k}/item"].box.top) for k in range(30)] == [round(50 + LINE_PT * k) for k in range(30)]


def test_rows_said_again_stand_where_they_stood_unless_words_are_left_for_them() -> None:
    row = {"item": "Bolt", "price": 2.0}
    data = {"rows": [{"item": "Nut", "price": 5.0}, row, row], "total": 2.0}
    again = {"/rows/2": "/rows/1"}
    once = align(data, [page("Nut  5.00", "Bolt  2.00", "Total  2.00")], again)
    twice = align(data, [page("Nut  5.00", "Bolt  2.00", "      2.00", "Total  2.00")], again)
    for found, top in (once, 64), (twice, 78):
        assert [round(found[pointer].box.top) for pointer in ("/rows/2/item", "/rows/2/price")] == [64, top]
    assert align({"tags": [7.5, 7.5], "total": 7.5}, [page("7.50", "Total  7.50")], {"/tags/1": "/tags/0"})["/tags/1"].box.top == 50


def test_the_name_of_the_key_decides_between_equal_values() -> None:
    content = page("Net    100.00", "Tax      0.00", "Total  100.00")
    found = align({"net": 100, "totalAmount": 100}, [content])
    assert (round(found["/net"].box.top), round(found["/totalAmount"].box.top)) == (50, 78)


def test_pages_are_told_apart() -> None:
    found = align({"a": "First", "b": "Second", "c": {"d": "Second", "e": 7}}, [page("First", number=3), page("Second 7", number=4)])
    assert {pointer: place.page for pointer, place in found.items()} == {"/a": 3, "/b": 4, "/c/d": 4, "/c/e": 4}


def test_pointers_are_escaped() -> None:
    assert list(align({"a/b": {"c~d": ["x1"]}}, [page("x1")])) == ["/a~1b/c~0d/0"]
    assert list(align("x1", [page("x1")])) == [""]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
LINES = st.lists(st.text(st.characters(exclude_categories=["Cs", "Zs", "Cc"]), min_size=1, max_size=8).map(str), max_size=12)


@given(JSON, LINES)
def test_places_are_made_of_the_pages_words_only(data: Any, texts: list[str]) -> None:
    content = page(" ".join(texts))
    pointers = {leaf.pointer for leaf in leaves(data)}
    for pointer, place in align(data, [content]).items():
        assert pointer in pointers
        assert place.words
        assert all(any(word is known for known in content.words) for word in place.words)


@given(st.lists(st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=9), min_size=1, max_size=9), st.data())
def test_what_is_printed_is_found(texts: list[str], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(texts) - 1))
    last = data.draw(st.integers(first, len(texts) - 1))
    content = page(" ".join(texts))
    value = " ".join(word.text for word in content.words[first : last + 1])
    if value:
        assert "/v" in align({"v": value}, [content])
