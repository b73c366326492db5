"""Random schemas and random partial values: the result is valid or a documented error, and conforming twice changes nothing."""

import json

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pagelift.core import ExtractionError, SchemaError
from pagelift.schema import Schema

KEYS = st.sampled_from(["a", "b", "c"])
TEXTS = st.sampled_from(["a", "b", "12", "12.50", "2024-01-31", "x@example.com", "", "true"])
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-9, 99), st.sampled_from([0.5, 4.0, -2.25]), TEXTS)
VALUES = st.recursive(SCALARS, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.sampled_from("abcz"), v, max_size=4), max_leaves=12)


def optional(**keywords):
    return st.fixed_dictionaries({}, optional=keywords)


def having(base, extra):
    return st.builds(lambda a, b: {**a, **b}, base, extra)


def kind(name):
    return st.just({"type": name})


string = having(
    kind("string"),
    optional(
        format=st.sampled_from(["date", "email", "unknown"]), pattern=st.sampled_from(["^a", "^[0-9]+$"]), maxLength=st.integers(1, 5)
    ),
)
number = having(
    st.sampled_from([{"type": "number"}, {"type": "integer"}, {"type": ["integer", "null"]}]),
    optional(minimum=st.integers(-5, 5), maximum=st.integers(6, 50), multipleOf=st.sampled_from([1, 2, 0.5])),
)
fixed = st.one_of(
    st.builds(lambda v: {"enum": v}, st.lists(SCALARS, min_size=1, max_size=4)),
    st.builds(lambda v: {"const": v}, SCALARS),
)
references = st.sampled_from([{"$ref": "#"}, {"$ref": "#/$defs/one"}, {"$ref": "#/$defs/two"}])
scalar_schemas = st.one_of(string, number, kind("boolean"), fixed, st.sampled_from([{}, True, {"type": ["string", "number"]}]))


def containers(inner):
    rows = having(
        st.builds(lambda i: {"type": "array", "items": i}, inner),
        optional(minItems=st.integers(0, 2), maxItems=st.integers(2, 4), uniqueItems=st.booleans(), contains=inner),
    )
    objects = having(
        st.builds(lambda p: {"type": "object", "properties": p}, st.dictionaries(KEYS, inner, max_size=3)),
        optional(
            required=st.lists(KEYS, max_size=2, unique=True),
            additionalProperties=st.booleans() | inner,
            patternProperties=st.dictionaries(st.sampled_from(["^a", "z$"]), inner, max_size=1),
            maxProperties=st.integers(1, 4),
            dependentRequired=st.dictionaries(KEYS, st.lists(KEYS, max_size=1), max_size=1),
            propertyNames=st.just({"pattern": "^[a-y]"}),
        ),
    )
    several = st.builds(lambda k, o: {k: o}, st.sampled_from(["anyOf", "oneOf", "allOf"]), st.lists(inner, min_size=1, max_size=3))
    conditional = having(objects, st.fixed_dictionaries({"if": inner, "then": inner}, optional={"else": inner, "not": inner}))
    return st.one_of(rows, objects, objects, several, conditional)


subschemas = st.recursive(scalar_schemas | references, containers, max_leaves=10)
schemas = st.builds(lambda s, one, two: {**s, "$defs": {"one": one, "two": two}}, containers(subschemas), subschemas, subschemas)


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(schemas, st.lists(VALUES, min_size=1, max_size=4), st.sampled_from(["allowed", "declared"]))
def test_conform_is_valid_or_a_documented_error(schema, values, nulls):
    try:
        loaded = Schema.load(schema, nulls=nulls)
    except SchemaError:
        return
    assert loaded.root is not None
    original = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
    for value in values:
        if original.is_valid(value):
            assert loaded.errors(value) == []
        elif nulls == "declared":
            assert not loaded.is_valid(value)
        try:
            done = loaded.conform(value)
        except ExtractionError:
            assert not original.is_valid(value)
            continue
        assert loaded.errors(done.data) == []
        again = loaded.conform(done.data)
        assert json.dumps(again.data) == json.dumps(done.data)
        assert again.dropped == ()


def flat_objects(leaf):
    return st.builds(
        lambda p, r: {"type": "object", "properties": p, "required": [k for k in r if k in p], "additionalProperties": False},
        st.dictionaries(st.sampled_from("abcdefg"), leaf, max_size=6),
        st.lists(st.sampled_from("abcdefg"), unique=True),
    )


plain = st.recursive(
    st.one_of(string, number, kind("boolean"), st.builds(lambda v: {"enum": v}, st.lists(TEXTS, min_size=1, max_size=3))),
    lambda inner: flat_objects(inner) | st.builds(lambda i: {"type": "array", "items": i}, inner),
    max_leaves=15,
)


def check_order(schema, data):
    if isinstance(data, dict):
        assert list(data) == list(schema["properties"])
        for name, value in data.items():
            check_order(schema["properties"][name], value)
    elif isinstance(data, list):
        for value in data:
            check_order(schema["items"], value)


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(flat_objects(plain), VALUES)
def test_plain_schemas_always_give_every_property_in_order(schema, value):
    loaded = Schema.load(schema)
    data = loaded.conform(value).data
    assert loaded.errors(data) == []
    if isinstance(data, dict):
        check_order(schema, data)
    again = loaded.conform(data)
    assert json.dumps(again.data) == json.dumps(data)
    assert again.dropped == ()


@settings(max_examples=100, deadline=None)
@given(VALUES)
def test_nothing_is_lost_silently(value):
    schema = Schema.load({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}, "b": {"type": "integer"}}})
    done = schema.conform({"a": value, "b": value, "c": value})
    assert done.data["c"] == value
    if done.data["b"] is None and leaves(value):
        assert [leaves(d.value) for d in done.dropped if d.pointer.startswith("/b")] == [leaves(value)]


def leaves(value):
    if isinstance(value, dict | list):
        return [leaf for inner in (value.values() if isinstance(value, dict) else value) for leaf in leaves(inner)]
    return [] if value is None else [value]


def test_each_draft_is_validated_by_its_own_rules():
    for name in ("draft-04", "draft-06", "draft-07"):
        assert Schema.load({"$schema": f"http://json-schema.org/{name}/schema#", "type": "string"}).is_valid(None)
    with pytest.raises(SchemaError):
        Schema.load({"$schema": "http://json-schema.org/draft-04/schema#", "exclusiveMinimum": 3})
