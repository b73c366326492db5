"""Pages that the tests set line by line, and what must hold for every result of the built-in engine.

Words are monospaced and lie where the test says; nothing here depends on a PDF, a font or chance.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pagelift.core import Box, Field, FormField, Json, PageContent, Proposal, Word
from pagelift.layout import extract_pages
from pagelift.layout.lines import PageLayout, analyse_page
from pagelift.layout.plan import plan
from pagelift.layout.query import Query
from pagelift.schema import Schema

CHARACTER = 0.5  # width of a character and of half a space, in font sizes
LEFT_PT = 50.0
PITCH_PT = 14.0
SLACK_PT = 0.01  # rounding
GLYPHS = frozenset(["☑", "☒", "☐", "✓", "✔", "✗", "✘", "■", "□", "●", "○", "[x]", "[X]", "(x)", "(X)", "[]", "()", "["])

Cells = str | Mapping[float, str]
"""Left edge in points (negative: right edge) to text; a plain text starts at LEFT_PT."""


@dataclass(frozen=True)
class Row:
    """One printed line. skip: points of white space above it besides the usual pitch."""

    cells: Cells
    size: float = 10.0
    bold: bool = False
    skip: float = 0.0


def words_at(cells: Cells, top: float, size: float = 10.0, bold: bool = False) -> list[Word]:
    words = []
    for place, text in ({LEFT_PT: cells} if isinstance(cells, str) else cells).items():
        step = CHARACTER * size
        x = place if place >= 0 else -place - step * len(text) + 0.5 * step * text.count(" ")
        for part in text.split(" "):
            if part:
                box = Box(x, top, x + step * len(part), top + size)
                words.append(Word(part, box, bold=bold, size_pt=size))
            x += step * len(part) + 0.5 * step
    return words


def page(
    *rows: Row | Cells, number: int = 1, top: float = 40.0, more: Sequence[Word] = (), fields: Sequence[FormField] = ()
) -> PageContent:
    """A page of 600 x 800 points with one line per row, PITCH_PT apart. Values of `fields` become words with source "form"."""
    words = list(more)
    for row in rows:
        line = row if isinstance(row, Row) else Row(row)
        top += line.skip
        words += words_at(line.cells, top, line.size, line.bold)
        top += PITCH_PT * line.size / 10
    for field in fields:
        if field.kind in ("text", "choice") and field.value:
            typed = words_at({field.box.x0 + 2: field.value}, field.box.top + 1)
            words += [Word(w.text, w.box, "form", size_pt=w.size_pt) for w in typed]
    return PageContent(number, 600, 800, tuple(words), form_fields=tuple(fields))


def line_top(index: int, top: float = 40.0) -> float:
    """Where the row at `index` stands on a page of plain rows."""
    return top + PITCH_PT * index


def text_field(name: str, value: str, x: float, top: float, width: float = 150, label: str = "") -> FormField:
    return FormField(name, "text", value, Box(x, top - 1, x + width, top + 12), label)


def check_box(name: str, checked: bool, x: float, top: float, export: str = "Yes") -> FormField:
    return FormField(name, "checkbox", export, Box(x, top, x + 10, top + 10), checked=checked)


def turned(content: PageContent, clockwise: bool = True) -> PageContent:
    """The same page with its text running down (clockwise) or up."""

    def turn(b: Box) -> Box:
        if clockwise:
            return Box(content.height_pt - b.bottom, b.x0, content.height_pt - b.top, b.x1)
        return Box(b.top, content.width_pt - b.x1, b.bottom, content.width_pt - b.x0)

    words = tuple(Word(w.text, turn(w.box), w.source, w.confidence, w.bold, w.size_pt) for w in content.words)
    return PageContent(content.number, content.height_pt, content.width_pt, words)


STRING = {"type": ["string", "null"]}
NUMBER = {"type": ["number", "null"]}
INTEGER = {"type": ["integer", "null"]}
BOOLEAN = {"type": ["boolean", "null"]}
DATE = {"type": ["string", "null"], "format": "date"}
STRINGS = {"type": "array", "items": {"type": "string"}}


def describe(kind: Mapping[str, Any], description: str) -> dict[str, Any]:
    return {**kind, "description": description}


def record(properties: Mapping[str, Any]) -> dict[str, Any]:
    """An object schema whose properties are all required, as schemas for extraction usually have it."""
    return {"type": "object", "properties": dict(properties), "required": list(properties)}


def extract(properties: Mapping[str, Any], *contents: PageContent) -> Proposal:
    """What the engine reads, after a check of everything that holds for every result."""
    proposal = extract_pages(contents, Schema.load(record(properties)))
    check(proposal, contents)
    return proposal


def read(properties: Mapping[str, Any], *contents: PageContent) -> Json:
    return extract(properties, *contents).data


def layout(content: PageContent) -> PageLayout:
    return analyse_page(content)


def query(name: str, definition: Mapping[str, Any]) -> Query:
    """The question that one property of a schema asks."""
    queries, _ = plan(Schema.load(record({name: definition})).root)
    return queries[0]


def check(proposal: Proposal, contents: Sequence[PageContent]) -> None:
    """Evidence for every value and every value with its evidence; boxes on the words they claim; nulls with a reason."""
    json.dumps(proposal.data, allow_nan=False)
    numbered = {content.number: content for content in contents}
    for pointer, field in proposal.fields.items():
        assert field.pointer == pointer
        assert resolve(proposal.data, pointer) == field.value, pointer
        assert 0 <= field.confidence <= 1, (pointer, field.confidence)
        if field.status == "found":
            assert field.value is not None, pointer
            assert field.raw, pointer
            assert_on_page(field, numbered)
        else:
            assert field.value in (None, []), pointer
            assert field.reason, pointer
    assert sorted(leaves(proposal.data)) == sorted(proposal.fields)


def assert_on_page(field: Field, numbered: Mapping[int, PageContent]) -> None:
    assert field.page is not None
    content = numbered[field.page]
    assert field.box is not None
    assert field.boxes
    for box in (field.box, *field.boxes):
        assert box.x0 < box.x1
        assert box.top < box.bottom
        assert _inside(box, Box(0, 0, content.width_pt, content.height_pt)), f"{field.pointer}: {box} outside the page"
    assert all(_inside(box, field.box) for box in field.boxes)
    assert field.raw is not None
    if any(f.box == field.box for f in content.form_fields) or any(w.box == field.box and w.text in GLYPHS for w in content.words):
        return  # a check box; its caption stands beside it
    covered = [w for w in content.words if any(_inside(w.box, box) for box in field.boxes)]
    remaining = list("".join(letters(w.text) for w in covered))
    for letter in letters(field.raw):
        assert letter in remaining, f"{field.pointer}: {field.raw!r} is not what stands in its box: {[w.text for w in covered]}"
        remaining.remove(letter)


def letters(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKC", text) if c.isalnum())


def _inside(inner: Box, outer: Box) -> bool:
    return (
        outer.x0 - SLACK_PT <= inner.x0
        and outer.top - SLACK_PT <= inner.top
        and inner.x1 <= outer.x1 + SLACK_PT
        and inner.bottom <= outer.bottom + SLACK_PT
    )


def resolve(data: Json, pointer: str) -> Json:
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        data = data[int(key)] if isinstance(data, list) else data[key]
    return data


def leaves(data: Json, pointer: str = "") -> list[str]:
    """Pointers to all scalars and empty arrays."""
    if isinstance(data, dict):
        return [leaf for key, value in data.items() for leaf in leaves(value, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}")]
    if isinstance(data, list) and data:
        return [leaf for i, value in enumerate(data) for leaf in leaves(value, f"{pointer}/{i}")]
    return [pointer]
