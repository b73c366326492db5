"""What stands beside a candidate, and how well it names a query."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from pagelift.layout import lexicon
from pagelift.layout.candidates import Candidate
from pagelift.layout.lines import Segment, is_numeric
from pagelift.layout.query import Query, Terms
from pagelift.layout.values import plain

_OTHER_TYPES: dict[str, frozenset[str]] = {
    "number": frozenset({"number", "date", "name", "phone"}),
    "date": frozenset({"number", "amount", "name"}),
    "id": frozenset({"date", "amount"}),
    "name": frozenset({"date", "number", "amount", "phone", "email", "time"}),
    "address": frozenset({"date", "number", "email", "phone"}),
}
"""Words of a label that promise a value of another kind."""
CONNECTOR = re.compile(r"[\W_]*(?:vom|von|dated|of|from|du|le|am|on|the|date|del|van|den|di|in|den|à|-)?[\W_]*", re.I)
_WITHOUT_TAX = re.compile(r"\bexcl|\bex\.? |\bohne\b|\bhors\b|\bnetto\b|\bnet of\b|\bsans\b|\bzzgl|\bbefore\b", re.I)
LABEL_LENGTH = 80
"""Only the end of a longer text can be a label."""


def collect_labels(candidate: Candidate) -> list[tuple[str, float, str]]:
    """Texts that may label the candidate: (text, weight by relation and distance, relation); the same for all at one place."""
    place = candidate.start, candidate.end, candidate.before, candidate.family == "number", bool(candidate.lines)
    known = candidate.segment.labels
    if place not in known:
        known[place] = list(_collect(candidate))
    return known[place]


def _collect(candidate: Candidate) -> Iterator[tuple[str, float, str]]:
    segment, unit = candidate.segment, candidate.page.unit
    inline = _inline(candidate)
    if inline:
        yield inline, 1.0, "inline"
    left = segment.line_segments[: segment.index]
    if candidate.family == "number" and candidate.end < len(segment.tokens):
        yield " ".join(t.text for t in segment.tokens[candidate.end : candidate.end + 2]), 0.75, "after"
    named = next((s for s in reversed(left) if not is_numeric(s.text)), None)
    labelled = bool(re.search(r"[^\W\d_]{3}", inline))
    if named is not None:
        nearness = max(0.6, 1 - (segment.box.x0 - named.box.x1) / unit / 80)
        labelled = labelled or (nearness > 0.6 and reads_as_label(named.text))
        yield named.text, nearness, "left"
        if segment.index > 1 and left[0] is not named:
            yield left[0].text, 0.8, "row"
    box = candidate.box if (candidate.start or candidate.end < len(segment.tokens)) and not candidate.lines else segment.box
    above = [s for s in segment.above if min(box.x1, s.box.x1) > max(box.x0, s.box.x0)] or segment.above
    for k, other in enumerate(above):
        gap = (segment.box.top - other.box.bottom) / unit
        strength = (
            (0.9 if k == 0 else 0.6) * (0.6 if labelled else 1.0) * (0.6 if len(other.tokens) > 6 and not other.text.endswith(":") else 1.0)
        )
        yield _column_part(other, box.center_x), strength * max(0.2, 1 - gap / 14), "above"
    yield from _grid(candidate, inline or (named.text if named is not None else ""))
    own = inline if re.search(r"[^\W\d_]{2}", inline) else named.text if named is not None else ""
    head = _block_heading(segment)
    if head is not None:
        yield head.text, 0.4 if own else 0.75, "heading"
        if own:
            yield f"{head.text} {own}", 0.95, "heading"
    heading = _row_heading(segment)
    if heading is not None and heading is not head:
        yield heading.text, 0.4 if own else 0.75, "heading"
        if own:
            yield f"{heading.text} {own}", 0.85, "heading"
    if not inline and named is None and segment.below and not (above and segment.box.top - above[0].box.bottom < 2 * unit):
        below = segment.below[0]
        if below.box.top - segment.box.bottom < 1.2 * unit and below.height < segment.height * 1.02:
            yield below.text, 0.5, "below"


def reads_as_label(text: str) -> bool:
    """Whether a text is made to name something: it ends with a colon or has label words only."""
    return text.endswith(":") or lexicon.only_label_words(text)


def _grid(candidate: Candidate, row_label: str) -> Iterator[tuple[str, float, str]]:
    """The column's heading, however far above, and the row's label together with it ("Gross pay" under "Year to date")."""
    segment = candidate.segment
    if candidate.family != "number" or segment.index == 0:
        return
    for line in reversed(segment.page.lines[max(0, segment.line - 60) : segment.line]):
        over = next((s for s in line.segments if s.box.overlap_x(candidate.box) > 0 and not is_numeric(s.text)), None)
        if over is not None:
            heading = _column_part(over, candidate.box.center_x)
            if len(line.segments) > 1 and row_label and len(over.tokens) <= 6:
                yield f"{row_label} {heading}", 0.95, "grid"
            return


def _inline(candidate: Candidate) -> str:
    """The words left of the candidate in its own segment, back to the value before it."""
    tokens = [t.text for t in candidate.segment.tokens[max(0, candidate.start - 8) : candidate.start]]
    text = " ".join(filter(None, [*tokens, candidate.before])).strip()
    if not text:
        return ""
    last = re.split(r"(?<=\d)[\s,;]+(?=[^\W\d_])", text)[-1]
    return text if CONNECTOR.fullmatch(last) else last


def _column_part(segment: Segment, center_x: float) -> str:
    """Of a long text above, the part that stands over the candidate."""
    if len(segment.tokens) <= 6:
        return segment.text
    nearest = sorted(segment.tokens, key=lambda t: abs(t.box.center_x - center_x))[:5]
    return " ".join(t.text for t in sorted(nearest, key=lambda t: t.box.x0))


def _block_heading(segment: Segment) -> Segment | None:
    """The caption over the column of text that a segment stands in: label words at the same left edge, without a wide gap."""
    current, unit = segment, segment.page.unit
    for _ in range(8):
        over = next(
            (s for s in current.above if abs(s.box.x0 - segment.box.x0) < unit and current.box.top - s.box.bottom < 1.5 * unit), None
        )
        if over is None:
            return None
        if len(over.tokens) <= 4 and reads_as_label(over.text):
            return over
        current = over
    return None


def _row_heading(segment: Segment) -> Segment | None:
    """The heading of a group of lines: the nearest line above that stands alone, not further right, bolder or with a colon."""
    page = segment.page
    label = segment.line_segments[0]
    for line in reversed(page.lines[max(0, segment.line - 8) : segment.line]):
        first = line.segments[0]
        alone = len(line.segments) == 1 and len(first.tokens) <= 6 and not re.search(r"\d", first.text)
        if first.height > 1.7 * page.unit:
            return None  # the document's title names no group
        if (
            alone
            and first.box.x0 <= segment.box.x0 + page.unit
            and (first.bold > 0.5 > label.bold or first.text.endswith(":") or first.height > 1.15 * max(label.height, page.unit))
        ):
            return first
    return None


@functools.lru_cache(200_000)
def _match(terms: Terms, text: str) -> float:
    text = text[-LABEL_LENGTH:]
    concepts = lexicon.bag(text)
    if not concepts:
        return 0.0
    total = lexicon.weight(concepts)
    strong = any(lexicon.GENERIC.get(c, 1.0) == 1.0 for c in concepts & terms.label)
    foreign = any(lexicon.GENERIC.get(c, 1.0) == 1.0 for c in (concepts & lexicon.concept_names()) - terms.label - terms.hint)
    wanted = any(lexicon.GENERIC.get(c, 1.0) == 1.0 for c in terms.label)
    named, hinted = lexicon.weight(concepts & terms.label), lexicon.weight(concepts & terms.hint)
    recall = named / max(0.4, lexicon.weight(terms.label))
    precision = min(1.0, (named + 0.6 * hinted) / total)
    score = recall * (0.5 + 0.5 * precision)
    score += 0.35 * len(concepts & terms.hint) / max(1, len(terms.hint)) * (0.3 + 0.7 * precision)
    if wanted and foreign and not strong:
        score *= 0.3  # the label of another property of the same type
    for rank, stand_in in enumerate(terms.fallback):
        score = max(score, (0.65 - 0.08 * rank) * lexicon.weight(concepts & stand_in) / max(total, lexicon.weight(stand_in)))
    if terms.stems:
        score += 0.3 * len(lexicon.stems(text) & terms.stems) / len(terms.stems) * (0.5 + 0.5 * precision)
        literal = bool(lexicon.stems(text) & terms.stems)
        return score - (0.2 if literal else 0.6) * lexicon.weight(concepts & terms.against) / total
    return score - 0.6 * lexicon.weight(concepts & terms.against) / total


def match_label(query: Query, text: str, ranged: bool = False) -> float:
    """How well a text names the query: about 1 for its name and nothing else, 0 for nothing in common, negative if it is ruled out.

    ranged: the candidate's place in a range of dates already says whether it is the first or the last.
    """
    score = _match(query.range_terms if ranged else query.terms, text)
    if score > 0 and query.label & {"total", "gross"} and not query.label & {"net", "tax"} and _is_part_of_total(text):
        score -= 0.4
    if score > 0 and lexicon.bag(text) & _OTHER_TYPES.get(query.kind, frozenset()) - query.label - query.hint:
        score -= 0.35
    if query.parents.label:
        own = lexicon.weight(query.label)
        score = max(score * (0.5 + 0.5 * min(1.0, own)), _match(query.full_terms, text))
    if score > 0.2 and plain(text) == plain(query.words):
        score += 0.1
    return score


@functools.lru_cache(50_000)
def _is_part_of_total(text: str) -> bool:
    """Whether a label says that its amount is without the tax, or is the tax itself ("GST 6% included in total")."""
    first = next((lexicon.word_concepts(w) for w in text.split() if lexicon.word_concepts(w)), frozenset())
    return "tax" in first or bool(_WITHOUT_TAX.search(text))


def match_context(query: Query, text: str) -> float:
    """How well a text names the parents of the query ("Bill to" for buyer.name)."""
    return _match(query.parents, text) if query.parents.label else 0.0
