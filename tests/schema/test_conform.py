import datetime
import enum
from decimal import Decimal

import pytest

from pagelift.core import ExtractionError, UnfilledValue
from pagelift.schema import Schema


def props(required=(), **properties):
    return {"type": "object", "properties": properties, "required": list(required)}


def conform(schema, value, **options):
    loaded = Schema.load(schema, **options)
    done = loaded.conform(value)
    assert loaded.errors(done.data) == []
    return done


def losses(done):
    return {d.pointer: d.value for d in done.dropped}


def test_every_property_in_schema_order():
    schema = props(
        b={"type": "string"},
        a={"type": "array", "items": {"type": "string"}},
        nested=props(z={"type": "number"}, y={"type": "boolean"}),
        maybe={"anyOf": [props(q={"type": "string"}), {"type": "null"}]},
    )
    data = conform(schema, {"nested": {"y": True}}).data
    assert data == {"b": None, "a": [], "nested": {"z": None, "y": True}, "maybe": None}
    assert list(data) == ["b", "a", "nested", "maybe"]
    assert list(data["nested"]) == ["z", "y"]


def test_unknown_keys_only_go_when_they_are_forbidden():
    open_schema = props(a={"type": "string"})
    assert conform(open_schema, {"x": [1], "a": "1"}).data == {"a": "1", "x": [1]}
    done = conform(open_schema | {"additionalProperties": False}, {"x": [1], "a": "1"})
    assert done.data == {"a": "1"}
    assert losses(done) == {"/x": [1]}


@pytest.mark.parametrize(
    ("kind", "given", "wanted"),
    [
        ("number", "12", 12),
        ("number", "12.50", 12.5),
        ("number", "-0.1", -0.1),
        ("integer", 12.0, 12),
        ("integer", "12.0", 12),
        ("string", 12, "12"),
        ("string", 0.1, "0.1"),
        ("string", 1e-7, "0.0000001"),
        ("string", True, "true"),
        ("boolean", "False", False),
        ("string", ["one"], "one"),
    ],
)
def test_lossless_conversion(kind, given, wanted):
    done = conform(props(v={"type": kind}), {"v": given})
    assert done.data == {"v": wanted}
    assert type(done.data["v"]) is type(wanted)
    assert done.dropped == ()


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("number", "1,5"),
        ("number", "007"),
        ("number", "0.12345678901234567890123"),
        ("integer", 1.5),
        ("integer", "1e3"),
        ("boolean", 1),
        ("string", {"a": 1}),
        ("number", True),
    ],
)
def test_what_would_lose_something_becomes_null_and_is_recorded(kind, given):
    done = conform(props(v={"type": kind}), {"v": given})
    assert done.data == {"v": None}
    assert losses(done) == {"/v": given}


@pytest.mark.parametrize(
    ("schema", "bad"),
    [
        ({"type": "string", "enum": ["a", "b"]}, "c"),
        ({"type": "string", "pattern": "^[0-9]+$"}, "x1"),
        ({"type": "string", "format": "date"}, "2024-02-30"),
        ({"type": "string", "format": "email"}, "nobody"),
        ({"type": "string", "format": "uuid"}, "123"),
        ({"type": "string", "maxLength": 2}, "abc"),
        ({"type": "number", "maximum": 5}, 6),
        ({"type": "number", "exclusiveMinimum": 0}, 0),
        ({"type": "integer", "multipleOf": 5}, 7),
        ({"const": 3}, 4),
        ({"$ref": "#/$defs/code"}, "toolong"),
    ],
)
def test_values_that_break_a_constraint(schema, bad):
    done = conform(props(v=schema) | {"$defs": {"code": {"type": "string", "maxLength": 3}}}, {"v": bad})
    assert done.data == {"v": None}
    assert losses(done) == {"/v": bad}
    assert done.dropped[0].reason


def test_formats_that_came_later_hold_in_draft_7():
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", **props(id={"type": "string", "format": "uuid"})}
    assert conform(schema, {"id": "no"}).data == {"id": None}


