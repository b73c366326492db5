"""What is printed as text: labels and sentences by language and split, and pools of words; and the catalogue of concepts.

The files in `words/` hold one entry a line:
    concept = wordings of train | ... ; of validation | ... ; of test | ...
    concept | type | group | keys, ... ; keys of train only, ... | German keys | descriptions of train / ... ; of validation ; of test
    @pool = entries that go to the splits in turn
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal, cast

from pagelift.evals.synthetic.splits import SPLITS, Split, share

LANGUAGES = ("en", "de", "fr", "es", "it", "nl")
ValueType = Literal["string", "address", "date", "number", "integer", "boolean", "enum", "currency", "strings", "rows"]


@dataclass(frozen=True, slots=True)
class Wording:
    """One language in one split. labels: by concept. pools: by name."""

    labels: dict[str, tuple[str, ...]]
    pools: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Concept:
    """Something a schema may ask for.

    group: the nested object it may lie in and its key there, empty if none. keys, german_keys: names of the property. more_keys: of the
    train split only. descriptions: by split.
    """

    name: str
    type: ValueType
    group: tuple[str, ...]
    keys: tuple[str, ...]
    more_keys: tuple[str, ...]
    german_keys: tuple[str, ...]
    descriptions: dict[Split, tuple[str, ...]]


@cache
def wording(language: str, split: Split) -> Wording:
    """The wordings and word pools of a language that belong to a split."""
    labels: dict[str, tuple[str, ...]] = {}
    pools: dict[str, tuple[str, ...]] = {}
    for line in _lines(f"{language}.txt"):
        name, _, rest = line.partition(" = ")
        if name.startswith("@"):
            pools[name[1:]] = share(_parts(rest, "|"), split)
        else:
            labels[name] = _parts(_parts(rest, ";")[SPLITS.index(split)], "|")
    return Wording(labels, pools)


@cache
def concepts() -> dict[str, Concept]:
    """Everything a schema may ask for, by name."""
    catalogue = {}
    for line in _lines("concepts.txt"):
        name, kind, group, keys, german, descriptions = _parts(line, "|")
        texts = [_parts(text, "/") for text in _split_sets(descriptions)]
        where = () if group == "-" else tuple(group.split("."))
        by_split = dict(zip(SPLITS, texts, strict=True))
        names, _, more = keys.partition(" ; ")
        more_keys = _parts(more, ",") if more else ()
        catalogue[name] = Concept(name, cast(ValueType, kind), where, _parts(names, ","), more_keys, _parts(german, ","), by_split)
    return catalogue


def _split_sets(text: str) -> list[str]:
    """The three sets of descriptions; a semicolon within a sentence has no space before it."""
    return text.split(" ; ")


def _lines(name: str) -> list[str]:
    text = (files("pagelift.evals.synthetic") / "words" / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def _parts(text: str, separator: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(f" {separator} " if separator != "," else ","))
