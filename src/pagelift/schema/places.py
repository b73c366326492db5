"""Every subschema that counts for the result, with its place: those below the root or behind a reference in use."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from pagelift.core import Json, SchemaError
from pagelift.schema import keywords as kw
from pagelift.schema.references import META_SCHEMA, References

MAX_PLACES = 20_000
MAX_DEPTH = 200
MAX_CHECKS = 20_000
MAX_CHAIN = 100


@dataclass(slots=True)
class Place:
    """One subschema. tested: inside not, if, contains or propertyNames. value: a value of the result stands here."""

    pointer: str
    schema: dict[str, Json]
    base: str
    tested: bool
    value: bool


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a schema is refused. invalid: it is not a JSON Schema at all."""

    pointer: str
    reason: str
    invalid: bool = False


@dataclass(slots=True)
class Survey:
    """The places of a document, what is wrong with its references, and which places check the same value (`same`)."""

    places: list[Place] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    same: dict[str, list[str]] = field(default_factory=dict)


def nesting(document: Json) -> int:
    """The number of JSON containers inside one another; stops counting a little above MAX_DEPTH."""
    level, depth = [document], 0
    while level and depth <= MAX_DEPTH + 1:
        level = [v for c in level for v in (c.values() if isinstance(c, dict) else c if isinstance(c, list) else ())]
        depth += 1
    return depth - 1


def survey(references: References) -> Survey:
    """Walk the document from its root along subschemas and references; each subschema is visited once per role."""
    found = Survey()
    pending = deque([("", references.document, "", False, True)])
    seen: set[tuple[str, bool, bool]] = set()
    while pending:
        pointer, schema, outer, tested, value = pending.popleft()
        if (pointer, tested, value) in seen or not isinstance(schema, dict):
            continue
        seen.add((pointer, tested, value))
        if len(seen) > 2 * MAX_PLACES:
            found.refused.append(Refusal("", f"the schema has more than {MAX_PLACES} subschemas in use"))
            return found
        base = references.base(schema, outer)
        found.places.append(Place(pointer, schema, outer, tested, value))
        same = found.same.setdefault(pointer, [])
        for path, sub in subschemas_in_use(schema, references.draft):
            inner = kw.join(pointer, *path)
            is_value = path[0] in kw.VALUE_MAPS or path[0] in kw.VALUE_SCHEMAS or path[0] in kw.VALUE_LISTS
            if not is_value and path[0] not in ("contains", "propertyNames"):
                same.append(inner)
            pending.append((inner, sub, base, tested or path[0] in kw.TEST_SCHEMAS, is_value))
        for key in kw.REFERENCES:
            if key in schema:
                target = _follow(references, schema[key], base, kw.join(pointer, key), found)
                if target is not None:
                    same.append(target)
                    pending.append((target, *references.target(target), tested, False))
    return found


def _follow(references: References, reference: Json, base: str, pointer: str, found: Survey) -> str | None:
    try:
        target = references.resolve(reference, base) if isinstance(reference, str) else None
    except SchemaError as error:
        found.refused.append(Refusal(pointer, str(error)))
        return None
    return None if target == META_SCHEMA else target


def subschemas_in_use(schema: dict[str, Json], draft: int) -> list[tuple[tuple[str | int, ...], Json]]:
    """The subschemas that a validator of this draft looks at: no definitions, nothing beside `$ref` up to draft 7."""
    if draft <= 7 and "$ref" in schema:
        return []
    return [(path, sub) for path, sub in kw.subschemas(schema) if path[0] not in kw.DEFINITIONS and kw.in_draft(str(path[0]), draft)]


def loops(found: Survey) -> list[Refusal]:
    """References that come back to the same value without going into it, and chains that cost too much to check."""
    cost: dict[str, int] = {}
    height: dict[str, int] = {}
    open_places: set[str] = set()
    stack: list[tuple[str, bool]] = [(pointer, False) for pointer in reversed(found.same)]
    while stack:
        pointer, done = stack.pop()
        if done:
            open_places.discard(pointer)
            cost[pointer] = 1 + sum(cost.get(inner, 1) for inner in found.same.get(pointer, ()))
            if cost[pointer] > MAX_CHECKS:
                return [Refusal(pointer, f"checking one value would take more than {MAX_CHECKS} subschemas (references inside references)")]
            height[pointer] = 1 + max((height.get(inner, 0) for inner in found.same.get(pointer, ())), default=0)
            if height[pointer] > MAX_CHAIN:
                return [Refusal(pointer, f"references lead to references in a chain of more than {MAX_CHAIN}")]
            continue
        if pointer in cost or pointer in open_places:
            continue
        open_places.add(pointer)
        stack.append((pointer, True))
        for inner in found.same.get(pointer, ()):
            if inner in open_places:
                return [Refusal(inner, "the schema refers to itself without going into a property or entry, which never ends")]
            stack.append((inner, False))
    return []
