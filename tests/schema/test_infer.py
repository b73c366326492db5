import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagelift.core import ConfigError
from pagelift.schema import Schema, infer_schema


def test_one_example():
    schema = infer_schema(
        [
            {
                "number": "A-1",
                "date": "2024-01-31",
                "total": 12.5,
                "count": 3,
                "paid": True,
                "note": None,
                "lines": [{"a": 1}, {"a": 2.5, "b": "x"}],
            }
        ],
        title="Invoice",
    )
    assert schema["title"] == "Invoice"
    assert list(schema["properties"]) == ["number", "date", "total", "count", "paid", "note", "lines"]
    p = schema["properties"]
    assert p["date"] == {"type": "string", "format": "date"}
    assert (p["total"]["type"], p["count"]["type"], p["paid"]["type"]) == ("number", "integer", "boolean")
    assert p["note"] == {"type": ["string", "null"]}
    items = p["lines"]["items"]
    assert items["properties"] == {"a": {"type": "number"}, "b": {"type": "string"}}
    assert items["required"] == ["a"]


def test_several_examples_merge():
    examples = [
        {"kind": "invoice", "mail": "a@example.com", "site": "https://example.com/", "at": "2024-01-01T10:00:00Z", "x": None},
        {"kind": "credit", "mail": "b@example.com", "site": "https://example.org/", "at": "2024-01-01T10:00:00Z", "x": 5},
        {"kind": "invoice", "mail": None, "site": "https://example.org/", "at": "2024-01-02T10:00:00Z", "x": 6},
        {"kind": "invoice", "mail": "a@example.com", "site": "https://example.org/", "at": "2024-01-02T10:00:00Z", "y": "new"},
    ]
    schema = infer_schema(examples)
    p = schema["properties"]
    assert p["kind"] == {"type": "string", "enum": ["invoice", "credit"]}
    assert p["mail"] == {"type": ["string", "null"], "format": "email"}
    assert (p["site"]["format"], p["at"]["format"]) == ("uri", "date-time")
    assert p["x"] == {"type": ["integer", "null"]}
    assert schema["required"] == ["kind", "mail", "site", "at"]


def test_mixed_kinds_and_nothing():
    assert infer_schema([1, "a"])["type"] == ["integer", "string"]
    assert infer_schema([[], [{"a": 1}], None])["type"] == ["array", "null"]
    assert infer_schema([{"v": 1}, {"v": {"a": 1}}])["properties"]["v"]["anyOf"][0] == {"type": "integer"}
    with pytest.raises(ConfigError, match="no example"):
        infer_schema([])


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1000, 1000)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["a", "2024-01-01"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(st.lists(json_values, min_size=1, max_size=4))
def test_every_example_is_valid_and_survives(examples):
    schema = Schema.load(infer_schema(examples), nulls="declared")
    for example in examples:
        assert schema.errors(example) == []
        assert schema.conform(example).dropped == ()
