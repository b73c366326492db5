"""The schema as the engines see it: a tree of nodes with references resolved and null handled.

Only what guides an extraction is kept here; the full JSON Schema stays in `Schema.effective` and decides validity.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pagelift.core import Json

ScalarType = Literal["string", "number", "integer", "boolean", "null"]


@dataclass(slots=True)
class Scalar:
    """A string, number, integer or boolean.

    types: without "null". enum: allowed values without null, None when there is no enum or const.
    nullable: null may be returned. Bounds, pattern and lengths are None when not given.
    """

    name: str = ""
    title: str = ""
    description: str = ""
    examples: tuple[Json, ...] = ()
    nullable: bool = True
    required: bool = False
    types: tuple[ScalarType, ...] = ("string",)
    format: str | None = None
    pattern: str | None = None
    enum: tuple[Json, ...] | None = None
    minimum: float | None = None
    maximum: float | None = None
    exclusive_minimum: float | None = None
    exclusive_maximum: float | None = None
    multiple_of: float | None = None
    min_length: int | None = None
    max_length: int | None = None


@dataclass(slots=True)
class Object:
    """An object. properties: in schema order. additional: the node of values under other keys, None if there are none to fill."""

    name: str = ""
    title: str = ""
    description: str = ""
    nullable: bool = False
    required: bool = False
    properties: dict[str, Node] = field(default_factory=dict)
    additional: Node | None = None


@dataclass(slots=True)
class Array:
    """An array. items: the node of every entry. min_items, max_items: None when not given."""

    name: str = ""
    title: str = ""
    description: str = ""
    nullable: bool = False
    required: bool = False
    items: Node = field(default_factory=Scalar)
    min_items: int | None = None
    max_items: int | None = None


@dataclass(slots=True)
class Union:
    """Several alternatives that are not all scalars (anyOf, oneOf). Engines use the first option unless they know better."""

    name: str = ""
    title: str = ""
    description: str = ""
    nullable: bool = False
    required: bool = False
    options: tuple[Node, ...] = ()


Node: TypeAlias = Scalar | Object | Array | Union
