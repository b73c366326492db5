"""`Schema`: what a user gave, what results are checked against, and the tree that engines fill."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import jsonschema_rs
import pydantic

from pagelift.core import ConfigError, InvalidSchema, Json, SchemaRefused
from pagelift.schema import keywords as kw
from pagelift.schema.check import check_document
from pagelift.schema.conform import Conformed, conform, empty_fault, writes_everything
from pagelift.schema.effective import Rewriter
from pagelift.schema.nodes import Node
from pagelift.schema.patterns import BACKTRACK_LIMIT
from pagelift.schema.places import Refusal
from pagelift.schema.references import References, draft_of, validator_class
from pagelift.schema.repair import failed_keyword
from pagelift.schema.report import SchemaReport, report_rows
from pagelift.schema.shaping import Leaves
from pagelift.schema.source import read_source, save_document
from pagelift.schema.tree import TreeBuilder
from pagelift.schema.view import Views

Nulls = Literal["allowed", "declared"]


@dataclass(frozen=True, slots=True)
class ValidationProblem:
    """One way in which a value breaks the schema. pointer: JSON Pointer into the value. keyword: "false" for a schema `false`."""

    pointer: str
    keyword: str
    message: str


@dataclass(frozen=True, eq=False)
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
    report: SchemaReport = field(default_factory=SchemaReport, repr=False, compare=False)

    @classmethod
    def load(cls, source: Any, *, nulls: Nulls = "allowed", strict: bool = False, folder: str | Path | None = None) -> Schema:
        """Read a schema and check it.

        source: a mapping, a path, a string (path, inline JSON, or a name saved in `folder` or the user's folder), a Pydantic
        model or another type that Pydantic can describe, or a Schema, which is read again when `nulls` differs.
        strict: refuse constraints that would be advisory only.
        Raises SchemaNotFound, InvalidSchema, SchemaRefused.
        """
        schema, report = _build(cls, source, nulls, strict, Path(folder) if folder is not None else None)
        if schema is None:
            reasons = "; ".join(f"{r.pointer or 'the schema'}: {r.reason}" for r in report.refused[:5])
            more = f"; and {len(report.refused) - 5} more" if len(report.refused) > 5 else ""
            raise (InvalidSchema if report.refused[0].invalid else SchemaRefused)(reasons + more)
        return schema

    @functools.cached_property
    def views(self) -> Views:
        return Views(self.effective)

    @functools.cached_property
    def root(self) -> Node:
        """The tree that engines fill; cyclic when the schema refers to itself."""
        return TreeBuilder(self.views).root(self.effective)

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

    @functools.cached_property
    def leaves(self) -> Leaves:
        """Validators of single scalars, compiled when they are first needed."""
        return Leaves(functools.partial(compile_validator, draft=self.draft))

    @functools.cached_property
    def writes_everything(self) -> bool:
        """Whether an empty result with all optional objects written out stays within the limits."""
        return writes_everything(self.effective, self.views, self.leaves)

    def __reduce__(self) -> tuple[Any, ...]:
        """Without what was compiled, which cannot go to another process."""
        return type(self), (self.original, self.effective, self.nulls, self.model, self.draft, self.report)

    def to_model(self, data: Json) -> tuple[Any, str]:
        """`data` as an instance of the Python type that the schema came from, and "" or the reason why there is none."""
        if self.model is None:
            return None, "the schema was not given as a Python type"
        try:
            return pydantic.TypeAdapter(self.model).validate_json(json.dumps(data, ensure_ascii=False)), ""
        except pydantic.ValidationError as error:
            return None, "; ".join(f"{kw.join('', *e['loc'])}: {e['msg']}" for e in error.errors()[:10])

    def is_valid(self, data: Json) -> bool:
        return not self.errors(data)

    def errors(self, data: Json) -> list[ValidationProblem]:
        """Every way in which `data` breaks the effective schema; empty when it conforms."""
        try:
            return [problem(error) for error in self.validator.iter_errors(data)]
        except ValueError as error:  # not a JSON value, or text that is not Unicode
            return [ValidationProblem("", "json", str(error))]

    def conform(self, data: object) -> Conformed:
        """Complete, order and cut down an engine's partial value until it is valid; what is left out is recorded.

        Adds missing properties (null, [], nested objects), keeps schema order, converts without loss, and replaces what the
        schema does not admit by null. The result is always valid.
        Raises UnfilledValue for required values that are missing and may not be null, ExtractionError for other demands
        that leaving values out cannot meet.
        """
        return conform(data, self.effective, self.views, self.validator, self.leaves, self.writes_everything)


def compile_validator(schema: Json, draft: int) -> Any:
    """A jsonschema-rs validator with format checks, bounded regular expressions, and no way to fetch anything."""
    return validator_class(draft)(
        schema,
        validate_formats=True,
        formats=_newer_formats() if draft < 2019 else None,
        pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACK_LIMIT),
        offline=True,
    )


@functools.cache
def _newer_formats() -> dict[str, Any]:
    """Formats that came after draft 4; schemas of older drafts use them all the same."""
    newer = ("uuid", "duration", "uri-reference", "json-pointer", "iri", "iri-reference", "idn-email", "uri-template")
    return {f: jsonschema_rs.Draft202012Validator({"format": f}, validate_formats=True).is_valid for f in newer}


def _build(cls: type[Schema], source: Any, nulls: Nulls, strict: bool, folder: Path | None) -> tuple[Schema | None, SchemaReport]:
    """The schema, None when it is refused, and its report."""
    if nulls not in ("allowed", "declared"):
        raise ConfigError(f"nulls is {nulls!r}; it can be 'allowed' or 'declared'")
    original, model = (source.original, source.model) if isinstance(source, Schema) else read_source(source, folder)
    draft, address = draft_of(original)
    refused, found = check_document(original, draft, address)
    if refused:
        return None, SchemaReport(refused=tuple(refused))
    rewriter = Rewriter(References(original, draft), nulls == "allowed")
    effective = rewriter.rewrite(address)
    rows, hints = report_rows(found, rewriter)
    if strict:
        refused += [Refusal(r.pointer, f"{r.keyword} is advisory only: {r.note}") for r in rows if r.status == "advisory"]
    report = SchemaReport(tuple(rows), tuple(refused), hints, _notes(original))
    schema = cls(original, effective, nulls, model, draft, report)
    if not refused:
        refused += _trial(schema)
    report = dataclasses.replace(report, refused=tuple(refused))
    return (None if refused else schema), report


def _notes(original: Json) -> tuple[str, ...]:
    declared = original.get("$schema") if isinstance(original, dict) else None
    if declared is None or draft_of(original)[0] != 2020 or "json-schema.org/draft/2020-12/" in str(declared):
        return ()
    return (f"$schema {str(declared)[:100]!r} is not a draft that is known; read as draft 2020-12",)


def _trial(schema: Schema) -> list[Refusal]:
    """What shows only when the validator is compiled and an empty result is made."""
    try:
        _ = schema.validator
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        return [Refusal("", f"the validator cannot use the schema: {getattr(error, 'message', error)}", invalid=True)]
    fault = empty_fault(schema.effective, schema.views, schema.leaves)
    return [Refusal("", fault)] if fault else []


def check_schema(source: Any, *, nulls: Nulls = "allowed", strict: bool = False, folder: str | Path | None = None) -> SchemaReport:
    """The report of a schema, also when it is refused; takes what `Schema.load` takes.

    Raises SchemaNotFound, and InvalidSchema when the source is no JSON object or is not JSON at all.
    """
    return _build(Schema, source, nulls, strict, Path(folder) if folder is not None else None)[1]


def save_schema(name: str, schema: Any, folder: str | Path | None = None) -> Path:
    """Save a schema under a name that `Schema.load` finds, in `folder` or the user's folder; returns the file's path.

    schema: whatever `Schema.load` takes; it is checked first. Raises as `Schema.load` does.
    """
    return save_document(name, Schema.load(schema).original, Path(folder) if folder is not None else None)


def problem(error: Any) -> ValidationProblem:
    """A complaint of the validator in our words."""
    return ValidationProblem(kw.join("", *error.instance_path), failed_keyword(error), error.message)
