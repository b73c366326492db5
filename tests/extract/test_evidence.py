"""Evidence for every value, whatever an engine proposes."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagelift.core import Field, Proposal, UnfilledValue
from pagelift.extract.evidence import complete_fields
from pagelift.schema import Schema

SCHEMA = Schema.load(
    {
        "type": "object",
        "properties": {
            "a": {"type": "string", "maxLength": 3},
            "b": {"type": ["integer", "null"]},
            "c": {"type": "array", "maxItems": 2, "items": {"enum": ["x", "y"]}},
            "d": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"const": 1}}}},
            "e/~": {"type": "object", "additionalProperties": {"type": "boolean"}},
        },
    }
)
STRICT = Schema.load(SCHEMA.original, nulls="declared")
SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["x", "y", "12", "long text", ""]) | st.just(0.5)
VALUES = st.recursive(
    SCALARS, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c", "d", "e/~"]), v, max_size=4), max_leaves=15
)


def leaves(data: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    """Scalars and empty arrays, by an independent walk."""
    if isinstance(data, dict):
        for key in data:
            yield from leaves(data[key], pointer + "/" + key.replace("~", "~0").replace("/", "~1"))
    elif isinstance(data, list) and data != []:
        for k in range(len(data)):
            yield from leaves(data[k], f"{pointer}/{k}")
    else:
        yield pointer, data


@pytest.mark.parametrize("schema", [SCHEMA, STRICT])
@given(proposed=VALUES, statuses=st.lists(st.sampled_from([None, "found", "absent", "unreadable"]), min_size=20, max_size=20))
def test_every_value_has_its_field_in_order(schema: Schema, proposed: Any, statuses: list[Any]) -> None:
    covered = [(p, v, status) for (p, v), status in zip(leaves(proposed), statuses, strict=False) if status]
    fields = {p: Field(p, v, status, f"{p}={v}", 1, confidence=0.5, reason="" if status == "found" else "why") for p, v, status in covered}
    try:
        conformed = schema.conform(proposed)
    except UnfilledValue:
        return
    done = complete_fields(conformed.data, Proposal(proposed, fields), conformed.dropped)
    assert [(p, f.pointer, f.value) for p, f in done.items()] == [(p, p, v) for p, v in leaves(conformed.data)]
    for field in done.values():
        empty = field.value is None or field.value == []
        assert field.status in ("unreadable", "absent", "not_attempted") if empty else field.status in ("found", "not_attempted")
        assert field.reason or field.status == "found"


@given(st.lists(st.sampled_from(["x", "y", "bad", None]), max_size=6))
def test_evidence_stays_with_its_entry(entries: list[Any]) -> None:
    """raw says which entry of the proposal a field came from; it must be one with that value, in order."""
    fields = {f"/c/{k}": Field(f"/c/{k}", v, "found", str(k), 1) for k, v in enumerate(entries)}
    conformed = STRICT.conform({"c": entries})
    done = complete_fields(conformed.data, Proposal({"c": entries}, fields), conformed.dropped)
    kept = [int(f.raw) for p, f in done.items() if p.startswith("/c/") and f.raw is not None]
    assert [entries[k] for k in kept] == conformed.data["c"]
    assert kept == sorted(kept)
