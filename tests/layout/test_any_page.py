"""What holds on every page and for every schema, however odd."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pages import (
    BOOLEAN,
    DATE,
    GLYPHS,
    INTEGER,
    NUMBER,
    STRING,
    STRINGS,
    check,
    check_box,
    describe,
    extract,
    page,
    read,
    record,
    text_field,
    turned,
)

from pagelift.core import Box, PageContent, Proposal, Word
from pagelift.layout import extract_pages
from pagelift.schema import Schema

EVERYTHING = {
    "invoice_number": STRING,
    "invoice_date": DATE,
    "sent_at": {"type": ["string", "null"], "format": "date-time"},
    "total": NUMBER,
    "tax_rate": NUMBER,
    "pages": INTEGER,
    "paid": BOOLEAN,
    "status": {"enum": ["open", "paid", None]},
    "currency": STRING,
    "seller": record(
        {"name": STRING, "address": STRING, "city": STRING, "vat_id": describe(STRING, "9-digit number, for example DE123456789")}
    ),
    "buyer_email": STRING,
    "phone": STRING,
    "website": STRING,
    "iban": STRING,
    "period_start": DATE,
    "period_end": DATE,
    "keywords": STRINGS,
    "remark": STRING,
    "items": {"type": "array", "items": record({"description": STRING, "quantity": NUMBER, "amount": NUMBER})},
}


def run(definition: Any, *contents: PageContent) -> Proposal:
    """The result for a schema of any kind, checked."""
    proposal = extract_pages(contents, Schema.load(definition))
    check(proposal, contents)
    return proposal


# Pages


def test_no_pages_and_pages_without_words() -> None:
    for contents in ((), (page(),), (page(), page(number=2), PageContent(3, 600, 800, source="none"))):
        proposal = run(record(EVERYTHING), *contents)
        assert all(field.status == "absent" for field in proposal.fields.values())


def test_pages_without_size() -> None:
    run(record(EVERYTHING), PageContent(1, 0, 0))
    proposal = extract_pages([PageContent(1, 0, 0, page("Total: 12.50").words)], Schema.load(record({"total": NUMBER})))
    assert proposal.data["total"] in (12.5, None)


GARBAGE = "~ § ¤ |||| ��� _ ___ .... ,,, -- ((( ]] 0 : ; ' \" \\ // ﬁ \u200b \u202e ½ ² 🗹"


def test_a_page_of_garbage() -> None:
    signs = GARBAGE.split()
    run(record(EVERYTHING), page(*(" ".join(signs[i:] + signs[:i]) for i in range(len(signs)))))


def test_words_with_spaces_or_line_breaks_in_them() -> None:
    words = (Word("Total:\n12.50 €", Box(50, 50, 120, 60)), Word("\u00a0", Box(130, 50, 135, 60)), Word(" x ", Box(140, 50, 150, 60)))
    run(record(EVERYTHING), PageContent(1, 600, 800, words))


def test_all_words_at_one_place() -> None:
    words = tuple(Word(text, Box(100, 100, 130, 110)) for text in ["Total:", "12.50", "Invoice", "number", "RE-4711", "Date", "01.02.2024"])
    run(record(EVERYTHING), PageContent(1, 600, 800, words))


@pytest.mark.parametrize(
    "unit", ["1", "a", "ä", "1.", "1,", "1-", "a-", "a.", "1/", "x@", "A1-", "DE89", "1'", "12.50", "(", "€", ":", "☒", "a:"]
)
def test_a_word_without_end(unit: str) -> None:
    def work(length: int) -> None:
        endless = (unit * length)[:length] + "!"
        run(record(EVERYTHING), page("1 total 5", more=[Word(endless, Box(50, 60, 550, 70))]))

    work(100)
    assert seconds(lambda: work(2_000)) < 30 * seconds(lambda: work(500)) + 1  # no more than the square of its length


def test_a_word_of_ten_thousand_characters() -> None:
    content = page("Total: 12.50", more=[Word("a" * 10_000, Box(50, 60, 550, 70))])
    assert run(record({"total": NUMBER}), content).data["total"] == 12.5


TYPICAL = "Total 12.50 Invoice number RE-4711 Date 01.02.2024 the of Berlin 12345 Street EUR 7 Alpha GmbH paid: ☒ x@y.example"


def dense(count: int) -> PageContent:
    """A page with `count` words, 50 on a line, some apart and some close together."""
    words = []
    for i in range(count):
        row, column = divmod(i, 50)
        text = TYPICAL.split()[(i * 7 + row) % len(TYPICAL.split())]
        x, y = 10 + 14 * column + 3 * (column // 7), 10 + 8 * row
        words.append(Word(text, Box(x, y, x + 11, y + 6)))
    return PageContent(1, 800, 30 + 8 * count // 50, tuple(words))


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def test_time_grows_with_the_words_and_not_with_their_square() -> None:
    schema = Schema.load(record(EVERYTHING))
    extract_pages([dense(300)], schema)  # warm: caches of the thesaurus
    quarter = seconds(lambda: extract_pages([dense(1250)], schema))
    assert seconds(lambda: extract_pages([dense(5000)], schema)) < 10 * quarter + 0.5


# Schemas


@pytest.mark.parametrize(
    "definition",
    [
        {"type": "object"},
        {"type": "object", "properties": {}},
        {},
        {"type": "object", "properties": {"a": {}, "b": True}},
        {"type": "array", "items": {"type": "string"}},
        {"type": "array", "items": record({"description": STRING, "amount": NUMBER})},
        {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "array", "items": NUMBER}}}},
        {"type": "object", "properties": {"": STRING, "~/": STRING, " ": record({"": NUMBER}), "名前": STRING, "a" * 500: DATE}},
        {"type": "object", "properties": {"x": {"enum": [None, 1, "1", True, 2.5]}, "y": {"const": "fixed"}}},
        {"type": "object", "properties": {"x": {"anyOf": [record({"a": STRING}), STRING, {"type": "null"}]}}},
        {
            "$defs": {
                "node": {"type": "object", "properties": {"name": STRING, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}
            },
            "$ref": "#/$defs/node",
        },
        {
            "$defs": {"person": {"type": "object", "properties": {"name": STRING, "parent": {"$ref": "#/$defs/person"}}}},
            "type": "object",
            "properties": {"owner": {"$ref": "#/$defs/person"}},
        },
    ],
)
def test_unusual_schemas(definition: dict[str, Any]) -> None:
    content = page("Name: Anna Berger", "Amount: 12.50", {50: "Description", 300: "Amount"}, {50: "Bolt", 300: "12.50"}, "x: 1")
    proposal = extract_pages([content], Schema.load(definition))
    json.dumps(proposal.data)
    for field in proposal.fields.values():
        assert 0 <= field.confidence <= 1


def test_three_hundred_properties() -> None:
    properties = {f"field_{i}": (STRING, NUMBER, DATE)[i % 3] for i in range(299)} | {"invoice_number": STRING}
    content = page("Invoice number: RE-4711", *(f"Line {i}: {i}.50" for i in range(40)))
    assert run(record(properties), content).data["invoice_number"] == "RE-4711"


# Laws


def lines(pieces: Sequence[str]) -> st.SearchStrategy[PageContent]:
    rows = st.lists(st.sampled_from(pieces), min_size=1, max_size=7).map(" ".join)
    return st.lists(rows, min_size=1, max_size=12).map(lambda printed: page(*printed))


MORE = """Total: No. Due date: Name Seller Buyer Bill to Address Phone E-mail Currency Period Skills: Status Paid 1.234,56 € $5.00 19% 100
31/12/24 2024-03-05 - bis AB-123 DE123456789 Anna Berger Hauptstraße 5 Germany www.alpha.de +49 30 1234567 DE89370400440532013000
☐ [x] Yes No open paid , : . ( ) | • x"""
PIECES = TYPICAL.split() + MORE.split()
TEXTS = st.sampled_from(PIECES) | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
PLACES = st.builds(
    lambda text, x, y, size, bold: Word(text, Box(x, y, x + 0.5 * size * max(1, len(text)), y + size), bold=bold, size_pt=size),
    TEXTS,
    st.sampled_from([50.0, 90.0, 200.0, 300.0, 420.0]) | st.floats(0, 450),
    st.sampled_from([40.0, 54.0, 68.0, 82.0, 300.0]) | st.floats(0, 700),
    st.sampled_from([8.0, 10.0, 16.0]),
    st.booleans(),
)
SCATTERED = st.lists(PLACES, max_size=30).map(lambda words: PageContent(1, 900, 800, tuple(words)))
FORMS = st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(PIECES), st.booleans()), max_size=8).map(
    lambda rows: page(
        *(label for label, _, _ in rows),
        fields=[
            check_box(label, value == "x", 200, 40 + 14 * i) if box else text_field(label, value, 200, 40 + 14 * i)
            for i, (label, value, box) in enumerate(rows)
        ],
    )
)
CONTENTS = lines(PIECES) | SCATTERED | FORMS | lines([p for p in PIECES if p not in GLYPHS]).map(turned)
NAMES = st.sampled_from(list(EVERYTHING)) | st.text(max_size=6)
KINDS = st.sampled_from(list(EVERYTHING.values()))
PROPERTIES = st.dictionaries(NAMES, KINDS, max_size=6)
LISTED = st.sampled_from([STRING, DATE, BOOLEAN, record({"description": STRING, "amount": NUMBER})])
SCHEMAS = st.recursive(
    KINDS | LISTED.map(lambda items: {"type": "array", "items": items}),
    lambda inner: st.dictionaries(NAMES, inner, max_size=4).map(record),
    max_leaves=8,
)
COORDINATES = st.sampled_from([-50.0, 0.0, 40.0, 45.0, 50.0]) | st.floats(-1e4, 1e4)
SIZES = st.sampled_from([0.01, 1.0, 10.0, 800.0, 1e4])
ODD_WORDS = st.lists(
    st.builds(lambda text, x, y, w, h: Word(text, Box(x, y, x + w, y + h)), TEXTS, COORDINATES, COORDINATES, SIZES, SIZES), max_size=12
)
few = settings(max_examples=40, deadline=None)


@settings(max_examples=150, deadline=None)
@given(CONTENTS, PROPERTIES)
def test_every_value_of_any_page_has_its_evidence(content: PageContent, properties: dict[str, Any]) -> None:
    extract(properties, content)


@few
@given(CONTENTS)
def test_every_value_of_a_large_schema_has_its_evidence(content: PageContent) -> None:
    extract(EVERYTHING, content)


@few
@given(st.lists(CONTENTS, max_size=3), st.dictionaries(NAMES, SCHEMAS, max_size=4))
def test_schemas_of_any_shape_are_answered(contents: list[PageContent], properties: dict[str, Any]) -> None:
    numbered = [dataclasses.replace(content, number=i) for i, content in enumerate(contents, 1)]
    proposal = extract_pages(numbered, Schema.load(record(properties)))
    json.dumps(proposal.data, allow_nan=False)
    assert all(field.page is None or 1 <= field.page <= len(contents) for field in proposal.fields.values())


@few
@given(ODD_WORDS, st.sampled_from([100.0, 600.0]))
def test_words_off_the_page_do_no_harm(words: list[Word], size: float) -> None:
    extract_pages([PageContent(1, size, size, tuple(words))], Schema.load(record(EVERYTHING)))


@few
@given(CONTENTS, PROPERTIES)
def test_the_result_is_the_same_every_time(content: PageContent, properties: dict[str, Any]) -> None:
    schema = record(properties)
    assert extract_pages([content], Schema.load(schema)) == extract_pages([content], Schema.load(schema))


@few
@given(st.permutations(["invoice_number", "invoice_date", "due_date", "total", "email", "skills"]))
def test_the_order_of_properties_does_not_matter(order: list[str]) -> None:
    kinds = {"invoice_date": DATE, "due_date": DATE, "total": NUMBER, "skills": STRINGS}
    content = page(
        {50: "Invoice number", 200: "RE-4711", 330: "Invoice date", 450: "05.03.2024"},
        {50: "Customer number", 200: "88001", 330: "Due date", 450: "04.04.2024"},
        "Skills: Python, SQL",
        "info@alpha.example",
        {50: "Total", -550: "119,00 €"},
    )
    assert read({name: kinds.get(name, STRING) for name in order}, content) == {
        "invoice_number": "RE-4711",
        "invoice_date": "2024-03-05",
        "due_date": "2024-04-04",
        "total": 119,
        "email": "info@alpha.example",
        "skills": ["Python", "SQL"],
    }
