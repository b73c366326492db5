"""Values that are asked for and are not there.

A tenth of the fields of generated documents are null, too few to learn what it looks like. Here some of the printed values are taken
away: the whole line if nothing else that is asked for stands on it, or else just the value, as on a form that was not filled in.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from random import Random
from typing import Any

from nano.examples import Question, in_array
from pagelift.core import PageContent
from pagelift.evals.synthetic import Place

SHARE = 0.15
"""Of the values outside of arrays, so many are taken away."""


def with_blanks(question: Question, rng: Random, share: float = SHARE) -> Question:
    """The question with some values taken off its pages, null in the answer and nullable in the schema; at least one value is left."""
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
