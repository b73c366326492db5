"""Values that are asked for and are not there.

A tenth of the fields of generated documents are null, too few to learn what it looks like. Here some of the printed values are taken
away: the whole line if nothing else that is asked for stands on it, or else just the value, as on a form that was not filled in; and
columns of tables, with their headings or without.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from random import Random
from typing import Any

from nano.examples import Question, in_array
from pagelift.core import Box, PageContent
from pagelift.evals.synthetic import Place

SHARE = 0.15
"""Of the values outside of arrays, so many are taken away."""
COLUMNS = 0.2
"""Of the columns of arrays that have others beside them, so many."""
HEADING = 2.6
"""A heading lies within so many heights of the first cell above it."""


def with_blanks(question: Question, rng: Random, share: float = SHARE) -> Question:
    """The question with some values taken off its pages, null in the answer and nullable in the schema; at least one value is left."""
    question = _with_empty_columns(question, rng)
    schema, expected, places = copy.deepcopy(question.schema), copy.deepcopy(question.expected), dict(question.places)
    pages = list(question.pages)
    for pointer in question.places:
        steps = pointer.split("/")[1:]
        if rng.random() >= share or len(places) < 2 or in_array(pointer):
            continue
        node, parent = schema, expected
        for step in steps:
            node = node["properties"][step]
        for step in steps[:-1]:
            parent = parent[step]
        if node["type"] == "boolean":
            continue
        others = [place for other, place in places.items() if other != pointer]
        without = _without(pages, places[pointer], others, whole_line=rng.random() < 0.6)
        if _shows(without, places[pointer].raw):
            continue  # printed a second time
        pages = without
        _allow_null(node)
        parent[steps[-1]] = None
        del places[pointer]
    return question._replace(pages=pages, schema=schema, expected=expected, places=places)


def _with_empty_columns(question: Question, rng: Random) -> Question:
    """Without the cells of some columns; rows keep the one in which all of them have a value."""
    schema, expected, places = copy.deepcopy(question.schema), copy.deepcopy(question.expected), dict(question.places)
    pages = list(question.pages)
    for name, rows in expected.items():
        if not (isinstance(rows, list) and rows and isinstance(rows[0], dict)):
            continue
        columns = [column for column in rows[0] if any(f"/{name}/{k}/{column}" in places for k in range(len(rows)))]
        full = [column for column in columns if all(f"/{name}/{k}/{column}" in places for k in range(len(rows)))]
        for column in columns:
            if rng.random() >= COLUMNS or not [other for other in full if other != column]:
                continue
            full = [other for other in full if other != column]
            cells = [places.pop(pointer) for k in range(len(rows)) if (pointer := f"/{name}/{k}/{column}") in places]
            if rng.random() < 0.5:
                cells.append(_over(cells[0]))
            for cell in cells:
                pages = _without(pages, cell, (), whole_line=False)
            for row in rows:
                row[column] = None
            _allow_null(schema["properties"][name]["items"]["properties"][column])
    return question._replace(pages=pages, schema=schema, expected=expected, places=places)


def _over(cell: Place) -> Place:
    """Where the heading of a column is, over its first cell."""
    box = cell.box
    top = box.top - HEADING * box.height
    return cell._replace(box=Box(box.x0 - box.height, top, box.x1 + box.height, box.top))


def _allow_null(node: dict[str, Any]) -> None:
    if isinstance(node["type"], str):
        node["type"] = [node["type"], "null"]
        if "enum" in node:
            node["enum"] = [*node["enum"], None]


def _without(pages: Sequence[PageContent], place: Place, others: Sequence[Place], whole_line: bool) -> list[PageContent]:
    """The pages without the words of a place, or without all words beside it if none of the other places are there."""
    box = place.box
    beside = [other.box for other in others if other.page == place.page and other.box.top < box.bottom and other.box.bottom > box.top]

    def gone(word: Any) -> bool:
        x, y = word.box.center_x, word.box.center_y
        return box.top <= y <= box.bottom and ((whole_line and not beside) or box.x0 <= x <= box.x1)

    return [
        dataclasses.replace(page, words=tuple(word for word in page.words if not gone(word))) if page.number == place.page else page
        for page in pages
    ]


def _shows(pages: Sequence[PageContent], raw: str) -> bool:
    wanted = "".join(raw.split())
    return any(wanted in "".join(word.text for word in page.words).replace(" ", "") for page in pages)
