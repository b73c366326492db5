"""Arrays of objects, read from pages that the tests set word by word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pagelift.core import Box, Json, PageContent, Word
from pagelift.layout.lines import PageLayout, analyse_page
from pagelift.layout.plan import plan
from pagelift.layout.tables import Row, find_table, find_tables
from pagelift.layout.values import infer_locale
from pagelift.schema import Schema

CHARACTER_PT = 5.0
LINE_PT = 10.0

Cells = dict[float, str]
"""Left edge in points (negative: right edge) to text."""


def layout(lines: Sequence[tuple[float, Cells]], number: int = 1, bold: frozenset[float] = frozenset()) -> PageLayout:
    """A page from (top, cells) pairs; words are monospaced. bold: tops of the lines in bold."""
    words = []
    for top, cells in lines:
        for place, text in cells.items():
            x = place if place >= 0 else -place - CHARACTER_PT * len(text)
            for part in text.split(" "):
                box = Box(x, top, x + CHARACTER_PT * len(part), top + LINE_PT)
                words.append(Word(part, box, bold=top in bold, size_pt=LINE_PT))
                x += CHARACTER_PT * (len(part) + 1) - 2.5
    return analyse_page(PageContent(number, 600, 800, tuple(words)))


def rows_at(top: float, rows: Sequence[Cells], pitch: float = 14) -> list[tuple[float, Cells]]:
    return [(top + pitch * i, row) for i, row in enumerate(rows)]


def schema(items: dict[str, Any], name: str = "line_items", **more: Any) -> dict[str, Any]:
    array = {"type": "array", "items": {"type": "object", "properties": items}}
    return {"type": "object", "properties": {name: array, **more}}


def as_json(row: Row) -> dict[str, Json]:
    out: dict[str, Json] = {}
    for path, cell in row.cells.items():
        place = out
        for key in path[:-1]:
            place = place.setdefault(key, {})
        place[path[-1]] = cell.value
    for path, entries in row.nested.items():
        out[path[-1]] = [as_json(r) for r in entries]
    return out


def read(definition: dict[str, Any], *pages: PageLayout) -> list[dict[str, Json]]:
    queries, tables = plan(Schema.load(definition).root)
    return [as_json(r) for r in find_table(pages, tables[0], infer_locale(pages, queries)).rows]


LINE_ITEM = {
    "description": {"type": "string", "description": "First line of the entry's text"},
    "quantity": {"type": ["number", "null"]},
    "unit_price": {"type": ["number", "null"]},
    "amount": {"type": "number", "description": "Line total"},
}
HEADING = {50: "Description", -330: "Quantity", -430: "Unit price", -540: "Amount"}


def item(text: str, quantity: str, price: str, amount: str) -> Cells:
    return {50: text, -330: quantity, -430: price, -540: amount}


def test_plain_table_ends_at_its_total() -> None:
    page = layout(
        rows_at(
            100,
            [
                {50: "Invoice 4711"},
                HEADING,
                item("Steel bolt", "10", "1.50", "15.00"),
                item("Copper wire", "2", "20.00", "40.00"),
                {-430: "Subtotal", -540: "55.00"},
                {-430: "VAT 20%", -540: "11.00"},
                {-430: "Total", -540: "66.00"},
                {50: "Thank you for your order of 12 March, 2 parcels"},
            ],
        )
    )
    assert read(schema(LINE_ITEM), page) == [
        {"description": "Steel bolt", "quantity": 10, "unit_price": 1.5, "amount": 15.0},
        {"description": "Copper wire", "quantity": 2, "unit_price": 20.0, "amount": 40.0},
    ]


def test_headings_in_other_languages_and_units_in_cells() -> None:
    page = layout(
        rows_at(
            100,
            [
                {50: "Pos.", 90: "Bezeichnung", -330: "Menge", -430: "Einzelpreis", -540: "Gesamtpreis"},
                {50: "1", 90: "Schraube", -330: "1.000 Stk.", -430: "0,05", -540: "50,00"},
                {50: "2", 90: "Draht", -330: "2,5 m", -430: "4,00", -540: "10,00"},
            ],
        )
    )
    assert read(schema(LINE_ITEM), page) == [
        {"description": "Schraube", "quantity": 1000, "unit_price": 0.05, "amount": 50.0},
        {"description": "Draht", "quantity": 2.5, "unit_price": 4.0, "amount": 10.0},
    ]


def test_continuation_lines_belong_to_the_row_above() -> None:
    page = layout(
        rows_at(
            100,
            [
                HEADING,
                item("Steel bolt", "10", "1.50", "15.00"),
                {50: "galvanised, box of 10"},
                item("Copper wire", "2", "20.00", "40.00"),
                {50: "Serial no: 12345"},
            ],
        )
    )
    found = read(schema(LINE_ITEM), page)
    assert [r["description"] for r in found] == ["Steel bolt", "Copper wire"]


def test_name_that_wraps_at_the_column_edge_is_joined() -> None:
    name = {**LINE_ITEM, "description": {"type": "string"}}
    long = "Hydraulic press with two foot pedals, hose and safety"
    page = layout(rows_at(100, [HEADING, item(long, "1", "900.00", "900.00"), {50: "cover"}, item("Oil", "2", "20.00", "40.00")]))
    assert [r["description"] for r in read(schema(name), page)] == [f"{long} cover", "Oil"]


def test_text_before_its_numbers() -> None:
    page = layout(
        [
            (100, HEADING),
            (120, {50: "Steel bolt"}),
            (131, {-330: "10", -430: "1.50", -540: "15.00"}),
            (155, {50: "Copper wire"}),
            (166, {-330: "2", -430: "20.00", -540: "40.00"}),
        ]
    )
    found = read(schema(LINE_ITEM), page)
    assert [(r["description"], r["amount"]) for r in found] == [("Steel bolt", 15.0), ("Copper wire", 40.0)]


def test_value_that_stands_lower_than_its_row() -> None:
    page = layout(
        [
            (100, HEADING),
            (120, {50: "Steel bolt", -330: "10", -430: "1.50"}),
            (129, {-540: "15.00"}),
            (150, {50: "Copper wire", -330: "2", -430: "20.00"}),
            (159, {-540: "40.00"}),
        ]
    )
    found = read(schema(LINE_ITEM), page)
    assert [(r["description"], r["quantity"], r["amount"]) for r in found] == [("Steel bolt", 10, 15.0), ("Copper wire", 2, 40.0)]


@pytest.mark.parametrize("repeated", [True, False])
def test_table_goes_on_over_a_page_break(repeated: bool) -> None:
    first = layout(
        rows_at(
            100,
            [HEADING, item("A thing", "1", "5.00", "5.00"), item("B thing", "2", "5.00", "10.00"), {50: "Carried forward", -540: "15.00"}],
        )
    )
    head = [HEADING] if repeated else []
    second = layout(
        rows_at(
            100, [*head, {50: "Brought forward", -540: "15.00"}, item("C thing", "3", "5.00", "15.00"), {-430: "Total", -540: "30.00"}]
        ),
        number=2,
    )
    assert [r["description"] for r in read(schema(LINE_ITEM), first, second)] == ["A thing", "B thing", "C thing"]


def test_missing_cells_are_left_out() -> None:
    page = layout(
        rows_at(
            100, [HEADING, item("Steel bolt", "10", "1.50", "15.00"), {50: "Freight", -540: "9.00"}, item("Wire", "2", "20.00", "40.00")]
        )
    )
    assert read(schema(LINE_ITEM), page)[1] == {"description": "Freight", "amount": 9.0}


def test_negative_amounts_of_a_credit_note() -> None:
    page = layout(rows_at(100, [HEADING, item("Steel bolt", "-10", "1.50", "-15.00"), item("Wire", "2", "20.00", "(40.00)")]))
    assert [r["amount"] for r in read(schema(LINE_ITEM), page)] == [-15.0, -40.0]


def test_another_table_below_is_not_part_of_it() -> None:
    page = layout(
        rows_at(
            100,
            [
                HEADING,
                item("Steel bolt", "10", "1.50", "15.00"),
                item("Wire", "2", "20.00", "40.00"),
                {50: "Tax code", -330: "Tax rate", -430: "Net", -540: "Tax"},
                {50: "Standard", -330: "20", -430: "55.00", -540: "11.00"},
            ],
        )
    )
    assert len(read(schema(LINE_ITEM), page)) == 2


BOOKING = {
    "date": {"type": "string", "format": "date", "description": "Booking date"},
    "text": {"type": "string", "description": "First line of the booking text"},
    "amount": {"type": "number", "description": "Signed: money out is negative"},
}


def test_money_in_and_out_in_two_columns_and_dates_without_year() -> None:
    page = layout(
        rows_at(
            60,
            [
                {50: "Statement 01.03.2024 - 31.03.2024"},
                {50: "Date", 110: "Description", -440: "Paid out", -540: "Paid in"},
                {110: "Opening balance", -540: "100.00"},
                {50: "04.03.", 110: "Rent March", -440: "700.00"},
                {110: "flat 12"},
                {50: "15.03.", 110: "Salary", -540: "2,000.00"},
                {50: "20.03.", 110: "Card payment", -440: "12.50"},
                {110: "Closing balance", -540: "1,387.50"},
            ],
        )
    )
    assert read(schema(BOOKING, "transactions"), page) == [
        {"date": "2024-03-04", "text": "Rent March", "amount": -700.0},
        {"date": "2024-03-15", "text": "Salary", "amount": 2000.0},
        {"date": "2024-03-20", "text": "Card payment", "amount": -12.5},
    ]


RESULT = {
    "rank": {"type": ["integer", "null"]},
    "athlete": {"type": "string", "description": "Name of the runner"},
    "team": {"type": "string"},
    "time": {"type": "string", "description": "Time as printed, or the code instead of it"},
}
GROUPS = schema(
    {"age_group": {"type": "string"}, "results": {"type": "array", "items": {"type": "object", "properties": RESULT}}}, "age_groups"
)
RESULT_HEADING = {50: "Rank", 100: "Name", 300: "Team", -540: "Time"}


def test_groups_under_labelled_headings_go_on_over_pages() -> None:
    def runner(rank: str, name: str, time: str) -> Cells:
        return {100: name, 300: "TSV Nord", -540: time} | ({50: rank} if rank else {})

    first = layout(
        rows_at(
            100,
            [
                {50: "Age group: 40-44"},
                RESULT_HEADING,
                runner("1", "Ann Lee", "44.01"),
                runner("2", "Eva Holm", "46.80"),
                {50: "Age group: 45-49"},
                RESULT_HEADING,
                runner("1", "Ida Berg", "45.11"),
            ],
        )
    )
    second = layout(
        rows_at(100, [{50: "Age group: 45-49"}, RESULT_HEADING, runner("2", "Mia Roth", "1:03.28"), runner("", "Lea Kurz", "DNS")]),
        number=2,
    )
    found = read(GROUPS, first, second)
    assert [(g["age_group"], [r["athlete"] for r in g["results"]]) for g in found] == [
        ("40-44", ["Ann Lee", "Eva Holm"]),
        ("45-49", ["Ida Berg", "Mia Roth", "Lea Kurz"]),
    ]
    assert found[1]["results"][1:] == [
        {"rank": 2, "athlete": "Mia Roth", "team": "TSV Nord", "time": "1:03.28"},
        {"athlete": "Lea Kurz", "team": "TSV Nord", "time": "DNS"},
    ]


def test_section_heading_fills_a_property_of_every_row_and_ranges_are_divided() -> None:
    lab = {
        "panel": {"type": "string", "description": "heading under which the test is printed"},
        "test": {"type": "string"},
        "value": {"type": ["number", "string"]},
        "unit": {"type": ["string", "null"]},
        "ref_low": {"type": ["number", "null"]},
        "ref_high": {"type": ["number", "null"]},
    }
    page = layout(
        rows_at(
            100,
            [
                {50: "Test", 250: "Result", 330: "Units", 430: "Reference range"},
                {50: "HEMATOLOGY"},
                {50: "Hemoglobin", 250: "13.1", 330: "g/dl", 430: "13.5 - 17.2"},
                {50: "Platelets", 250: "287", 330: "/nl", 430: "150 - 450"},
                {50: "CHEMISTRY"},
                {50: "Glucose", 250: "104", 330: "mg/dl", 430: "< 99"},
            ],
        ),
        bold=frozenset({114.0, 156.0}),
    )
    assert read(schema(lab, "results"), page) == [
        {"panel": "HEMATOLOGY", "test": "Hemoglobin", "value": 13.1, "unit": "g/dl", "ref_low": 13.5, "ref_high": 17.2},
        {"panel": "HEMATOLOGY", "test": "Platelets", "value": 287, "unit": "/nl", "ref_low": 150, "ref_high": 450},
        {"panel": "CHEMISTRY", "test": "Glucose", "value": 104, "unit": "mg/dl", "ref_high": 99},
    ]


def test_tables_side_by_side() -> None:
    entry = {"label": {"type": "string"}, "amount": {"type": "number"}}
    definition = schema(entry, "earnings", deductions=schema(entry, "deductions")["properties"]["deductions"])
    page = layout(
        rows_at(
            100,
            [
                {50: "Earnings", -260: "Amount", 300: "Deductions", -540: "Amount"},
                {50: "Basic pay", -260: "2,000.00", 300: "Income tax", -540: "300.00"},
                {50: "Overtime", -260: "150.00", 300: "Pension", -540: "100.00"},
                {300: "Union dues", -540: "10.00"},
                {50: "Total", -260: "2,150.00", 300: "Total", -540: "410.00"},
            ],
        )
    )
    queries, tables = plan(Schema.load(definition).root)
    earnings, deductions = ([as_json(r) for r in t.rows] for t in find_tables([page], tables, infer_locale([page], queries)))
    assert earnings == [{"label": "Basic pay", "amount": 2000.0}, {"label": "Overtime", "amount": 150.0}]
    assert deductions == [
        {"label": "Income tax", "amount": 300.0},
        {"label": "Pension", "amount": 100.0},
        {"label": "Union dues", "amount": 10.0},
    ]


def test_receipt_without_headings() -> None:
    definition = schema({"name": {"type": "string"}, "qty": {"type": ["number", "null"]}, "amount": {"type": "number"}}, "items")
    page = layout(
        rows_at(
            60,
            [
                {50: "GOLDEN PLOUGH INN"},
                {50: "17.10.24 13:36"},
                {50: "2x Apple juice", -240: "8.40"},
                {50: "1x Soup", -240: "4.60"},
                {50: "1x Noodles", -240: "14.90"},
                {50: "TOTAL", -240: "27.90"},
                {50: "Cash", -240: "30.00"},
            ],
        )
    )
    assert read(definition, page) == [
        {"name": "Apple juice", "qty": 2, "amount": 8.4},
        {"name": "Soup", "qty": 1, "amount": 4.6},
        {"name": "Noodles", "qty": 1, "amount": 14.9},
    ]


COUNTED = [
    (100, {50: "Miel"}),
    (114, {60: "6 x 4,45", -300: "26,70"}),
    (128, {50: "Fromage", -300: "2,88"}),
    (142, {50: "Thé vert"}),
    (156, {60: "2 x 8,73", -300: "17,46"}),
    (170, {50: "Pain", -300: "3,00"}),
    (198, {50: "Total", -300: "50,04"}),
]
COUNT_BESIDE = [
    (100, {50: "Miel 6 x 4,45", -300: "26,70"}),
    (114, {50: "Fromage", -300: "2,88"}),
    (128, {50: "Thé vert", -300: "17,46"}),
    (142, {60: "2 Stk x 8,73"}),
    (156, {50: "Pain", -300: "3,00"}),
    (184, {50: "Total", -300: "50,04"}),
]
NUMBER = {"type": ["number", "null"]}


@pytest.mark.parametrize("lines", [COUNTED, COUNT_BESIDE])
def test_count_and_price_above_beside_or_below_the_amount(lines: list[tuple[float, Cells]]) -> None:
    names = ("name", "quantity", "unit_price", "amount")
    truth = [("Miel", 6, 4.45, 26.7), ("Fromage", None, None, 2.88), ("Thé vert", 2, 8.73, 17.46), ("Pain", None, None, 3)]
    text = {"name": {"type": "string"}}
    rows = read(schema(text | dict.fromkeys(names[1:], NUMBER)), layout(lines))
    assert [tuple(row.get(n) for n in names) for row in rows] == truth
    rows = read(schema(text | dict.fromkeys(names[1:3], NUMBER)), layout(lines))
    assert [tuple(row.get(n) for n in names[:3]) for row in rows] == [t[:3] for t in truth]
    rows = read(schema(text | {"price": NUMBER}), layout(lines))
    assert [(row.get("name"), row.get("price")) for row in rows] == [(t[0], t[3]) for t in truth]


def test_programme_by_day_and_time() -> None:
    session = {"start": {"type": "string"}, "end": {"type": ["string", "null"]}, "title": {"type": "string"}}
    day = {"date": {"type": "string", "format": "date"}, "sessions": {"type": "array", "items": {"type": "object", "properties": session}}}
    page = layout(
        [
            (60, {50: "Conference 2025, 17 September 2025"}),
            (100, {50: "Wednesday 17 September"}),
            (120, {50: "9.00am - 9.30am", 180: "Registration"}),
            (134, {50: "9.30am - 10.15am", 180: "Keynote"}),
            (160, {50: "Thursday 18 September"}),
            (180, {50: "1.15pm - 3.00pm", 180: "Farm visit"}),
        ]
    )
    assert read(schema(day, "days"), page) == [
        {
            "date": "2025-09-17",
            "sessions": [
                {"start": "09:00", "end": "09:30", "title": "Registration"},
                {"start": "09:30", "end": "10:15", "title": "Keynote"},
            ],
        },
        {"date": "2025-09-18", "sessions": [{"start": "13:15", "end": "15:00", "title": "Farm visit"}]},
    ]


def test_nested_objects_in_items() -> None:
    definition = schema({"product": {"type": "object", "properties": {"name": {"type": "string"}}}, "amount": {"type": "number"}})
    page = layout(rows_at(100, [{50: "Name", -540: "Amount"}, {50: "Bolt", -540: "15.00"}, {50: "Wire", -540: "40.00"}]))
    assert read(definition, page) == [{"product": {"name": "Bolt"}, "amount": 15.0}, {"product": {"name": "Wire"}, "amount": 40.0}]


def test_cells_point_to_their_words() -> None:
    page = layout(rows_at(100, [HEADING, item("Steel bolt", "10", "1.50", "15.00"), item("Wire", "2", "20.00", "40.00")]))
    queries, tables = plan(Schema.load(schema(LINE_ITEM)).root)
    result = find_table([page], tables[0], infer_locale([page], queries))
    cell = result.rows[1].cells[("amount",)]
    assert (cell.text, [t.text for t in cell.tokens], cell.page.number) == ("40.00", ["40.00"], 1)
    assert 0 < result.confidence < 1
    assert {"Description", "bolt", "40.00"} <= {t.text for t in result.tokens}


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [(100, {50: "Dear customer, thank you for your letter of 12 March."})],
        [(100, HEADING)],
        [(100, HEADING), (120, {50: "no items"})],
    ],
)
def test_nothing_found_gives_a_reason(lines: list[tuple[float, Cells]]) -> None:
    queries, tables = plan(Schema.load(schema(LINE_ITEM)).root)
    pages = [layout(lines)]
    result = find_table(pages, tables[0], infer_locale(pages, queries))
    assert result.rows == []
    assert result.reason


def test_names_with_remarks_under_a_heading() -> None:
    definition = schema({"language": {"type": "string"}, "level": {"type": ["string", "null"]}}, "languages")
    page = layout(
        [
            (80, {50: "SKILLS"}),
            (94, {50: "Python, Go"}),
            (130, {50: "LANGUAGES"}),
            (146, {50: "English - native"}),
            (160, {50: "German (A2), Welsh"}),
        ]
    )
    assert read(definition, page) == [
        {"language": "English", "level": "native"},
        {"language": "German", "level": "A2"},
        {"language": "Welsh"},
    ]


def test_page_in_two_columns_with_the_headings_in_each() -> None:
    definition = schema({"code": {"type": "string"}, "title": {"type": "string"}, "credits": {"type": "number"}}, "courses")
    heading = {0: "Code", 60: "Course title", 210: "Credits"}

    def column(x: float, top: float, rows: Sequence[tuple[str, str, str]]) -> list[tuple[float, Cells]]:
        cells = [{x + 50: code, x + 110: title, x + 265: credits} for code, title, credits in rows]
        return rows_at(top, [{x + 50 + k: v for k, v in heading.items()}, *cells])

    left = column(0, 100, [("BIO1", "Biology", "4.0"), ("CHE2", "Chemistry", "3.0"), ("ENG1", "Writing", "3.0")])
    right = column(290, 121, [("GEN3", "Genetics", "4.0"), ("STA1", "Statistics", "5.0")])
    assert [r["code"] for r in read(definition, layout([*left, *right]))] == ["BIO1", "CHE2", "ENG1", "GEN3", "STA1"]


def test_equal_rows_at_the_foot_of_a_page_are_kept_and_running_feet_are_not() -> None:
    def page(number: int) -> PageLayout:
        foot = {50: "Acme Ltd, registered in Leeds", 400: f"Page {number} of 2"}
        entries = [(694 + 14 * i, item("Service fee", "1", "10.00", "10.00")) for i in range(4)]
        return layout([(680, HEADING), *entries, (770, foot)], number=number)

    found = read(schema(LINE_ITEM), page(1), page(2))
    assert found == [{"description": "Service fee", "quantity": 1, "unit_price": 10.0, "amount": 10.0}] * 8


def test_every_row_of_a_long_table_is_read() -> None:
    lines = [item(f"Part {i}", str(i % 9 + 1), "1.50", f"{1.5 * (i % 9 + 1):.2f}") for i in range(700)]
    assert len(read(schema(LINE_ITEM), layout(rows_at(40, [HEADING, *lines])))) == 700
