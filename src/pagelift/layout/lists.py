"""Arrays of scalars: what stands in, beside or under the one label that names them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pagelift.core import Json
from pagelift.layout.candidates import Candidate
from pagelift.layout.features import DocumentFacts
from pagelift.layout.lines import Segment, block_below
from pagelift.layout.query import Query
from pagelift.layout.scoring import best_labels
from pagelift.layout.values import Locale, read_value

_SEPARATOR = re.compile(r"\s*[,;|•·]\s+|\s*[;|•·]\s*|\s+/\s+|\s+–\s+")
_BULLET = re.compile(r"^\s*(?:[•·▪◦●○■*–—-]|\d{1,2}[.)])\s+")


def read_list(query: Query, candidates: Sequence[Candidate], locale: Locale, facts: DocumentFacts) -> list[tuple[Json, Candidate]]:
    """The entries of an array of scalars with the span of each; empty when no label names the array."""
    texts = [c for c in candidates if c.family == "text" and (c.is_form or (c.text and not facts.form))]
    labelled = [(best_labels(query, c)[0], c) for c in texts]
    label, best = max(labelled, key=lambda pair: (round(pair[0], 1), *_place(pair[1])), default=(0.0, None))
    if best is None or label <= 0.55 or not best.text:
        return []
    items: list[tuple[Json, Candidate]] = []
    for line in _lines(best):
        for text in _SEPARATOR.split(_BULLET.sub("", line.text)):
            value = read_value(query, text.strip(" .,;:"), locale)
            if value not in (None, ""):
                items.append((value, line))
    return items


def _place(candidate: Candidate) -> tuple[int, float, int]:
    """Earlier on the page is more; whole segments come before parts of them."""
    return -candidate.page.number, -candidate.segment.box.top, -candidate.start


def _lines(candidate: Candidate) -> list[Candidate]:
    """The span itself, or, when its label stands above it, all lines of the block."""
    relation = max(candidate.labels, key=lambda entry: entry[1], default=("", 0.0, ""))[2]
    if candidate.is_form or (relation in ("inline", "left", "row") and candidate.start):
        return [candidate]
    lines = block_below(candidate.segment, limit=40)
    return [Candidate("text", s, 0, len(s.tokens), s.text) for s in lines if not _is_heading(s, candidate.segment)]


def _is_heading(segment: Segment, first: Segment) -> bool:
    return segment is not first and segment.bold > 0.5 > first.bold
