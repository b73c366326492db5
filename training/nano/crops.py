"""The lessons before whole documents: a few fields, and of the page just the lines around them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from nano.examples import Question, in_array
from pagelift.core import Json, PageContent
from pagelift.evals.synthetic import Place, Sample
from pagelift.layout.lines import analyse_page


@dataclass(frozen=True, slots=True)
class Crop:
    """How much is left. fields: at most so many values outside of arrays. rows: of an array, 0 for no arrays. around: lines kept above and
    below those with values."""

    fields: int
    rows: int
    around: int


def whole(sample: Sample) -> Question:
    """The document as it is."""
    return Question(sample.pages, sample.schema, sample.expected, sample.evidence)


def cropped(sample: Sample, crop: Crop, rng: Random) -> Question | None:
    """A part of the document with values; None if it has none that fit."""
    shown = [pointer for pointer in sample.evidence if not in_array(pointer)]
    empty = [pointer for pointer in _nulls(sample.expected) if not in_array(pointer)]
    kept = set(rng.sample(shown, min(len(shown), rng.randint(1, crop.fields))))
    kept |= set(rng.sample(empty, min(len(empty), rng.randint(0, max(1, crop.fields // 3)))))
    if crop.rows:
        rows = rng.randint(1, crop.rows)
        arrays = {pointer.split("/")[1] for pointer in sample.evidence if in_array(pointer)}
        kept |= {p for p in sample.evidence if (s := p.split("/"))[1] in arrays and len(s) > 2 and s[2].isdigit() and int(s[2]) < rows}
        kept |= {
            p for p in _nulls(sample.expected) if (s := p.split("/"))[1] in arrays and len(s) > 2 and s[2].isdigit() and int(s[2]) < rows
        }
    places = {pointer: place for pointer, place in sample.evidence.items() if pointer in kept}
    if not places:
        return None
    dropped = [place for pointer, place in sample.evidence.items() if crop.rows and pointer not in kept and _row(pointer) >= 0]
    pages = [_lines_around(page, list(places.values()), dropped, crop.around, rng) for page in sample.pages]
    pages = [page for page in pages if page.words]
    if not pages:
        return None
    expected = _only(sample.expected, "", lambda pointer: pointer in kept)
    return Question(pages, _schema_of(sample.schema, expected), expected, places)


def _row(pointer: str) -> int:
    return next((int(step) for step in pointer.split("/") if step.isdigit()), -1)


def _nulls(value: Json, pointer: str = "") -> list[str]:
    if isinstance(value, dict):
        return [found for key, inner in value.items() for found in _nulls(inner, f"{pointer}/{key}")]
    if isinstance(value, list):
        return [found for index, inner in enumerate(value) for found in _nulls(inner, f"{pointer}/{index}")]
    return [pointer] if value is None else []


def _only(value: Json, pointer: str, keep: Callable[[str], bool]) -> Json:
    """The part of a value that is kept; objects and arrays without anything are dropped."""
    if isinstance(value, dict):
        return {key: _only(child, f"{pointer}/{key}", keep) for key, child in value.items() if _has(child, f"{pointer}/{key}", keep)}
    if isinstance(value, list):
        return [_only(child, f"{pointer}/{index}", keep) for index, child in enumerate(value) if _has(child, f"{pointer}/{index}", keep)]
    return value


def _has(value: Json, pointer: str, keep: Callable[[str], bool]) -> bool:
    if isinstance(value, dict):
        return any(_has(child, f"{pointer}/{key}", keep) for key, child in value.items())
    if isinstance(value, list):
        return any(_has(child, f"{pointer}/{index}", keep) for index, child in enumerate(value))
    return keep(pointer)


def _schema_of(schema: dict[str, Json], expected: Json) -> dict[str, Json]:
    """The schema of what is kept, in its order."""
    if not isinstance(expected, dict):
        return schema
    made = {key: value for key, value in schema.items() if key != "required"}
    made["properties"] = {}
    for key, inner in schema["properties"].items():
        if key not in expected:
            continue
        value = expected[key]
        if isinstance(value, dict):
            made["properties"][key] = _schema_of(inner, value)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            made["properties"][key] = {**inner, "items": _schema_of(inner["items"], {k: None for row in value for k in row})}
        else:
            made["properties"][key] = inner
    return made


def _lines_around(page: PageContent, places: list[Place], dropped: list[Place], around: int, rng: Random) -> PageContent:
    """The page with the lines of `places` and some around them, without those of `dropped`."""
    here = [place.box for place in places if place.page == page.number]
    away = [place.box for place in dropped if place.page == page.number]
    lines = [[token.word for token in line.tokens] for line in analyse_page(page).lines]

    def touches(line: int, boxes: list) -> bool:
        return any(b.x0 <= w.box.center_x <= b.x1 and b.top <= w.box.center_y <= b.bottom for w in lines[line] for b in boxes)

    wanted = [line for line in range(len(lines)) if touches(line, here)]
    kept = {k for line in wanted for k in range(line - 1 - rng.randint(0, around), line + 1 + rng.randint(0, around))}
    kept |= set(wanted)
    words = [
        word for line in sorted(kept) if 0 <= line < len(lines) and (line in wanted or not touches(line, away)) for word in lines[line]
    ]
    return dataclasses.replace(page, words=tuple(words))
