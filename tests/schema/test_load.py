import json
import pickle
from typing import Annotated, Literal

import pydantic
import pytest
from typing_extensions import TypedDict

from pagelift.core import ConfigError, InvalidSchema, SchemaNotFound, SchemaRefused
from pagelift.schema import Array, Object, Scalar, Schema, Union, check_schema, save_schema, saved_schemas

INVOICE = {
    "title": "Invoice",
    "type": "object",
    "properties": {"number": {"type": "string"}, "total": {"type": "number"}},
    "required": ["number"],
}


def test_sources_give_the_same_schema(tmp_path):
    path = tmp_path / "invoice.json"
    path.write_text("\ufeff" + json.dumps(INVOICE, indent=1), encoding="utf-8")
    schemas = [Schema.load(s) for s in (INVOICE, path, str(path), json.dumps(INVOICE))]
    assert len({s.fingerprint for s in schemas}) == 1
    assert schemas[0].title == "Invoice"
    assert Schema.load(schemas[0]).original == INVOICE


def test_saved_names(tmp_path):
    save_schema("invoice", INVOICE, tmp_path)
    save_schema("receipt", {"type": "object"}, tmp_path)
    assert list(saved_schemas(tmp_path)) == ["invoice", "receipt"]
    assert Schema.load("invoice", folder=tmp_path).original == INVOICE
    with pytest.raises(SchemaNotFound, match="did you mean 'invoice'"):
        Schema.load("invoise", folder=tmp_path)
    with pytest.raises(SchemaNotFound, match="invoice, receipt"):
        Schema.load("qqqq", folder=tmp_path)
    with pytest.raises(InvalidSchema, match="cannot be a schema name"):
        save_schema("../evil", INVOICE, tmp_path)


def test_missing_files_and_odd_strings(tmp_path):
    with pytest.raises(SchemaNotFound):
        Schema.load(tmp_path / "none.json")
    with pytest.raises(SchemaNotFound):
        Schema.load(tmp_path)
    for odd in ("", "\0", "x" * 5000, "~nobody/x.json"):
        with pytest.raises(SchemaNotFound):
            Schema.load(odd, folder=tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"type": "object",}', "line 1, column 19"),
        ('{\n "type": object}', "line 2, column 10"),
        ('{"minimum": NaN}', "NaN"),
        ('{"type": "object", "type": "array"}', "'type' occurs twice"),
        ('{"title": "\\ud800"}', "surrogate"),
    ],
)
def test_json_errors_say_where(text, message):
    with pytest.raises(InvalidSchema, match=message):
        Schema.load(text)


def test_not_utf8_and_not_an_object(tmp_path):
    path = tmp_path / "latin.json"
    path.write_bytes('{"title": "é"}'.encode("latin-1"))
    with pytest.raises(InvalidSchema, match="UTF-8"):
        Schema.load(path)
    path.write_text("[1]")
    with pytest.raises(InvalidSchema, match="a schema is an object"):
        Schema.load(path)
    with pytest.raises(InvalidSchema, match="Pydantic"):
        Schema.load(object())


def test_bad_keyword_is_named_by_pointer():
    with pytest.raises(InvalidSchema, match=r"/properties/a/type.*strin"):
        Schema.load({"properties": {"a": {"type": "strin"}}})
    with pytest.raises(ConfigError, match="nulls"):
        Schema.load(INVOICE, nulls="never")