def test_array_lengths():
    schema = props(v={"type": "array", "items": props(a={"type": "string"}), "minItems": 2, "maxItems": 3})
    done = conform(schema, {"v": [{"a": "1"}]})
    assert done.data["v"] == [{"a": "1"}, {"a": None}]
    assert [d.pointer for d in done.dropped] == ["/v/1"]
    done = conform(schema, {"v": [{"a": str(i)} for i in range(5)]})
    assert len(done.data["v"]) == 3
    assert losses(done) == {"/v/3": {"a": "3"}, "/v/4": {"a": "4"}}


def test_one_value_where_a_list_is_wanted_and_back():
    schema = props(v={"type": "array", "items": {"type": "string"}}, rows={"type": "array", "items": props(a={"type": "string"})})
    assert conform(schema, {"v": "x", "rows": {"a": "1"}}).data == {"v": ["x"], "rows": [{"a": "1"}]}


def test_enum_and_const_with_null():
    schema = props(["k", "e"], k={"const": "invoice"}, e={"type": "string", "enum": ["A", "B"]}, n={"enum": [1, None]})
    assert conform(schema, {}).data == {"k": None, "e": None, "n": None}
    fixed = props(["k"], k={"const": "invoice", "nullable": False}, o={"const": 1, "nullable": False})
    assert conform(fixed, {}).data == {"k": "invoice"}


def test_nulls_that_are_forbidden_for_a_field():
    schema = props(["a"], a={"type": "string", "nullable": False}, b={"type": "string", "x-nullable": False}, c={"type": "string"})
    assert conform(schema, {"a": "x"}).data == {"a": "x", "c": None}
    with pytest.raises(UnfilledValue, match="/a"):
        conform(schema, {"c": "x"})


def test_nulls_as_declared():
    schema = props(["a", "k", "n"], a={"type": "string"}, b={"type": "number"}, k={"const": 1}, n={"type": ["string", "null"]})
    assert conform(schema, {"a": "x", "b": None}, nulls="declared").data == {"a": "x", "k": 1, "n": None}
    rows = props(rows={"type": "array", "items": props(["a"], a={"type": "string"})})
    with pytest.raises(UnfilledValue, match="/rows/1/a"):
        conform(rows, {"rows": [{"a": "x"}, {}]}, nulls="declared")
    optional = props(address=props(["city"], city={"type": "string"}))
    assert conform(optional, {"address": {"city": None}}, nulls="declared").data == {}
    with pytest.raises(UnfilledValue, match="/address/city"):
        conform(optional, {"address": {"city": None, "street": "Main"}}, nulls="declared")


def test_openapi_nullable_holds_under_both_policies():
    schema = props(["a"], a={"type": "string", "enum": ["x"], "nullable": True})
    assert conform(schema, {}, nulls="declared").data == {"a": None}


def test_recursive_schemas_end():
    tree = props(name={"type": "string"}, left={"$ref": "#"}, kids={"type": "array", "items": {"$ref": "#"}})
    done = conform(tree, {"left": {"left": {"name": "x"}}})
    assert done.data == {"name": None, "left": {"name": None, "left": {"name": "x", "kids": []}, "kids": []}, "kids": []}
    assert conform(tree, {}).data == {"name": None, "kids": []}
    mutual = {"$ref": "#/$defs/a", "$defs": {"a": props(b={"$ref": "#/$defs/b"}), "b": props(["a"], a={"$ref": "#/$defs/a"})}}
    assert conform(mutual, {}).data == {}


def test_alternatives_are_chosen_by_their_fixed_values():
    cash = props(["kind"], kind={"const": "cash"}, drawer={"type": "integer"}) | {"additionalProperties": False}
    card = props(["kind"], kind={"const": "card"}, digits={"type": "string"}) | {"additionalProperties": False}
    for key in ("oneOf", "anyOf"):
        schema = {key: [{"$ref": "#/$defs/cash"}, {"$ref": "#/$defs/card"}], "$defs": {"cash": cash, "card": card}}
        done = conform(schema, {"digits": 1234, "kind": "card", "drawer": None})
        assert done.data == {"kind": "card", "digits": "1234"}
        assert done.dropped == ()


