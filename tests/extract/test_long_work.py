"""Long documents, wide schemas and long lists: whatever they are divided into, the result is what the document says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from extract.reader import FakeDocument, Printed, Reader
from pagelift.core import Budget
from pagelift.extract.conduct import extract_by_asking
from pagelift.schema import Schema

LINES = 12
COLUMNS = {"item": ("string", 40.0), "qty": ("integer", 260.0), "price": ("number", 400.0)}
ROW = {"type": "object", "properties": {name: {"type": kind} for name, (kind, _) in COLUMNS.items()}}
PROPERTIES = {
    "number": {"type": "string"},
    "date": {"type": "string"},
    "rows": {"type": "array", "items": ROW},
    "customer": {"type": "string"},
    "total": {"type": "number"},
}
SCHEMA = Schema.load({"type": "object", "properties": PROPERTIES, "required": ["number", "rows"]})
ITEMS = st.sampled_from(["Nut", "Bolt", "Wing nut", "Screw", "Oil"])


@st.composite
def documents(draw: st.DrawFn, over_page_ends: bool = True) -> FakeDocument:
    """A list that runs over pages, many of its rows alike, with single values before and behind it."""
    count = draw(st.integers(1, 7))
    rows: list[dict[str, Printed]] = []
    for page in range(1, count + 1):
        for line in range(2, 2 + draw(st.integers(0 if page > 1 else 1, LINES - 4))):
            values = {"item": draw(ITEMS), "qty": draw(st.integers(11, 13)), "price": draw(st.sampled_from([10.5, 20.25]))}
            cells = {name: Printed(value, page, line, COLUMNS[name][1]) for name, value in values.items()}
            if draw(st.integers(0, 5)) == 0:
                del cells["qty"]
            rows.append(cells)
        if over_page_ends and page < count and draw(st.booleans()):
            rows.append(
                {
                    "item": Printed(draw(ITEMS), page, LINES, COLUMNS["item"][1]),
                    "qty": Printed(draw(st.integers(11, 13)), page, LINES, COLUMNS["qty"][1]),
                    "price": Printed(draw(st.sampled_from([10.5, 20.25])), page + 1, 1, COLUMNS["price"][1]),
                }
            )
    last = LINES + 1
    scalars = {
        "number": Printed("A-17", 1, 0, 40.0),
        "date": Printed("2024-03-05", draw(st.integers(1, count)), 0, 200.0),
        "customer": Printed("Miller", draw(st.integers(1, count)), 0, 400.0),
        "total": Printed(20.25, count, last, 400.0),
    }
    return FakeDocument(scalars, {"rows": rows}, count)


def read(document: FakeDocument, reader: Reader, budget: Budget, schema: Schema = SCHEMA) -> tuple[Any, Any]:
    proposal = extract_by_asking(document.pages(), schema, reader, budget)
    return proposal, schema.conform(proposal.data).data


def expected(document: FakeDocument) -> dict[str, Any]:
    truth = document.truth()
    rows = [{name: row.get(name) for name in COLUMNS} for row in truth["rows"]]
    return {name: rows if name == "rows" else truth[name] for name in PROPERTIES}


@settings(max_examples=40, deadline=None)
@given(documents(), st.integers(2, 4), st.integers(1, 2), st.integers(2, 20))
def test_any_division_gives_what_the_document_says(document: FakeDocument, pages: int, overlap: int, fields: int) -> None:
    reader = Reader(document)
    proposal, data = read(document, reader, Budget(prompt_tokens=10 + 100 * pages, overlap_pages=overlap, fields=fields))
    assert data == expected(document)
    assert not proposal.warnings
    plan = proposal.metadata["plan"]
    assert plan["answers"] == plan["questions"] == len(reader.asked)
    assert all(tokens <= 10 + 100 * pages for tokens in plan["prompt_tokens"])


@settings(max_examples=30, deadline=None)
@given(documents(over_page_ends=False), st.integers(1, 7), st.integers(0, 3))
def test_rows_within_pages_survive_any_overlap(document: FakeDocument, pages: int, overlap: int) -> None:
    assert read(document, Reader(document), Budget(prompt_tokens=10 + 100 * pages, overlap_pages=overlap))[1] == expected(document)


@settings(max_examples=40, deadline=None)
@given(documents(), st.integers(120, 600), st.integers(2, 4), st.integers(3, 20))
def test_answers_that_are_cut_off_are_continued(document: FakeDocument, characters: int, pages: int, fields: int) -> None:
    reader = Reader(document, characters)
    proposal, data = read(document, reader, Budget(prompt_tokens=10 + 100 * pages, fields=fields, follow_ups=60))
    assert data == expected(document)
    assert "truncated" not in proposal.metadata
    assert proposal.metadata["passes"] == len(reader.asked)


@settings(max_examples=30, deadline=None)
@given(documents(over_page_ends=False), st.integers(300, 600), st.integers(1, 3))
def test_entries_that_a_continued_answer_says_again_are_not_doubled(document: FakeDocument, characters: int, repeats: int) -> None:
    for number, row in enumerate(document.lists["rows"]):  # of entries that are all alike nobody could tell
        row["item"] = replace(row["item"], value=f"Item {number}")
    proposal, data = read(document, Reader(document, characters, repeats), Budget(follow_ups=60))
    assert data == expected(document)
    assert "truncated" not in proposal.metadata


def test_an_entry_said_again_is_not_doubled_where_its_price_is_the_total() -> None:
    counts = {1: 6, 2: 7, 3: 2}
    rows = [{"price": Printed(10.5, page, line, 400.0)} for page, count in counts.items() for line in range(2, 2 + count)]
    rows[-1]["price"] = replace(rows[-1]["price"], value=20.25)
    for number, row in enumerate(rows):
        row["item"] = replace(row["price"], value=f"Item {number}", x=40.0)
    scalars = {
        "number": Printed("A-17", 1, 0, 40.0),
        "date": Printed("2024-03-05", 1, 0, 200.0),
        "customer": Printed("Miller", 1, 0, 400.0),
        "total": Printed(20.25, 3, LINES + 1, 400.0),
    }
    document = FakeDocument(scalars, {"rows": rows}, 3)
    reader = Reader(document, characters=302, repeats=1)
    assert read(document, reader, Budget(follow_ups=60))[1] == expected(document)
    assert len(reader.asked) == 4


@settings(max_examples=30, deadline=None)
@given(documents(), st.integers(1, 400), st.integers(0, 2))
def test_what_is_cut_off_in_the_end_is_marked_and_the_rest_is_right(document: FakeDocument, characters: int, follow_ups: int) -> None:
    proposal, data = read(document, Reader(document, characters), Budget(follow_ups=follow_ups))
    truth = expected(document)
    known = [row for row in data["rows"] if row in truth["rows"]]
    assert known == truth["rows"][: len(known)]
    assert len(data["rows"]) - len(known) <= 1  # the last row may lack what was cut off
    for name in ("number", "date", "customer", "total"):
        assert data[name] in (truth[name], None)
    if data != truth:
        assert proposal.metadata["truncated"]
        assert any("cut off" in warning for warning in proposal.warnings)
        assert any(field.status == "not_attempted" for field in proposal.fields.values())