REFUSED = {
    "false": (False, "no value can satisfy"),
    "remote": ({"properties": {"a": {"$ref": "https://example.com/a.json"}}}, "never fetched"),
    "file": ({"$ref": "file:///etc/passwd"}, "never fetched"),
    "nowhere": ({"properties": {"a": {"$ref": "#/$defs/b"}}}, "leads nowhere"),
    "anchor": ({"$ref": "#here"}, "no anchor"),
    "self": ({"$ref": "#"}, "never ends"),
    "loop": ({"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}, "never ends"),
    "endless": ({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}, "inside itself without end"),
    "endless array": ({"type": "array", "items": {"$ref": "#"}, "minItems": 1}, "inside itself without end"),
    "bounds": ({"type": "number", "minimum": 3, "maximum": 2}, "leave no value"),
    "items": ({"type": "array", "minItems": 3, "maxItems": 2}, "leave no value"),
    "enum": ({"enum": []}, "leaves no value"),
    "disjoint": ({"type": "string", "enum": [1, 2]}, "nothing in common"),
    "pattern": ({"type": "string", "pattern": "("}, "pattern"),
    "pattern key": ({"type": "object", "patternProperties": {"[": {}}}, "pattern"),
    "many items": ({"type": "array", "minItems": 10**9}, "more than 20000"),
}


@pytest.mark.parametrize(("schema", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_with_the_reason(schema, message):
    with pytest.raises((SchemaRefused, InvalidSchema), match=message):
        Schema.load(schema)
    report = check_schema(schema)
    assert not report.accepted
    assert message in report.refused[0].reason


def test_references_of_all_kinds():
    schema = Schema.load(
        {
            "$id": "https://example.com/root.json",
            "type": "object",
            "properties": {
                "pointer": {"$ref": "#/$defs/a~1b%25"},
                "anchor": {"$ref": "#money"},
                "absolute": {"$ref": "https://example.com/root.json#/$defs/money"},
                "embedded": {"$ref": "other.json"},
                "inside": {"$ref": "#/properties/pointer"},
            },
            "$defs": {
                "a/b%": {"type": "string", "maxLength": 3},
                "money": {"$anchor": "money", "type": "number"},
                "other": {"$id": "other.json", "type": "object", "properties": {"x": {"$ref": "#/$defs/y"}}, "$defs": {"y": {"const": 1}}},
            },
        }
    )
    node = schema.root
    assert isinstance(node, Object)
    kinds = {name: n.types for name, n in node.properties.items() if isinstance(n, Scalar)}
    assert kinds == {"pointer": ("string",), "anchor": ("number",), "absolute": ("number",), "inside": ("string",)}
    assert node.properties["embedded"].properties["x"].enum == (1,)
    assert schema.errors({"pointer": "abcd", "embedded": {"x": 2}, "anchor": None}) != []
    assert schema.is_valid({"pointer": "abc", "embedded": {"x": 1}, "anchor": 3.5, "absolute": None, "inside": None})


def test_recursive_schema_gives_a_cyclic_tree():
    person = {"type": "object", "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#"}}}}
    root = Schema.load(person).root
    assert isinstance(root, Object)
    rows = root.properties["children"]
    assert isinstance(rows, Array)
    again = rows.items.properties["children"]
    assert again.items.properties["children"] is again


def test_references_beside_other_keywords_by_draft():
    body = {"properties": {"a": {"$ref": "#/definitions/s", "maxLength": 2}}, "definitions": {"s": {"type": "string"}}}
    seven = {"$schema": "http://json-schema.org/draft-07/schema#", **body}
    assert Schema.load(seven).is_valid({"a": "long"})
    assert not Schema.load(body).is_valid({"a": "long"})
    assert [r.status for r in check_schema(seven).rows if r.keyword == "maxLength"] == ["advisory"]


@pytest.mark.parametrize("draft", ["draft-04/schema#", "draft-07/schema#"])
def test_reference_to_a_meta_schema_is_any_value(draft):
    schema = Schema.load({"$schema": f"http://json-schema.org/{draft}", "properties": {"s": {"$ref": f"http://json-schema.org/{draft}"}}})
    assert schema.is_valid({"s": {"type": 3}})
    assert [row.status for row in schema.report.rows if row.keyword == "$ref"] == ["advisory"]


def test_draft_differences():
    four = Schema.load({"$schema": "http://json-schema.org/draft-04/schema#", "type": "number", "minimum": 1, "exclusiveMinimum": True})
    assert not four.is_valid(1)
    assert four.root.exclusive_minimum == 1
    assert four.root.minimum is None
    tuple_items = {"type": "array", "items": [{"type": "string"}, {"type": "integer"}], "additionalItems": False}
    seven = Schema.load({"$schema": "http://json-schema.org/draft-07/schema#", **tuple_items})
    assert seven.conform(["a", "2", "x"]).data == ["a", 2]
    dynamic = {
        "$schema": "https://json-schema.org/draft/2019-09/schema",
        "$recursiveAnchor": True,
        "type": "object",
        "properties": {"next": {"$recursiveRef": "#"}, "v": {"type": "integer"}},
    }
    assert not Schema.load(dynamic).is_valid({"next": {"v": "x"}})
    assert Schema.load({"$schema": "https://example.com/house-dialect", "type": "string"}).report.notes


class Line(pydantic.BaseModel):
    text: str
    amount: float | None = None
    parts: list["Line"] = []


class Cash(pydantic.BaseModel):
    kind: Literal["cash"]


class Card(pydantic.BaseModel):
    kind: Literal["card"]
    digits: Annotated[str, pydantic.Field(pattern=r"^\d{4}$")]


class Bill(pydantic.BaseModel):
    number: str | None = pydantic.Field(None, alias="billNumber")
    lines: list[Line]
    payment: Cash | Card = pydantic.Field(discriminator="kind")


def test_pydantic_models():
    schema = Schema.load(Bill)
    assert schema.model is Bill
    root = schema.root
    assert list(root.properties) == ["billNumber", "lines", "payment"]
    assert root.properties["billNumber"].nullable
    assert isinstance(root.properties["payment"], Union)
    data = schema.conform({"lines": [{"text": "tea", "amount": "2.50"}], "payment": {"kind": "card", "digits": "1234"}}).data
    assert data["lines"] == [{"text": "tea", "amount": 2.5, "parts": []}]
    bill, reason = schema.to_model(data)
    assert reason == ""
    assert bill.payment == Card(kind="card", digits="1234")
    none, reason = schema.to_model(schema.conform({"lines": [{"text": None}], "payment": {"kind": "cash"}}).data)
    assert none is None
    assert "/lines/0/text" in reason


def test_other_python_types_and_pickling():
    class Row(TypedDict):
        a: int
        b: str

    assert isinstance(Schema.load(Row).root, Object)
    assert isinstance(Schema.load(list[Line]).root, Array)
    schema = Schema.load(INVOICE)
    assert schema.conform({}).data == pickle.loads(pickle.dumps(schema)).conform({}).data


def test_node_details():
    schema = {
        "type": "object",
        "properties": {
            "size": {"title": "Size", "description": "in cm", "type": ["integer", "null"], "minimum": 1, "multipleOf": 2, "examples": [4]},
            "code": {"allOf": [{"type": "string", "minLength": 2}, {"pattern": "^A", "maxLength": 5}], "description": "outer"},
            "either": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
            "choice": {"oneOf": [{"const": "a"}, {"const": "b"}, {"enum": ["b", None]}]},
            "open": {"type": "object", "additionalProperties": {"type": "number"}},
            "keyed": {"type": "object", "patternProperties": {"^x": {"type": "boolean"}}},
            "maybe": {"anyOf": [{"$ref": "#/$defs/address"}, {"type": "null"}], "description": "where"},
        },
        "required": ["size"],
        "$defs": {"address": {"type": "object", "title": "Address", "properties": {"city": {"type": "string"}}}},
    }
    p = Schema.load(schema).root.properties
    assert (p["size"].types, p["size"].nullable, p["size"].required, p["size"].minimum) == (("integer",), True, True, 1)
    assert (p["size"].title, p["size"].description, p["size"].examples, p["size"].multiple_of) == ("Size", "in cm", (4,), 2)
    assert (p["code"].min_length, p["code"].max_length, p["code"].pattern, p["code"].description) == (2, 5, "^A", "outer")
    assert p["either"].types == ("string", "integer")
    assert (p["choice"].enum, p["choice"].nullable) == (("a", "b"), True)
    assert p["open"].additional.types == ("number",)
    assert p["keyed"].additional.types == ("boolean",)
    assert isinstance(p["maybe"], Object)
    assert (p["maybe"].nullable, p["maybe"].description, list(p["maybe"].properties)) == (True, "where", ["city"])
