"""The built-in engine: pages and a schema to values with evidence, without model weights.

    words -> lines and segments -> candidates with labels -> scores per property -> one assignment -> values

Tables are found first; what belongs to them counts less as an answer to a single property.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from pagelift.core import Box, Field, Json, PageContent, Proposal, union
from pagelift.evidence import find_dates
from pagelift.layout.candidates import Candidate, Family, page_candidates
from pagelift.layout.choices import currency_answers, form_enum, printed_enum
from pagelift.layout.features import DocumentFacts, block_heads
from pagelift.layout.forms import form_candidates
from pagelift.layout.labels import collect_labels
from pagelift.layout.lines import PageLayout, analyse_page
from pagelift.layout.lists import read_list
from pagelift.layout.marks import Answer, Mark, boolean_answers, checked_options, enum_answers, find_marks, offers_options
from pagelift.layout.places import place_candidates
from pagelift.layout.plan import plan
from pagelift.layout.query import Query, Table
from pagelift.layout.scoring import Scored, answers, score
from pagelift.layout.solve import Choice, solve
from pagelift.layout.tables import Row, TableResult, find_tables
from pagelift.layout.values import Locale, infer_locale, plain, read_value
from pagelift.layout.weights import FAMILIES, FAMILIES_OF_ONE
from pagelift.schema import Schema

FLAT_PAGES = 12
"""Single values are looked for on so many first pages and on the last one."""

_PERSONS = frozenset({"guest", "patient", "employee", "student", "account_holder", "insured", "passenger", "tenant"})
_SALUTATION = re.compile(r"^(?:Herrn?|Frau|Sig\.(?:ra|na)?|Signora?|Mme|Mlle|Monsieur|Madame|Sra?\.|Dhr\.|Mevr\.)\s+(?=\S+\s\S)")
_UNNAMED = 0.5
"""What an answer to an optional property loses when nothing but its place speaks for it."""
_ANY, _REQUIRED, _OPTIONAL = -0.2, 0.45, 0.85
"""Scores below which the document's own date, a required and an optional property stay null."""


@dataclass(slots=True, eq=False)
class _Run:
    """Everything one extraction works on. data: nested, keyed by property names."""

    schema: Schema
    pages: list[PageLayout]
    locale: Locale
    data: dict[str, Json] = field(default_factory=dict)
    fields: dict[str, Field] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def extract_pages(contents: Sequence[PageContent], schema: Schema) -> Proposal:
    """Read what the schema asks for from the words of a document's pages.

    contents: the pages in order. Returns the values found, with evidence for each property, found or not.
    """
    queries, tables = plan(schema.root)
    pages = [analyse_page(c) for c in contents]
    run = _Run(schema, pages, infer_locale(pages, queries))
    flat_pages = pages if len(pages) <= FLAT_PAGES + 1 else [*pages[:FLAT_PAGES], pages[-1]]
    found = find_tables(pages, tables, run.locale)
    in_tables = frozenset(id(t) for result in found for t in result.row_tokens)
    _read_scalars(run, queries, flat_pages, in_tables)
    for table, result in zip(tables, found, strict=True):
        _store_rows(run, table, result)
    root = [*(q.path for q in queries), *(t.path for t in tables)] == [()]
    return Proposal(
        run.data.get("", None) if root else run.data, run.fields, tuple(run.warnings), {"words": sum(len(c.words) for c in contents)}
    )


def _read_scalars(run: _Run, queries: Sequence[Query], pages: Sequence[PageLayout], in_tables: frozenset[int]) -> None:
    candidates = _candidates(pages, run.locale, queries)
    fields = sum(f.kind == "text" for p in pages for f in p.content.form_fields)
    heads = frozenset(h for p in pages for h in block_heads(p))
    facts = DocumentFacts(
        _amounts(candidates), len(pages), form=fields >= 3, table_tokens=in_tables, block_heads=heads, distinct=_distinct(candidates)
    )
    marks = [m for p in pages for m in find_marks(p)]
    choices, taken = [], set[int]()
    for query in queries:
        if query.many:
            if ticked := checked_options(query, marks):
                _store_answers(run, query, ticked)
            else:
                _store_list(run, query, read_list(query, candidates, run.locale, facts))
        elif query.kind in ("enum", "boolean", "currency"):
            answer = _best_answer(run, query, pages, marks, candidates, facts)
            taken |= {id(w) for w in answer.words} if answer and query.kind == "enum" else set()
            _store_answer(run, query, answer)
        else:
            options = [score(query, c, facts) for c in candidates if answers(query, c)]
            threshold = _threshold(query)
            for option in options if threshold == _OPTIONAL else ():
                option.score -= 0.0 if _is_named(option) else _UNNAMED
            choices.append(Choice(query, options, threshold))
    for choice in choices:
        choice.options = [o for o in choice.options if not taken.issuperset(map(id, o.candidate.words)) or not o.candidate.words]
    solve(choices)
    for choice in choices:
        _store_choice(run, choice)


