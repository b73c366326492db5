"""Schemas that ask for what is on a page and for what is not, in many styles, and the values and places that belong to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from pagelift.core import Json
from pagelift.evals.synthetic.paint import Place
from pagelift.evals.synthetic.scene import Printed
from pagelift.evals.synthetic.splits import Split
from pagelift.evals.synthetic.wording import Concept, concepts

KeyStyle = Literal["snake", "camel", "german", "opaque", "title"]
Describing = Literal["all", "some", "none"]
ENUMS: dict[str, tuple[str, ...]] = {
    "payment_method": ("cash", "card", "transfer", "mobile"),
    "marital_status": ("single", "married", "divorced", "widowed"),
    "currency": ("EUR", "USD", "GBP", "CHF"),
}
_TYPES = {"date": "string", "address": "string", "enum": "string", "currency": "string"}
_ALWAYS_DESCRIBED = {
    "booking_amount",
    "debit",
    "credit",
    "item",
    "seller",
    "subtotal",
    "discount",
    "paid",
    "ship_address",
    "sender",
    "orderer",
    "supplier",
    "issuer",
}
"""Concepts whose key alone does not say enough."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a page says, by tag: values and places of what is printed.

    absent: concepts that may be asked for though they are not printed, flat or by array. A concept that is printed is never
    counted as absent.
    """

    values: dict[str, Printed]
    places: dict[str, Place]
    absent: tuple[str, ...]
    absent_columns: dict[str, tuple[str, ...]]


@dataclass(slots=True)
class Task:
    """A schema, the right answer, and by JSON Pointer the place of every value that is printed. loose: keys of addresses."""

    schema: dict[str, Json]
    expected: dict[str, Json]
    evidence: dict[str, Place] = field(default_factory=dict)
    loose: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Style:
    """How one schema is written. date_hint: what to add to the description of dates. everything: of `make_task`."""

    rng: Random
    split: Split
    keys: KeyStyle
    describing: Describing
    nested: bool
    all_nullable: bool
    nullable: set[str]
    closed: bool
    required: bool
    date_hint: str
    everything: bool
    opaque_count: int = 0


def make_task(content: Content, rng: Random, split: Split, german: bool, date_hint: str, everything: bool = False) -> Task:
    """Draw a schema for what a page says. german: whether German keys are likely. date_hint: about the order of day and month.

    everything: ask for all flat values that are printed instead of some, and for more that are not.
    """
    style = _new_style(content, rng, split, german, date_hint, everything)
    flat = [tag for tag in content.values if "/" not in tag]
    arrays = sorted({tag.split("/")[0] for tag in content.values if "/" in tag})
    asked = rng.sample(flat, len(flat) if everything else rng.randint(min(3, len(flat)), min(14, len(flat))))
    missing = [name for name in content.absent if name not in content.values and name not in arrays]
    asked += rng.sample(missing, min(len(missing), rng.choice((1, 2, 3, 4, 6) if everything else (0, 1, 1, 2, 3))))
    catalogue = concepts()
    asked.sort(key=list(catalogue).index)
    if rng.random() < 0.25:
        rng.shuffle(asked)
    task = Task(_object(style), {})
    for name in asked:
        concept = catalogue[name]
        if concept.type == "strings":
            _add_strings(task, style, concept, [])
        else:
            _add_scalar(task, style, concept, content)
    for name in arrays:
        if rng.random() < 0.8:
            if catalogue[name].type == "strings":
                _add_strings(task, style, catalogue[name], [tag for tag in content.values if tag.startswith(f"{name}/")], content)
            else:
                _add_rows(task, style, catalogue[name], content)
    _finish(task.schema, style)
    return task


def _new_style(content: Content, rng: Random, split: Split, german: bool, date_hint: str, everything: bool) -> _Style:
    keys: Sequence[KeyStyle] = ("snake",) * 9 + ("camel",) * 4 + ("title",) + ("opaque",) * 2 + ("german",) * (12 if german else 2)
    return _Style(
        rng,
        split,
        rng.choice(keys),
        rng.choice(("all", "all", "all", "some", "none")),
        rng.random() < 0.3,
        rng.random() < 0.5,
        {*content.absent, *(column for columns in content.absent_columns.values() for column in columns)},
        rng.random() < 0.4,
        rng.random() < 0.5,
        date_hint,
        everything,
    )


def _object(style: _Style) -> dict[str, Json]:
    made: dict[str, Json] = {"type": "object"}
    if style.closed:
        made["additionalProperties"] = False
    made["properties"] = {}
    return made


def _finish(schema: dict[str, Json], style: _Style) -> None:
    if style.required:
        schema["required"] = list(schema["properties"])


def _add_scalar(task: Task, style: _Style, concept: Concept, content: Content) -> None:
    """Put a property into the schema, in its nested object if the style has those, and its value and place beside it."""
    schema, expected, pointer = task.schema, task.expected, ""
    nested = style.nested and len(concept.group) == 2
    if nested:
        group = _cased(concept.group[0], style.keys)
        schema = schema["properties"].setdefault(group, _object(style))
        expected = expected.setdefault(group, {})
        pointer = f"/{group}"
    key = _key(concept, style, set(schema["properties"]), nested)
    schema["properties"][key] = _scalar(concept, style)
    value = content.values.get(concept.name)
    expected[key] = None if value is None else value.data
    if value is not None:
        task.evidence[f"{pointer}/{key}"] = content.places[concept.name]
    if concept.type == "address":
        task.loose.add(key)


def _add_strings(task: Task, style: _Style, concept: Concept, tags: list[str], content: Content | None = None) -> None:
    key = _key(concept, style, set(task.schema["properties"]), False)
    made: dict[str, Json] = {"type": "array", "items": {"type": "string"}}
    task.schema["properties"][key] = _described(made, concept, style)
    task.expected[key] = [content.values[tag].data for tag in tags] if content else []
    if content:
        task.evidence.update({f"/{key}/{index}": content.places[tag] for index, tag in enumerate(tags)})


def _add_rows(task: Task, style: _Style, concept: Concept, content: Content) -> None:
    """An array of objects with some of the printed columns, and perhaps one that is not printed."""
    tags = [tag.split("/") for tag in content.values if tag.startswith(f"{concept.name}/")]
    columns = list(dict.fromkeys(column for _, _, column in tags))
    rows = 1 + max(int(row) for _, row, _ in tags)
    asked = style.rng.sample(columns, style.rng.randint(min(2, len(columns)), len(columns)))
    anchor = next((column for column in columns if column in ("item", "booking_text")), columns[0])
    if anchor not in asked:  # rows are told apart by their text
        asked[0] = anchor
    missing = [column for column in content.absent_columns.get(concept.name, ()) if column not in columns]
    if missing and style.rng.random() < (0.5 if style.everything else 0.25):
        asked.append(style.rng.choice(missing))
    order = list(concepts())
    items = _object(style)
    key = _key(concept, style, set(task.schema["properties"]), False)
    expected: list[dict[str, Json]] = [{} for _ in range(rows)]
    for name in sorted(asked, key=order.index):
        column = concepts()[name]
        column_key = _key(column, style, set(items["properties"]), False)
        items["properties"][column_key] = _scalar(column, style)
        for index, row in enumerate(expected):
            tag = f"{concept.name}/{index}/{name}"
            value = content.values.get(tag)
            row[column_key] = None if value is None else value.data
            if value is not None:
                task.evidence[f"/{key}/{index}/{column_key}"] = content.places[tag]
    _finish(items, style)
    task.schema["properties"][key] = _described({"type": "array", "items": items}, concept, style)
    task.expected[key] = expected


def _scalar(concept: Concept, style: _Style) -> dict[str, Json]:
    kind = _TYPES.get(concept.type, concept.type)
    nullable = concept.type != "boolean" and (style.all_nullable or concept.name in style.nullable)
    made: dict[str, Json] = {"type": [kind, "null"] if nullable else kind}
    if concept.type == "date":
        made["format"] = "date"
    if concept.type == "enum" or (concept.type == "currency" and style.rng.random() < 0.4):
        made["enum"] = [*ENUMS[concept.name], *([None] if nullable else [])]
    return _described(made, concept, style)


def _described(made: dict[str, Json], concept: Concept, style: _Style) -> dict[str, Json]:
    """With a description where the style has them or the key alone does not tell."""
    wanted = style.describing == "all" or (style.describing == "some" and style.rng.random() < 0.5)
    if wanted or style.keys == "opaque" or concept.name in _ALWAYS_DESCRIBED:
        text = style.rng.choice(concept.descriptions[style.split])
        if concept.type == "date" and style.date_hint:
            text += style.date_hint
        made["description"] = text
    return made


def _key(concept: Concept, style: _Style, taken: set[str], nested: bool) -> str:
    """A name for a property that its object does not have yet; without descriptions the plainest one."""
    if style.keys == "opaque":
        style.opaque_count += 1
        return f"field_{style.opaque_count}"
    plain = style.describing != "all"
    names = concept.german_keys if style.keys == "german" else concept.keys
    if style.split == "train" and style.keys != "german" and style.rng.random() < 0.5:
        names, plain = (*names, *concept.more_keys), False
    first = (concept.group[1],) if nested and style.keys != "german" else ()
    options = [*first, *(names if plain else style.rng.sample(names, len(names)))]
    for name in (*options, concept.name):
        key = _cased(name, style.keys)
        if key not in taken:
            return key
    return _cased(f"{concept.name}_{len(taken)}", style.keys)


def _cased(name: str, style: KeyStyle) -> str:
    words = name.split("_")
    if style == "camel":
        return words[0] + "".join(word.capitalize() for word in words[1:])
    if style == "title":
        return " ".join(word.capitalize() for word in words)
    return name