def test_one_of_still_means_one():
    schema = props(a={"type": "string"}, b={"type": "string"}) | {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
    done = conform(schema, {"a": "1", "b": "2"})
    assert len([v for v in done.data.values() if v is not None]) == 1
    assert len(done.dropped) == 1
    loaded = Schema.load(schema)
    assert not loaded.is_valid({"a": "1", "b": "2"})
    typed = {"oneOf": [props(["n"], n={"type": "integer"}), props(["n"], n={"type": "number"})]}
    assert not Schema.load(typed).is_valid({"n": 1})
    assert Schema.load(typed).is_valid({"n": 1.5})
    assert Schema.load(typed).is_valid({"n": None})


@pytest.mark.parametrize(
    ("schema", "given", "wanted", "lost"),
    [
        ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, ["a", "b", "a"], ["a", "b"], ["/2"]),
        (props(a={"type": "string"}, b={"type": "string"}) | {"maxProperties": 1}, {"b": "x"}, {"b": "x"}, []),
        (
            props(a={"type": "string", "not": {"const": "n/a"}}, b={"type": "string"}),
            {"a": "n/a", "b": "y"},
            {"a": None, "b": "y"},
            ["/a"],
        ),
        (
            props(a={"type": "string"}) | {"if": props(["a"], a={"const": "x"}), "then": {"required": ["b"]}},
            {"a": "x"},
            {"a": "x", "b": None},
            [],
        ),
        (
            {"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}},
            {"ok": 1, "NOT": 2},
            {"ok": 1},
            ["/NOT"],
        ),
        ({"type": "object", "dependentRequired": {"a": ["b"]}}, {"a": 1}, {"a": 1, "b": None}, []),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}, "unevaluatedProperties": False},
            {"a": "x", "z": 1},
            {"a": "x"},
            ["/z"],
        ),
        (
            {"type": "object", "patternProperties": {"^n": {"type": "number"}}, "additionalProperties": False},
            {"n1": "5", "m": 1},
            {"n1": 5},
            ["/m"],
        ),
    ],
)
def test_repairs(schema, given, wanted, lost):
    done = conform(schema, given)
    assert done.data == wanted
    assert [d.pointer for d in done.dropped] == lost


def test_impossible_demands_name_keyword_and_place():
    with pytest.raises(ExtractionError, match="uniqueItems at the whole value"):
        conform({"type": "array", "items": {"type": "string"}, "minItems": 2, "uniqueItems": True}, [])
    with pytest.raises(ExtractionError, match="contains"):
        conform(props(["a"], a={"type": "array", "contains": {"const": "x"}}), {"a": ["y"]})


def test_python_values_and_hostile_values():
    class Kind(enum.StrEnum):
        A = "a"

    schema = props(d={"type": "string", "format": "date"}, n={"type": "number"}, k={"type": "string"}, t={"type": "array"})
    given = {"d": datetime.date(2024, 2, 29), "n": Decimal("1.5"), "k": Kind.A, "t": (1, 2)}
    assert conform(schema, given).data == {"d": "2024-02-29", "n": 1.5, "k": "a", "t": [1, 2]}
    for bad in (float("nan"), float("-inf"), "\ud800", object()):
        done = conform({}, {"v": bad})
        assert done.data == {"v": None}
        assert len(done.dropped) == 1
    assert conform({}, {"\udfff": 1}).data == {}
    deep = []
    for _ in range(5000):
        deep = [deep]
    assert conform({}, {"v": deep}).data["v"] is not None
    assert conform({"type": "integer"}, 10**400).data == 10**400
    assert conform({"type": "string", "pattern": "^(a+)+$"}, "a" * 50 + "b").data is None
    assert Schema.load({}).errors("\ud800")[0].keyword == "json"


def test_a_valid_value_is_never_cut_down():
    schema = props(a={"type": "string"}, b={"type": "string"}) | {"maxProperties": 1, "minProperties": 1}
    assert conform(schema, {"b": "kept"}).data == {"b": "kept"}


def test_very_wide_results_leave_optional_objects_out():
    definitions = {"d0": {"type": "string"}}
    for i in range(1, 17):
        definitions[f"d{i}"] = props(left={"$ref": f"#/$defs/d{i - 1}"}, right={"$ref": f"#/$defs/d{i - 1}"})
    schema = {"$ref": "#/$defs/d16", "$defs": definitions}
    assert conform(schema, {}).data == {}
    assert conform(schema, {"left": {"left": {}}}).data == {"left": {"left": {}}}