def _candidates(pages: Sequence[PageLayout], locale: Locale, queries: Sequence[Query]) -> list[Candidate]:
    """Everything on the pages that could answer one of the queries, with its labels."""
    families = {"text", "number", *(family for q in queries for family in FAMILIES[q.kind])}
    found: list[Candidate] = []
    for page in pages:
        printed = [c for c in page_candidates(page, locale) if c.family in families]
        for candidate in printed:
            candidate.labels = collect_labels(candidate)
        found += printed + form_candidates(page, locale)
        for segment in page.segments if "place" in families else ():
            for part, candidate in place_candidates(segment):
                candidate.part, candidate.labels = part, collect_labels(candidate)
                found.append(candidate)
    return found


def _amounts(candidates: Sequence[Candidate]) -> list[float]:
    """Distinct money amounts of the document, largest first."""
    numbers = [c.number for c in candidates if c.number is not None and not c.number.percent]
    return sorted({abs(float(n.value)) for n in numbers if n.decimals == 2 or n.currency}, reverse=True)


def _distinct(candidates: Sequence[Candidate]) -> dict[Family, int]:
    values: dict[Family, set[str]] = {}
    for candidate in candidates:
        if candidate.family in FAMILIES_OF_ONE:
            values.setdefault(candidate.family, set()).add(plain(candidate.text))
    return {family: len(texts) for family, texts in values.items()}


def _threshold(query: Query) -> float:
    if query.principal:
        return _ANY
    if query.bound or query.role in ("owner", "subject"):
        return _REQUIRED
    optional = not query.node.required or re.search(r"\bnull\b|\bif (?:any|present|stated|given)\b|optional", query.description)
    return _OPTIONAL if optional else _REQUIRED


def _is_named(option: Scored) -> bool:
    """Whether something but its place says that a value answers: its label, a heading, or its own form."""
    seen = option.features
    typed = any(seen.get(k) for k in ("shape", "digits", "typed", "form", "picture", "parts_found"))
    return option.label >= 0.35 or option.features["context"] >= 0.5 or typed


def _best_answer(
    run: _Run, query: Query, pages: Sequence[PageLayout], marks: Sequence[Mark], candidates: Sequence[Candidate], facts: DocumentFacts
) -> Answer | None:
    if query.kind == "boolean":
        found = boolean_answers(query, marks)
    elif query.kind == "enum":
        found = enum_answers(query, marks) or form_enum(query, candidates)
        if not found and not offers_options(query, marks):
            found = printed_enum(query, pages)
    else:
        texts = [score(query, c, facts) for c in candidates if c.family == "text"]
        found = currency_answers(pages, run.locale, texts)
    return max(found, key=lambda a: a.score, default=None)


def _store_answer(run: _Run, query: Query, answer: Answer | None) -> None:
    if answer is None:
        _put(run, query, Field(query.pointer, None, "absent", confidence=0.5, reason="nothing on the page answers it"))
        return
    confidence = _sigmoid(2 * (answer.score - 0.5))
    evidence = Field(query.pointer, answer.value, "found", answer.raw, answer.page, answer.box, (answer.box,), confidence, answer.reason)
    _put(run, query, evidence)


