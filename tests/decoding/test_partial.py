"""JSON that was cut off."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagelift.decoding import parse_partial
from pagelift.schema.keywords import join

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=12)
STYLES = st.sampled_from([{}, {"separators": (",", ":")}, {"indent": 2}])


def places(value: Any, pointer: str = "") -> dict[str, Any]:
    found = {pointer: value}
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, sub in inner:
        found |= places(sub, join(pointer, key))
    return found


@given(st.dictionaries(st.text(), VALUES, max_size=4), STYLES, st.booleans(), st.data())
def test_every_cut_keeps_what_was_complete(value: dict[str, Any], style: dict[str, Any], ascii_only: bool, data: st.DataObject) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, **style)
    cut = data.draw(st.integers(0, len(text)))
    partial = parse_partial(text[:cut])
    whole = places(value)
    json.loads(partial.text)
    assert partial.complete == (cut == len(text))
    assert partial.reached <= set(whole)
    found = {} if cut == 0 else places(partial.data)
    assert set(found) == partial.reached
    for pointer, got in found.items():
        if isinstance(got, dict | list):
            assert type(got) is type(whole[pointer])
            assert len(got) == len(whole[pointer]) or pointer in partial.open
        else:
            assert got == whole[pointer]
    leaves = {p for p, v in whole.items() if not isinstance(v, dict | list) or not v}
    assert set(partial.never_reached(value)) == leaves - partial.reached
    assert partial.unfinished is None or partial.unfinished in whole


@pytest.mark.parametrize(
    ("text", "unfinished", "fragment"),
    [
        ('{"a": "Mül', "/a", "Mül"),
        ('{"a": "x\\u00', "/a", "x"),
        ('{"a": "x\\', "/a", "x"),
        ('{"rows": [{"n": 1}, {"n": 27.8', "/rows/1/n", "27.8"),
        ('{"a": tru', "/a", "tru"),
        ('{"a": ', "/a", ""),
        ('{"a/b": [1, ', None, ""),
        ('{"a": 1, "b', None, ""),
        ("", "", ""),
    ],
)
def test_what_was_being_written(text: str, unfinished: str | None, fragment: str) -> None:
    partial = parse_partial(text)
    assert (partial.complete, partial.unfinished, partial.fragment) == (False, unfinished, fragment)


def test_rows_that_were_closed_stay() -> None:
    partial = parse_partial('{"rows": [{"n": 1}, {"n": 2}, {"n"')
    assert partial.data == {"rows": [{"n": 1}, {"n": 2}, {}]}
    assert partial.open == ("", "/rows", "/rows/2")
    assert partial.never_reached({"rows": [{"n": 1}, {"n": 2}, {"n": None}], "total": None}) == ("/rows/2/n", "/total")


@pytest.mark.parametrize("text", ['{"a": 1} trailing', '{"a": 1}{"a": 2}'])
def test_what_follows_a_whole_value_does_not_count(text: str) -> None:
    assert parse_partial(text).data == {"a": 1}
    assert parse_partial(text).complete


def test_endless_text_does_not_break_it() -> None:
    assert parse_partial('{"a": ' + "[" * 100_000).data is not None
    assert parse_partial('{"a": ' + "9" * 100_000 + ", ").data == {}
