import json

import pytest

from pagelift.core import SchemaRefused
from pagelift.schema import Schema, check_schema, render_report, schema_report_text

SCHEMA = {
    "title": "Order",
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "number", "pattern": "(?i)^a[\\w-.]+\\Z"},
        "amount": {"type": "number", "minimum": 0, "format": "money"},
        "mail": {"type": ["string", "null"], "format": "email", "contentEncoding": "base64", "x-order": 3},
        "kind": {"enum": ["a", "b"]},
        "tags": {"type": "array", "items": {"type": "string", "nullable": False}, "uniqueItems": True},
        "pay": {"oneOf": [{"type": "object", "properties": {"c": {"const": 1}}}, {"type": "object"}]},
        "sum": {"allOf": [{"type": "number"}, {"maximun": 3}]},
    },
    "required": ["id", "ghost"],
}


def status(report):
    return {row.pointer: row.status for row in report.rows}


def test_each_keyword_has_a_status():
    report = check_schema(SCHEMA)
    assert report.accepted
    found = status(report)
    p = "/properties"
    assert {k for k, v in found.items() if v == "advisory"} == {
        f"{p}/amount/format",
        f"{p}/mail/contentEncoding",
        f"{p}/sum/allOf/1/maximun",
    }
    rewritten = {k for k, v in found.items() if v == "rewritten"}
    expected = ("id/type", "id/pattern", "amount/type", "kind/enum", "tags/items/nullable", "pay/oneOf", "sum/allOf")
    assert {f"{p}/{k}" for k in expected} <= rewritten
    assert found[f"{p}/mail/type"] == found[f"{p}/mail/format"] == found[f"{p}/tags/uniqueItems"] == "enforced"
    assert not any(k.endswith(("title", "description", "x-order")) for k in found)
    assert report.hints == 3
    assert [row.note for row in report.rows if row.pointer == "/required"] == ["not among the properties here: ghost"]


def test_declared_nulls_rewrite_less():
    found = status(check_schema(SCHEMA, nulls="declared"))
    assert found["/properties/id/type"] == found["/properties/pay/oneOf"] == "enforced"


def test_translated_patterns_are_enforced():
    schema = Schema.load(SCHEMA)
    assert schema.is_valid({"id": "A-b.c", "ghost": 1})
    assert not schema.is_valid({"id": "b", "ghost": 1})


def test_strict_refuses_what_is_advisory_and_nothing_else():
    with pytest.raises(SchemaRefused, match="/properties/amount/format: format is advisory only"):
        Schema.load(SCHEMA, strict=True)
    assert len(check_schema(SCHEMA, strict=True).refused) == 3
    plain = {"type": "object", "title": "T", "properties": {"a": {"type": "string", "description": "d", "default": "x", "examples": ["y"]}}}
    assert check_schema(plain, strict=True).accepted


def test_keywords_of_other_drafts_are_advisory():
    old = {"$schema": "http://json-schema.org/draft-04/schema#", "type": "object", "properties": {"a": {"const": 1, "type": "integer"}}}
    assert status(check_schema(old))["/properties/a/const"] == "advisory"
    assert Schema.load(old).is_valid({"a": 2})
    new = {"type": "array", "prefixItems": [{"type": "string"}], "additionalItems": False}
    assert status(check_schema(new))["/additionalItems"] == "advisory"


def test_forms_of_the_report():
    report = check_schema(SCHEMA)
    as_dict = report.to_dict()
    assert json.loads(json.dumps(as_dict)) == as_dict
    assert as_dict["accepted"] is True
    assert sum(as_dict["counts"].values()) == len(report.rows) + report.hints
    rows = render_report(report)
    assert all(len(row) == 4 for row in rows)
    assert schema_report_text(report).splitlines()[-1].startswith("accepted: ")
    refused = check_schema({"properties": {"a": {"$ref": "http://example.com/x"}}})
    assert render_report(refused)[0][2] == "refused"
    assert schema_report_text(refused).splitlines()[-1].startswith("refused: ")


def test_unused_definitions_do_not_matter():
    schema = {"type": "object", "$defs": {"unused": {"$ref": "https://example.com/far"}}}
    assert check_schema(schema).accepted


def test_who_checks_what():
    """For a model's answer: what the grammar keeps to, and what is looked at when the answer is complete."""
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
            "b": {"type": "string", "pattern": "^(?!x)[a-z]+$"},
            "c": {"type": "number", "multipleOf": 0.01, "not": {"const": 3}},
            "d": {"type": "number", "multipleOf": 0.3, "not": {"minimum": 3}},
            "e": {"type": "string", "format": "date"},
            "f": {"type": "string", "format": "json-pointer"},
            "g": {"oneOf": [{"type": "string"}, {"type": "array", "uniqueItems": True, "contains": {"const": 1}}]},
        },
        "if": {"required": ["a"]},
    }
    rows = {row.pointer.removeprefix("/properties"): row.checked for row in check_schema(schema).rows}
    by_grammar = ("/type", "/a/pattern", "/a/maxLength", "/c/multipleOf", "/c/not", "/e/format", "/g/oneOf/1/contains")
    at_the_end = ("/b/pattern", "/d/multipleOf", "/d/not", "/f/format", "/g/oneOf", "/g/oneOf/1/uniqueItems", "/if", "/if/required")
    assert {p for p in by_grammar if rows[p] != "grammar"} == set()
    assert {p for p in at_the_end if rows[p] != "end"} == set()
    text = schema_report_text(check_schema(schema))
    assert "by the grammar" in text
    assert "checked at the end" in text
