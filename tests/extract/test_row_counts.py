"""Lists against the rows on the pages: what was left out or made up is told with counts."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extract.reader import FakeDocument, Printed
from pagelift.core import Box, PageContent, Word
from pagelift.evidence.align import align
from pagelift.extract.evidence import answered_fields
from pagelift.extract.row_counts import RowCount, count_in_tables, count_rows
from pagelift.schema import Schema

COLUMNS = {"item": 40.0, "qty": 260.0, "price": 400.0}
NAMES = ("Nut", "Bolt", "Washer", "Screw", "Oil", "Tape", "Drill", "Saw", "Lamp", "Rope")


def document(count: int, per_page: int = 6) -> FakeDocument:
    rows = [
        {
            name: Printed(value, 1 + k // per_page, 3 + k % per_page, COLUMNS[name])
            for name, value in {"item": NAMES[k % 10], "qty": 100 + k, "price": 10.25 + k}.items()
        }
        for k in range(count)
    ]
    return FakeDocument({}, {"rows": rows}, 1 + (count - 1) // per_page)


def pages(known: FakeDocument) -> list[PageContent]:
    """The pages, with a heading above the rows and a total below them."""
    found = []
    for page in known.pages():
        heads = [Word(name.title(), Box(x, 68, x + 30, 78)) for name, x in COLUMNS.items()]
        total = [Word("Total", Box(260, 190, 290, 200)), Word("999.00", Box(400, 190, 436, 200))]
        found.append(PageContent(page.number, 600, 800, (*heads, *page.content.words, *total)))
    return found


def counts(data: Any, contents: list[PageContent]) -> list[RowCount]:
    return count_rows(data, answered_fields(data, align(data, contents), {}), contents)


@settings(max_examples=60, deadline=None)
@given(st.integers(3, 20), st.data())
def test_rows_that_are_left_out_are_counted(count: int, draw: st.DataObject) -> None:
    known = document(count)
    rows = known.truth()["rows"]
    kept = sorted(draw.draw(st.sets(st.integers(0, count - 1), min_size=2)))
    (found,) = counts({"rows": [rows[k] for k in kept]}, pages(known))
    assert found.given == len(kept)
    within = [k for k in range(count) if 1 + kept[0] // 6 <= 1 + k // 6 <= 2 + kept[-1] // 6]
    spaced = all(b - a <= 3 for a, b in itertools.pairwise(kept))  # a page is followed as far as the spacing of rows goes on
    assert len(kept) <= found.seen <= len(within)
    if spaced and kept[0] < 6:
        assert found.seen == len(within)


@given(st.integers(2, 20))
def test_all_rows_are_no_mismatch(count: int) -> None:
    known = document(count)
    (found,) = counts(known.truth(), pages(known))
    assert (found.given, found.seen) == (count, count)


def test_rows_that_are_nowhere_are_told() -> None:
    known = document(5)
    data = {"rows": [*known.truth()["rows"], {"item": "Ghost", "qty": 7777, "price": 88.88}]}
    (found,) = counts(data, pages(known))
    assert (found.given, found.seen) == (6, 5)
    assert "6 entries" in found.warning
    assert "only 5 are seen" in found.warning


@pytest.mark.parametrize("data", [{"rows": []}, {"rows": None}, {"rows": ["Nut"]}, {"other": 1}, [1]])
def test_what_has_no_rows_has_no_counts(data: Any) -> None:
    assert counts(data, pages(document(3))) == []


def test_an_empty_list_beside_a_table_is_told() -> None:
    row = {"type": "object", "properties": {"item": {"type": "string"}, "qty": {"type": "integer"}, "price": {"type": "number"}}}
    schema = Schema.load({"type": "object", "properties": {"rows": {"type": "array", "items": row}}})
    contents = pages(document(5))
    (found,) = count_in_tables({"rows": []}, contents, schema)
    assert (found.given, found.seen) == (0, 5)
    assert "no entries" in found.warning
    assert count_in_tables({"rows": [{}]}, contents, schema) == []
    assert count_in_tables({"rows": []}, [PageContent(1, 600, 800)], schema) == []
