"""Results as rows of a table."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagelift.commands.tables import Table, safe_cell
from pagelift.schema import Schema


def rows(schema: Any, data: Any) -> list[dict[str, str]]:
    table = Table(Schema.load(schema).root)
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows(data)]


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


TEXT = {"type": "string"}


def test_nested_objects_become_dotted_columns() -> None:
    assert rows(obj(a=TEXT, b=obj(c=TEXT, d={"type": "boolean"})), {"a": "x", "b": {"c": None, "d": True}}) == [
        {"a": "x", "b.c": "", "b.d": "true"}
    ]


def test_no_two_columns_have_one_name() -> None:
    text = {"type": "string"}
    properties = {"a.b": text, "a": {"type": "object", "properties": {"b": text, "": text}}, "": text, "value": text}
    table = Table(Schema.load({"type": "object", "properties": properties}).root)
    assert table.columns == ['"a.b"', "a.b", 'a.""', '""', "value"]
    assert list(table.rows({"a.b": "1", "a": {"b": "2", "": "3"}, "": "4", "value": "5"})) == [["1", "2", "3", "4", "5"]]


def test_entries_become_rows_that_repeat_what_is_around_them() -> None:
    schema = obj(day=TEXT, heats=array(obj(heat=TEXT, swimmers=array(obj(name=TEXT)))), place=obj(city=TEXT))
    data = {
        "day": "Mon",
        "heats": [{"heat": "1", "swimmers": [{"name": "A"}, {"name": "B"}]}, {"heat": "2", "swimmers": []}],
        "place": {"city": "Bern"},
    }
    assert [tuple(row.values()) for row in rows(schema, data)] == [
        ("Mon", "1", "A", "Bern"),
        ("Mon", "1", "B", "Bern"),
        ("Mon", "2", "", "Bern"),
    ]


def test_two_arrays_follow_each_other() -> None:
    schema = obj(id=TEXT, a=array(obj(x=TEXT)), b=obj(c=array(obj(y=TEXT)), z=TEXT))
    data = {"id": "1", "a": [{"x": "x1"}], "b": {"c": [{"y": "y1"}], "z": "z1"}}
    assert rows(schema, data) == [
        {"id": "1", "a.x": "x1", "b.c.y": "", "b.z": "z1"},
        {"id": "1", "a.x": "", "b.c.y": "y1", "b.z": "z1"},
    ]


def test_plain_values_share_a_cell_and_open_shapes_are_json() -> None:
    free = {"type": "object", "additionalProperties": TEXT}
    assert rows(obj(tags=array(TEXT), free=free), {"tags": ["a", "b"], "free": {"k": "v"}}) == [{"tags": "a; b", "free": '{"k": "v"}'}]


def test_a_schema_that_refers_to_itself_has_finitely_many_columns() -> None:
    schema = {"$ref": "#/$defs/t", "$defs": {"t": obj(v=TEXT, children=array({"$ref": "#/$defs/t"}))}}
    data = {"v": "r", "children": [{"v": "c", "children": [{"v": "d", "children": []}]}]}
    (row,) = rows(schema, data)
    assert (row["v"], row["children.v"], row["children.children"]) == ("r", "c", '[{"v": "d", "children": []}]')


def test_no_data_and_scalar_roots() -> None:
    assert rows(obj(a=TEXT, r=array(obj(x=TEXT))), {"a": None, "r": []}) == [{"a": "", "r.x": ""}]
    assert rows(TEXT, "x") == [{"value": "x"}]
    assert rows(array(obj(x=TEXT)), [{"x": "1"}, {"x": "2"}]) == [{"x": "1"}, {"x": "2"}]
    assert rows(array(obj(x=TEXT)), []) == [{"x": ""}]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "＝1"])
def test_formulas_are_disarmed(text: str) -> None:
    assert safe_cell(text) == "'" + text


@pytest.mark.parametrize(("value", "cell"), [(-5, "-5"), (-0.5, "-0.5"), (None, ""), (True, "true"), ("a=b", "a=b"), ([1], "[1]")])
def test_other_cells_stay_as_they_are(value: Any, cell: str) -> None:
    assert safe_cell(value) == cell


@given(st.text())
def test_no_text_starts_a_formula(text: str) -> None:
    assert not safe_cell(text).startswith(("=", "+", "-", "@", "\t", "\r"))
