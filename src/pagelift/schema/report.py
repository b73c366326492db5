"""The schema report: what becomes of every keyword, known before any document is opened."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from pagelift.core import Json
from pagelift.schema import keywords as kw
from pagelift.schema.effective import Rewriter
from pagelift.schema.patterns import ecma_pattern
from pagelift.schema.places import Place, Refusal, Survey

KeywordStatus = Literal["enforced", "rewritten", "advisory"]

_HINTS = frozenset((*kw.ANNOTATIONS, "discriminator", "externalDocs", "xml"))
Checked = Literal["grammar", "end", ""]

_AT_THE_END = frozenset(
    [
        *(*kw.SAME_SCHEMAS, *kw.SAME_MAPS, "if", "maxContains", "propertyNames", "uniqueItems", "oneOf"),
        *("minProperties", "maxProperties", "dependentRequired", "unevaluatedProperties", "unevaluatedItems"),
    ]
)
_LOOKS_AROUND = re.compile(r"\(\?<?[=!]|\\[1-9]|\\k<")
_CHECKED: dict[Checked, str] = {
    "grammar": "by the grammar",
    "end": "checked at the end; what breaks it is generated again or left out of the result",
    "": "",
}


@dataclass(frozen=True, slots=True)
class ReportRow:
    """What becomes of one keyword. pointer: the JSON Pointer of the keyword in the schema as given.

    checked: for a model's answer, whether the grammar keeps to it token by token, or the finished answer is checked; "" for advisory.
    """

    pointer: str
    keyword: str
    status: KeywordStatus
    note: str = ""
    checked: Checked = ""


@dataclass(frozen=True, slots=True)
class SchemaReport:
    """One row per constraint; titles, descriptions and other annotations constrain nothing and are only counted (`hints`)."""

    rows: tuple[ReportRow, ...] = ()
    refused: tuple[Refusal, ...] = ()
    hints: int = 0
    notes: tuple[str, ...] = field(default=())

    @property
    def accepted(self) -> bool:
        return not self.refused

    def count(self, status: KeywordStatus) -> int:
        return sum(row.status == status for row in self.rows)

    def to_dict(self) -> dict[str, Json]:
        return {
            "accepted": self.accepted,
            "refused": [{"pointer": r.pointer, "reason": r.reason} for r in self.refused],
            "keywords": [
                {"pointer": r.pointer, "keyword": r.keyword, "status": r.status, "checked": r.checked, "note": r.note} for r in self.rows
            ],
            "counts": {status: self.count(status) for status in ("enforced", "rewritten", "advisory")} | {"hints": self.hints},
            "notes": list(self.notes),
        }


def render_report(report: SchemaReport) -> list[tuple[str, str, str, str]]:
    """Rows for a table: pointer, keyword, status, note; refusals come first with the status "refused"."""
    refused = [(r.pointer or "(root)", r.pointer.rsplit("/", 1)[-1], "refused", r.reason) for r in report.refused]
    return refused + [(r.pointer, r.keyword, r.status, "; ".join(filter(None, (r.note, _CHECKED[r.checked])))) for r in report.rows]


def schema_report_text(report: SchemaReport) -> str:
    """The report as plain text: one line per keyword, then the verdict."""
    table = render_report(report)
    widths = [max((len(row[i]) for row in table), default=0) for i in range(3)]
    lines = ["  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]).rstrip() for row in table]
    counts = ", ".join(f"{report.count(status)} {status}" for status in ("enforced", "rewritten", "advisory"))
    lines += [f"note: {note}" for note in report.notes]
    return "\n".join([*lines, f"{'accepted' if report.accepted else 'refused'}: {counts}, {report.hints} hints"])


def report_rows(found: Survey, rewriter: Rewriter) -> tuple[list[ReportRow], int]:
    """The rows for all places of an accepted schema, in the order of the walk, and the number of annotations."""
    rows: dict[str, ReportRow] = {}
    hints = 0
    for place in found.places:
        hints += sum(key in _HINTS or key.startswith("x-") for key in place.schema)
        for given in _place_rows(place, rewriter):
            checked = "" if given.status == "advisory" else "end" if place.tested else checked_by(given.keyword, place.schema)
            row = dataclasses.replace(given, checked=checked)
            if row.pointer not in rows or row.status == "rewritten":
                rows[row.pointer] = row
    return list(rows.values()), hints


def _place_rows(place: Place, rewriter: Rewriter) -> Iterator[ReportRow]:
    schema, draft = place.schema, rewriter.references.draft
    null_added = place.value and not place.tested and rewriter.allow_null and rewriter.wants_null(schema, place.base)
    widened = _widened(schema) if null_added else ()
    for key, value in schema.items():
        pointer = kw.join(place.pointer, key)
        if key in _HINTS or key in kw.IDENTIFIERS or key in kw.DEFINITIONS or (key.startswith("x-") and key not in kw.NULLABLE):
            continue
        if key in kw.ENFORCED and not kw.in_draft(key, draft):
            yield ReportRow(pointer, key, "advisory", f"not a keyword of the schema's draft ({draft})")
        elif draft <= 7 and "$ref" in schema and key != "$ref":
            yield ReportRow(pointer, key, "advisory", f"stands beside $ref, where draft {draft} ignores it")
        elif key in widened:
            yield ReportRow(pointer, key, "rewritten", "null is allowed as well")
        elif key == "oneOf" and rewriter.allow_null and not place.tested and rewriter.relaxes(value, place.base):
            yield ReportRow(pointer, key, "rewritten", "null is allowed inside; still at most one option of the original may match")
        else:
            row = _keyword_row(pointer, key, value)
            unlisted = [n for n in value if n not in schema.get("properties", {})] if key == "required" else []
            yield dataclasses.replace(row, note=f"not among the properties here: {', '.join(unlisted)}") if unlisted else row


def _widened(schema: dict[str, Json]) -> tuple[str, ...]:
    """The keywords that stand for the type, to which null is added."""
    own = tuple(k for k in ("type", "enum", "const") if k in schema)
    return own or tuple(k for k in ("$ref", "anyOf", "oneOf", "allOf") if k in schema)[:1]


def _keyword_row(pointer: str, key: str, value: Json) -> ReportRow:
    if key in kw.NULLABLE:
        return ReportRow(pointer, key, "rewritten", "null is added to the type" if value is True else "null is not allowed")
    if key not in kw.ENFORCED:
        return ReportRow(pointer, key, "advisory", "not a keyword that is checked")
    if key == "format" and value not in kw.FORMATS:
        return ReportRow(pointer, key, "advisory", f"the format {str(value)[:60]!r} is not known and guides the reading only")
    if key in ("$dynamicRef", "$recursiveRef"):
        return ReportRow(pointer, key, "rewritten", "followed as a plain $ref")
    if key == "$ref" and "json-schema.org/draft" in str(value):
        return ReportRow(pointer, key, "advisory", "refers to a published meta-schema, read as any value")
    if key == "allOf":
        return ReportRow(pointer, key, "rewritten", "merged into one schema; each part is still checked")
    if key == "pattern" and ecma_pattern(value) != value:
        return ReportRow(pointer, key, "rewritten", f"translated to ECMA-262: {ecma_pattern(value)}")
    if key == "patternProperties" and any(ecma_pattern(p) != p for p in value):
        return ReportRow(pointer, key, "rewritten", "translated to ECMA-262")
    return ReportRow(pointer, key, "enforced")


def checked_by(key: str, schema: dict[str, Json]) -> Checked:
    """Whether a grammar can keep to a keyword, or only the validator at the end. A very large schema gets a wider grammar."""
    value = schema[key]
    if key == "pattern":
        return "end" if _LOOKS_AROUND.search(ecma_pattern(value)) else "grammar"
    if key == "format":
        return "grammar" if value in kw.GRAMMAR_FORMATS and "pattern" not in schema else "end"
    if key == "multipleOf":
        return "grammar" if shows_in_digits(value) else "end"
    if key == "not":
        return "grammar" if isinstance(value, dict) and len(value) == 1 and set(value) <= {"const", "enum", "type"} else "end"
    return "end" if key in _AT_THE_END else "grammar"


def shows_in_digits(step: float) -> bool:
    """Whether multiples of `step` can be told by their last digits."""
    digits = Decimal(str(step)).normalize()
    unit = int(digits.scaleb(-int(digits.as_tuple().exponent))) if step > 0 else 0
    return unit > 0 and any(10**count % unit == 0 and 10**count // unit <= 200 for count in range(7)) and digits.adjusted() > -16
