"""How well a candidate answers a query: the sum of its features times their weights."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pagelift.layout import lexicon
from pagelift.layout.candidates import Candidate
from pagelift.layout.features import ORGANISATION, DocumentFacts, features
from pagelift.layout.labels import match_context, match_label, reads_as_label
from pagelift.layout.query import Query
from pagelift.layout.weights import FAMILIES, WEIGHTS, group_of

_NOT_ID = re.compile(r"\b(?:vom|du|of|from|dated|date|und|and|von|am|le|to|bis)\b", re.I)


@dataclass(slots=True, eq=False)
class Scored:
    """label: the best match of a label text, without which an answer is hardly ever right; named_by: that text.
    features: what the score sums."""

    candidate: Candidate
    score: float
    label: float
    features: dict[str, float]
    named_by: str = ""


def answers(query: Query, candidate: Candidate) -> bool:
    """Whether a candidate is of a kind that can answer the query at all."""
    if candidate.is_form and not candidate.text:
        return bool(FAMILIES[query.kind])  # a blank field answers that there is no value
    if candidate.family not in FAMILIES[query.kind]:
        return False
    if query.kind == "place":
        return bool(candidate.part == query.extra["part"] or (candidate.family == "text" and candidate.text and len(candidate.text) < 50))
    if query.kind in ("number", "percent"):
        whole = candidate.number is not None and candidate.number.value == candidate.number.value.to_integral_value()
        return candidate.number is not None and (whole or query.node.types != ("integer",))
    if query.kind == "id" and candidate.text:
        text = candidate.text
        return len(text) < 30 and bool(re.search(r"\d", text) or candidate.is_form) and not _NOT_ID.search(text)
    if candidate.family == "text" and candidate.lines:
        return query.kind == "address"
    return bool(candidate.text)


def score(query: Query, candidate: Candidate, facts: DocumentFacts) -> Scored:
    """The weighted sum of all features of a candidate."""
    label, context, named_by = best_labels(query, candidate)
    if query.kind == "place" and candidate.family == "text" and not reads_as_label(named_by):
        label = 0.0  # "Main Street" over a city does not ask for a street
    seen = {"label": label, "context": context} | features(query, candidate, facts, label)
    common, own = WEIGHTS["*"], WEIGHTS[group_of(query.kind)]
    total = sum([value * (common.get(name) or own.get(name, 0.0)) for name, value in seen.items() if value])
    return Scored(candidate, total, label, seen, named_by)


def best_labels(query: Query, candidate: Candidate) -> tuple[float, float, str]:
    """The best label match, the best match of the parents' names, and the text of the best label of a candidate."""
    label = context = 0.0
    named_by = ""
    ranged = bool(query.bound) and candidate.range_part == (1 if query.bound == "first" else 2)
    for text, weight, _ in candidate.labels:
        match = weight * match_label(query, text, ranged)
        if match > label and _is_value(query, text):
            match *= 0.4
        if match > label:
            label, named_by = match, text
        if query.parents.label:
            context = max(context, weight * match_context(query, text))
    return label, context, named_by


def _is_value(query: Query, text: str) -> bool:
    """Whether a text beside a name or an address is itself a name or an address, and no label."""
    if text.endswith(":") or lexicon.only_label_words(text):
        return False
    return bool(query.kind == "name" and ORGANISATION.search(text)) or bool(query.kind == "address" and re.search(r"\d", text))
