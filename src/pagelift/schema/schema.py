"""`Schema`: what a user gave, what results are checked against, and the tree that engines fill."""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import jsonschema_rs

from pagelift.core import ConfigError, Json
from pagelift.schema import keywords as kw
from pagelift.schema.effective import Rewriter
from pagelift.schema.nodes import Node
from pagelift.schema.references import References, draft_of, validator_class
from pagelift.schema.source import read_source
from pagelift.schema.tree import TreeBuilder
from pagelift.schema.view import Views

Nulls = Literal["allowed", "declared"]
BACKTRACK_LIMIT = 100_000


@dataclass(frozen=True, slots=True)
class ValidationProblem:
    """One way in which a value breaks the schema. pointer: JSON Pointer into the value."""

    pointer: str
    keyword: str
    message: str


@dataclass(frozen=True)
class Schema:
    """A JSON Schema, read and checked. Make one with `Schema.load`.

    original: as given. effective: what results are validated against. nulls: "allowed" lets every scalar come back null,
    "declared" only those whose schema says so. model: the Python type that the schema came from, or None.
    """

    original: Json
    effective: dict[str, Json]
    nulls: Nulls = "allowed"
    model: Any = None
    draft: int = 2020

    @classmethod
    def load(cls, source: Any, *, nulls: Nulls = "allowed", strict: bool = False, folder: str | Path | None = None) -> Schema:
        """Read a schema and check it.

        source: a mapping, a path, a string (path, inline JSON, or a name saved in `folder` or the user's folder), a Pydantic
        model or another type that Pydantic can describe, or a Schema, which is read again when `nulls` differs.
        strict: refuse constraints that would be advisory only.
        Raises SchemaNotFound, InvalidSchema, SchemaRefused.
        """
        if nulls not in ("allowed", "declared"):
            raise ConfigError(f"nulls is {nulls!r}; it can be 'allowed' or 'declared'")
        if isinstance(source, Schema):
            original, model = source.original, source.model
        else:
            original, model = read_source(source, Path(folder) if folder is not None else None)
        draft, address = draft_of(original)
        effective = Rewriter(References(original, draft), nulls == "allowed").rewrite(address)
        return cls(original, effective, nulls, model, draft)

    @functools.cached_property
    def views(self) -> Views:
        return Views(self.effective)

    @functools.cached_property
    def root(self) -> Node:
        """The tree that engines fill; cyclic when the schema refers to itself."""
        return TreeBuilder(self.views).node(self.effective, required=True)

    @property
    def title(self) -> str:
        return self._text("title")

    @property
    def description(self) -> str:
        return self._text("description")

    def _text(self, key: str) -> str:
        value = self.views.flat(self.effective).get(key)
        return value if isinstance(value, str) else ""

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the schema as given and of the null policy, in hex; independent of white space, not of key order."""
        text = json.dumps([self.original, self.nulls], ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @functools.cached_property
    def validator(self) -> Any:
        """The compiled validator of `effective`."""
        return compile_validator(self.effective, self.draft)

    def is_valid(self, data: Json) -> bool:
        return bool(self.validator.is_valid(data))

    def errors(self, data: Json) -> list[ValidationProblem]:
        """Every way in which `data` breaks the effective schema; empty when it conforms."""
        return [problem(error) for error in self.validator.iter_errors(data)]


def compile_validator(schema: Json, draft: int) -> Any:
    """A jsonschema-rs validator with format checks, bounded regular expressions, and no way to fetch anything."""
    return validator_class(draft)(
        schema,
        validate_formats=True,
        pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACK_LIMIT),
        offline=True,
    )


def problem(error: Any) -> ValidationProblem:
    path = [token for token in error.schema_path if isinstance(token, str)]
    keyword = path[-1] if path else "false"
    return ValidationProblem(kw.join("", *error.instance_path), keyword, error.message)
