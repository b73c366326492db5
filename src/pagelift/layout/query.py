"""A property of the schema as a question to the page: what kind of value, under which labels."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from pagelift.core import Json
from pagelift.evidence import Order
from pagelift.schema.nodes import Array, Scalar

Kind = Literal[
    "number", "percent", "date", "datetime", "time", "boolean", "enum", "id", "iban", "email", "phone", "url", "currency",
    "address", "place", "name", "text",
]  # fmt: skip
Path = tuple[str, ...]
Part = Literal["street", "postcode", "city", "state", "country"]


@dataclass(frozen=True, slots=True)
class Terms:
    """What a label must say. label: concepts of the name and title. hint: of the first clause of the description.
    against: of what the description rules out ("not the ..."). fallback: of each stand-in that it
    names ("otherwise the ..."), in order. stems: the name's own telling words."""

    label: frozenset[str] = frozenset()
    hint: frozenset[str] = frozenset()
    against: frozenset[str] = frozenset()
    fallback: tuple[frozenset[str], ...] = ()
    stems: frozenset[str] = frozenset()


@dataclass(slots=True, eq=False)
class Query:
    """One scalar (or array of scalars) to be found.

    path: property names from the root. terms: what its label says; parents: what a heading over it says.
    shape: character shape of an example value. digits: stated count of digits. principal: the date of the document itself.
    range_terms: terms without first and last; full_terms: with the parents' names, as in "Patient name" for patient.name.
    """

    path: Path
    node: Scalar
    kind: Kind
    terms: Terms
    parents: Terms
    description: str
    words: str = ""
    principal: bool = False
    range_terms: Terms = Terms()
    full_terms: Terms = Terms()
    many: bool = False
    shape: str | None = None
    digits: int | None = None
    compact: bool = False
    order: Order | None = None
    role: Literal["owner", "recipient", "subject", ""] = ""
    bound: Literal["first", "last", ""] = ""
    extra: dict[str, Json] = field(default_factory=dict)

    @property
    def pointer(self) -> str:
        return "".join("/" + p.replace("~", "~0").replace("/", "~1") for p in self.path)

    @property
    def label(self) -> frozenset[str]:
        return self.terms.label

    @property
    def hint(self) -> frozenset[str]:
        return self.terms.hint

    @property
    def against(self) -> frozenset[str]:
        return self.terms.against


@dataclass(slots=True, eq=False)
class Table:
    """One array of objects to be found. columns: the scalars of an item; nested: arrays of objects inside an item."""

    path: Path
    node: Array
    label: frozenset[str]
    columns: list[Query]
    nested: list[Table]

    @property
    def pointer(self) -> str:
        return "".join("/" + p.replace("~", "~0").replace("/", "~1") for p in self.path)


def split_name(name: str) -> str:
    """A property name as words: camelCase, snake_case and kebab-case are split."""
    name = re.sub(r"(?<=[a-zà-ü0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    return re.sub(r"[_\-.\s]+", " ", name).strip()


def shape(text: str) -> str:
    """The character classes of a text with runs collapsed: "DE123" is "A9", "ddd-dd" is "a-a"."""
    classes = re.sub(r"[^\W\d_]", lambda m: "A" if m[0].isupper() else "a", re.sub(r"\d", "9", text))
    return re.sub(r"(.)\1+", r"\1", classes)