def _store_choice(run: _Run, choice: Choice) -> None:
    query, pick = choice.query, choice.pick
    if pick is None or not pick.candidate.text:
        best = max((o.score for o in choice.options), default=-1.0)
        reason = (
            "the form field is blank"
            if pick
            else "no value with a matching label"
            if choice.options
            else "no value of this type on the page"
        )
        confidence = 0.95 if pick else _sigmoid(2 * (choice.threshold - best))
        _put(run, query, Field(query.pointer, None, "absent", confidence=confidence, reason=reason))
        return
    value, raw = _candidate_value(query, pick.candidate, run.locale)
    evidence = 1.2 * (pick.score - choice.threshold) + 0.8 * choice.margin - (0.6 if pick.label > 0.3 else 1.4)
    confidence = _sigmoid(evidence)
    words = pick.candidate.words
    confidence *= min((w.confidence for w in words), default=1.0)
    box, boxes = _boxes(pick.candidate)
    page = pick.candidate.page.number
    if value is None:
        _put(
            run,
            query,
            Field(query.pointer, None, "unreadable", raw, page, box, boxes, confidence, "printed, but not readable as the type asked for"),
        )
        return
    _put(run, query, Field(query.pointer, value, "found", raw, page, box, boxes, confidence))


def _candidate_value(query: Query, candidate: Candidate, locale: Locale) -> tuple[Json | None, str]:
    raw = candidate.text
    if candidate.number is not None and query.kind in ("number", "percent"):
        if query.node.types == ("integer",):
            return read_value(query, raw, locale), raw
        return candidate.number.as_json(), raw
    if candidate.iso is not None and query.kind in ("date", "datetime"):
        if query.kind == "datetime":
            return read_value(query, candidate.segment.text, locale), raw
        span = next(find_dates(raw, query.order), None) if query.order and candidate.ambiguous else None
        return (span.iso() if span else candidate.iso), raw
    if query.kind == "name" and (query.label | query.parents.label) & _PERSONS:
        return read_value(query, _SALUTATION.sub("", raw), locale), raw
    return read_value(query, raw, locale), raw


def _boxes(candidate: Candidate) -> tuple[Box | None, tuple[Box, ...]]:
    words = candidate.words
    if not words:
        return None, ()
    by_line = [[t.word.box for t in s.tokens] for s in candidate.lines] or [[w.box for w in words]]
    boxes = tuple(map(union, by_line))
    return union(boxes), boxes


def _store_list(run: _Run, query: Query, items: list[tuple[Json, Candidate]]) -> None:
    values = [value for value, _ in items]
    _set(run.data, query.path, values)
    if not items:
        run.fields[query.pointer] = Field(query.pointer, [], "absent", confidence=0.5, reason="no list with a matching label")
    for i, (value, candidate) in enumerate(items):
        pointer = f"{query.pointer}/{i}"
        box, boxes = _boxes(candidate)
        run.fields[pointer] = Field(pointer, value, "found", candidate.text, candidate.page.number, box, boxes, 0.6)


def _store_rows(run: _Run, table: Table, result: TableResult) -> None:
    _set(run.data, table.path, [_row_value(run, row, f"{table.pointer}/{i}") for i, row in enumerate(result.rows)])
    if not result.rows:
        run.fields[table.pointer] = Field(table.pointer, [], "absent", confidence=0.5, reason=result.reason)


def _row_value(run: _Run, row: Row, pointer: str) -> dict[str, Json]:
    """One entry of an array with the entries nested in it; their evidence goes to `run.fields`."""
    entry: dict[str, Json] = {}
    for path, cell in row.cells.items():
        _set(entry, path, cell.value)
        at = pointer + "".join("/" + p.replace("~", "~0").replace("/", "~1") for p in path)
        words = [t.word for t in cell.tokens]
        box = union(w.box for w in words) if words else None
        sure = cell.confidence * min((w.confidence for w in words), default=1.0)
        run.fields[at] = Field(at, cell.value, "found", cell.text, cell.page.number, box, (box,) if box else (), sure)
    for path, rows in row.nested.items():
        at = pointer + "".join("/" + p for p in path)
        _set(entry, path, [_row_value(run, inner, f"{at}/{i}") for i, inner in enumerate(rows)])
    return entry


def _store_answers(run: _Run, query: Query, found: Sequence[Answer]) -> None:
    """An array of scalars from check boxes."""
    _set(run.data, query.path, [a.value for a in found])
    for i, a in enumerate(found):
        pointer = f"{query.pointer}/{i}"
        run.fields[pointer] = Field(pointer, a.value, "found", a.raw, a.page, a.box, (a.box,), 0.8, a.reason)


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, x))))


def _put(run: _Run, query: Query, evidence: Field) -> None:
    run.fields[query.pointer] = evidence
    _set(run.data, query.path, evidence.value)


def _set(data: dict[str, Json], path: Sequence[str], value: Json) -> None:
    for key in path[:-1]:
        data = data.setdefault(key, {})
    data[path[-1] if path else ""] = value
