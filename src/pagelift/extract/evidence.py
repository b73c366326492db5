"""A field of evidence for every scalar and every empty array: of a model's answer, and of a result, whatever the engine left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from pagelift.core import Field, Json, Proposal, Status
from pagelift.evidence.align import leaves
from pagelift.evidence.places import Place
from pagelift.evidence.rows import Leaf
from pagelift.schema import Dropped

GIVEN: tuple[Status, ...] = ("found", "unverified")
"""Of values that an engine gave."""


def complete_fields(data: Json, proposal: Proposal, dropped: Iterable[Dropped]) -> dict[str, Field]:
    """Evidence keyed by JSON Pointer, in the order of `data`.

    data: final, made from the data of `proposal` by shaping it for the schema. dropped: what was given up by that.
    """
    lost = {drop.pointer: drop for drop in dropped}
    return {
        pointer: _field(pointer, value, proposal.fields.get(origin), _nearest(origin, lost))
        for pointer, value, origin in _leaves(data, proposal.data, "", "", lost)
    }


def _leaves(data: Json, given: Json, pointer: str, origin: str, lost: Mapping[str, Dropped]) -> Iterator[tuple[str, Json, str]]:
    """Scalars and empty arrays of `data`: JSON Pointer (RFC 6901), value, and the pointer that it had in `given`."""
    if isinstance(data, dict):
        for key, value in data.items():
            step = "/" + key.replace("~", "~0").replace("/", "~1")
            yield from _leaves(value, given.get(key) if isinstance(given, dict) else None, pointer + step, origin + step, lost)
    elif isinstance(data, list) and data:
        rows = _kept_rows(given, len(data), origin, lost)
        for index, value in enumerate(data):
            inner, place = rows[index] if index < len(rows) else (None, f"{origin}/{index}")
            yield from _leaves(value, inner, f"{pointer}/{index}", place, lost)
    elif isinstance(given, list) and len(given) == 1 and not isinstance(data, list):
        yield pointer, data, f"{origin}/0"  # a lone entry where the schema wants the entry itself
    else:
        yield pointer, data, origin


def _kept_rows(given: Json, count: int, origin: str, lost: Mapping[str, Dropped]) -> list[tuple[Json, str]]:
    """The entries of a given array that became the `count` entries of the final one, with their pointers."""
    if not isinstance(given, list):
        return [] if given is None else [(given, origin)]  # a lone entry where the schema wants an array
    rows = [(value, f"{origin}/{index}") for index, value in enumerate(given)]
    if len(rows) <= count:
        return rows
    return [row for row in rows if row[0] is not None and row[1] not in lost]


def _nearest(pointer: str, lost: Mapping[str, Dropped]) -> Dropped | None:
    """What was given up at `pointer` or around it."""
    while pointer and pointer not in lost:
        pointer = pointer.rpartition("/")[0]
    return lost.get(pointer)


def _field(pointer: str, value: Json, proposed: Field | None, drop: Dropped | None) -> Field:
    empty = value is None or value == []
    if empty and drop is not None:
        if drop.value is None:
            return Field(pointer, value, "absent", reason=drop.reason)
        old = proposed or Field(pointer, value, "unreadable")
        return replace(old, pointer=pointer, value=value, status="unreadable", confidence=0.0, reason=drop.reason)
    if proposed is None or (not empty and proposed.status not in GIVEN):
        reason = "the engine did not look for it" if empty else "set by the schema, not read from the document"
        return Field(pointer, value, "not_attempted", reason=reason)
    if empty and proposed.status in GIVEN:
        reason = proposed.reason or "what was read does not fit the schema"
        return replace(proposed, pointer=pointer, value=value, status="unreadable", confidence=0.0, reason=reason)
    return replace(proposed, pointer=pointer, value=value)


def answered_fields(data: Json, places: Mapping[str, Place], probabilities: Mapping[str, float]) -> dict[str, Field]:
    """Evidence for every scalar and empty array of a model's answer, by JSON Pointer. places: where values are printed."""
    found = {leaf.pointer: _answered(leaf, places.get(leaf.pointer), probabilities.get(leaf.pointer, 0.0)) for leaf in leaves(data)}
    for pointer, probability in probabilities.items():
        if pointer not in found:
            found[pointer] = Field(pointer, [], "absent", confidence=probability, reason="the model gives no entries")
    return found


def _answered(leaf: Leaf, place: Place | None, probability: float) -> Field:
    if leaf.value is None:
        return Field(leaf.pointer, None, "absent", confidence=probability, reason="the model gives null")
    if place is None:
        told = isinstance(leaf.value, bool)
        reason = "the model's judgement; yes and no are not located" if told else "given by the model, not located on the pages"
        return Field(leaf.pointer, leaf.value, "unverified", confidence=probability, reason=reason)
    boxes = place.boxes
    return Field(leaf.pointer, leaf.value, "found", place.raw, place.page, place.box, boxes if len(boxes) > 1 else (), probability)
