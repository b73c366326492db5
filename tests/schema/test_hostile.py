"""Schemas made to exhaust time, memory or the stack: each is refused with a reason or handled in little time."""

import json
import time

import pytest

from pagelift.core import ExtractionError, SchemaError
from pagelift.schema import Schema


def chain(length, link):
    definitions = {f"d{i}": link({"$ref": f"#/$defs/d{i + 1}"}) for i in range(length)}
    return {"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{length}": {"type": "string"}}}


def nested(levels):
    schema = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


HOSTILE = {
    "allOf laughs": chain(80, lambda r: {"allOf": [r, {"not": r}]}),
    "anyOf laughs": chain(80, lambda r: {"anyOf": [r, {"allOf": [r]}]}),
    "required laughs": chain(60, lambda r: {"type": "object", "properties": {"l": r, "r": r}, "required": ["l", "r"]}),
    "optional laughs": chain(60, lambda r: {"type": "object", "properties": {"l": r, "r": r}}),
    "array laughs": chain(9, lambda r: {"type": "array", "items": r, "minItems": 10}),
    "long reference chain": chain(3000, lambda r: r),
    "long object chain": chain(3000, lambda r: {"type": "object", "properties": {"a": r}}),
    "long required chain": chain(3000, lambda r: {"type": "object", "properties": {"a": r}, "required": ["a"]}),
    "deep": nested(98),
    "too deep": nested(400),
    "all refer to all": {
        "$ref": "#/$defs/d0",
        "$defs": {f"d{i}": {"type": "object", "properties": {f"p{j}": {"$ref": f"#/$defs/d{j}"} for j in range(25)}} for i in range(25)},
    },
    "wide": {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(5000)}},
    "too wide": {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(21000)}},
    "many options": {"anyOf": [{"const": i} for i in range(5000)]},
    "product of options": {"allOf": [{"anyOf": [{"required": [f"a{i}{j}"]} for j in range(8)]} for i in range(8)]},
    "nested options": {
        "anyOf": [{"anyOf": [{"anyOf": [{"const": f"{i}{j}{k}"} for k in range(15)]} for j in range(15)]} for i in range(15)]
    },
    "slow pattern": {"type": "string", "pattern": "^(([a-z])+.)+[A-Z]([a-z])+$"},
    "large repeat": {"type": "string", "pattern": "^((a{1,200}){1,200}){1,200}$", "maxLength": 10**9},
    "huge numbers": {"type": "number", "minimum": 10**300, "maximum": 10**301, "multipleOf": 1e-300},
    "odd keys": {
        "type": "object",
        "properties": {"": {"type": "string"}, "$ref": {"type": "string"}, "a/b~c%": {"type": "number"}, "\u0000": {}},
    },
    "not everything": {"not": {}},
    "nothing inside": {"type": "object", "properties": {"a": False}, "required": ["a"]},
}


@pytest.mark.parametrize("schema", HOSTILE.values(), ids=HOSTILE)
def test_hostile_schema(schema):
    started = time.process_time()
    try:
        loaded = Schema.load(schema)
    except SchemaError:
        loaded = None
    if loaded is not None:
        assert loaded.root is not None
        for value in ({}, None, "a" * 60, {"a": {"a": {}}, "l": {"l": {}}}):
            try:
                assert loaded.is_valid(loaded.conform(value).data)
            except ExtractionError:
                continue
    assert time.process_time() - started < 5


def test_large_file_is_refused(tmp_path):
    path = tmp_path / "large.json"
    path.write_text('{"description": "' + "x" * 3_000_000 + '"}')
    with pytest.raises(SchemaError, match="larger than 2 MB"):
        Schema.load(path)
    with pytest.raises(SchemaError, match="nested"):
        Schema.load('{"not":' * 30_000 + "{}" + "}" * 30_000)


def test_value_with_many_faults_is_repaired_in_time():
    rows = {
        "type": "array",
        "items": {"type": "object", "properties": {"a": {"type": "string", "not": {"const": "bad"}}, "b": {"type": "number"}}},
    }
    started = time.process_time()
    done = Schema.load(rows).conform([{"a": "bad" if i % 20 == 0 else "good", "b": i} for i in range(1000)])
    assert len(done.dropped) == 50
    assert all(row["b"] == i for i, row in enumerate(done.data))
    assert time.process_time() - started < 5


def test_odd_property_names_come_through():
    loaded = Schema.load(HOSTILE["odd keys"])
    assert json.loads(json.dumps(loaded.conform({"a/b~c%": "1"}).data)) == {"": None, "$ref": None, "a/b~c%": 1, "\u0000": None}
