"""Tables without headings: lists of items with amounts, programmes by time, entries by date.

A value that every entry has (an amount at one right edge, a date or a time at one edge) marks the rows; the text beside it
is the item.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pagelift.evidence.dates import MONTHS
from pagelift.layout import lexicon
from pagelift.layout.lines import Line, PageLayout, Segment, Token
from pagelift.layout.query import Query, Table, split_name
from pagelift.layout.table_columns import Column, kind_of
from pagelift.layout.table_counts import count_below, counted_price, name_above, split_count
from pagelift.layout.table_grid import Entry, Grid, ImplicitRegion, implicit_grid
from pagelift.layout.table_headers import FAMILIES
from pagelift.layout.table_rows import is_stated_total, is_total
from pagelift.layout.table_shared import Answers, is_amount, is_price, is_quantity

_ITEMS = re.compile(
    r"item|line|entr|position|charge|transaction|booking|product|service|purchase|article|row|expense|session|order"
    r"|posten|zeile|artikel|buchung|produkt|ligne|produit|achat|regel|boeking|aankoop|righ[ae]|voci|articol|prodott|l[ií]nea|producto|compra",
    re.I,
)
"""Names of arrays that mean the entries of the document's one list."""
Sort = Literal["amount", "period"]
_AMOUNT = re.compile(
    r"[-–+]?\s?[$€£₹]?\s?[-–]?\d[\d.,'’]*[.,]\d\d(?:\s?[€$£]|\s?[A-Z]{1,3})?-?|[$€£₹]\s?\d[\d.,]*|(?:Rs\.?|RM)\s?\d[\d.,]*"
)
_MONTH = "|".join(sorted({m[:3] for m in MONTHS}))
_CLOCK = r"\d{1,2}[.:h]\d\d(?:\s?[ap]\.?m\.?|\s?Uhr|\s?h)?|\d{1,2}\s?[ap]m"
_MOMENT = rf"(?:{_CLOCK}|(?:\d{{1,2}}[./])?\d{{1,2}}[./](?:19|20)\d\d|(?:(?:{_MONTH})\w*\.?\s)?(?:19|20)\d\d)"
_NOW = r"present|today|now|current|date|heute|jetzt|aujourd.?hui|presente|oggi|actualidad|heden|ongoing"
_PERIOD = re.compile(
    rf"(?:(?:since|from|seit|depuis|de|dal|desde)\s)?{_MOMENT}(?:\s?(?:[-–—]|to|bis|à|au|al|hasta)\s?(?:{_MOMENT}|{_NOW})|\s?[-–—])?", re.I
)


@dataclass(slots=True, eq=False)
class Mark:
    """The value of one entry. tokens: its words, at the left or the right end of the line. beside: the item's words, in the
    same line or in the one above. count: the words of a count with a price per unit, in the same line or in the one below."""

    page: PageLayout
    line: int
    tokens: list[Token]
    sort: Sort
    beside: list[Token]
    count: list[Token] = field(default_factory=list)

    @property
    def left(self) -> float:
        return self.tokens[0].box.x0

    @property
    def right(self) -> float:
        return self.tokens[-1].box.x1


def find_list(pages: Sequence[PageLayout], table: Table) -> Grid | None:
    """Entries that are marked by amounts or by dates and times, as the item's properties ask for; None below two entries.

    A heading that is the array's name limits the search; without one only names or descriptions like "items" are served.
    """
    queries = table.columns
    name = table.path[-1] if table.path else "items"
    priced = any(is_amount(q) or is_price(q) or is_quantity(q) for q in queries)
    moments = [i for i, q in enumerate(queries) if q.kind in ("date", "datetime", "time") or q.label & {"start", "end", "time"}]
    text = next((i for i, q in enumerate(queries) if q.kind in ("text", "name") and i not in moments), None)
    if text is None or not (priced or moments):
        return None
    sort: Sort = "amount" if priced else "period"
    lines = [(p, i) for p in pages for i in range(len(p.lines))]
    section = _section(lines, lexicon.bag(split_name(name)))
    if not section and not _ITEMS.search(f"{name} {table.node.description}"):
        return None
    runs = list(_runs(section or lines, sort))
    best = max(runs, key=len, default=[])
    if len(best) < 2:
        return None
    return implicit_grid(_region(best, queries, section or lines, text), queries)


def _section(lines: list[tuple[PageLayout, int]], names: frozenset[str]) -> list[tuple[PageLayout, int]]:
    """The lines under a heading that is the array's name, to the next heading of the same look; empty when there is none."""
    for start, (page, i) in enumerate(lines):
        heading = _lone(page.lines[i])
        if heading is None or not lexicon.bag(heading.text) & names or not lexicon.bag(heading.text) <= names | _HEADING_COMPANIONS:
            continue
        end = len(lines)
        for number in range(start + 2, len(lines)):
            other = next((s for s in lines[number][0].lines[lines[number][1]].segments if _same_look(s, heading)), None)
            if other is not None:
                end = number
                break
        if end > start + 2:
            return lines[start + 1 : end]
    return []


_ORGANISATIONS = frozenset({"company", "employer", "university", "institut", "institution", "seller", "bank"})
_ORGANISATION = re.compile(
    r"\b(GmbH|AG|KG|e\.\s?V\.|Inc|LLC|Ltd|Limited|S\.?A\.?S?|SARL|B\.?V|Corp|Company|Co\.|Group|Hospital|Infirmary|Universit|Hochschul|Gymnasium|School|College|Institut|Bank|Verein|Lyc[ée]e|Clinic|Klinik|Akademie|Academy)"
)
_HEADING_COMPANIONS = frozenset({"history", "histor", "work", "profession", "professi", "detail", "details", "list", "lists"})


def _lone(line: Line) -> Segment | None:
    words = [s for s in line.segments if re.search(r"[^\W\d_]{3}", s.text)]
    return next((s for s in words if len(s.tokens) <= 4 and not re.search(r"\d", s.text)), None)


def _same_look(seg: Segment, heading: Segment) -> bool:
    return (
        len(seg.tokens) <= 4
        and abs(seg.height - heading.height) < 0.12 * heading.height
        and (seg.bold > 0.5) == (heading.bold > 0.5)
        and seg.text.isupper() == heading.text.isupper()
        and abs(seg.box.x0 - heading.box.x0) < 0.5 * seg.page.unit
        and not re.search(r"\d", seg.text)
        and (heading.bold > 0.5 or heading.text.isupper() or heading.height > 1.1 * seg.page.unit or _is_known(seg))
    )


def _is_known(seg: Segment) -> bool:
    """Whether a phrase alone in its line consists of business terms: a heading even where it is set like the text."""
    concepts = lexicon.bag(seg.text)
    return len(seg.line_segments) == 1 and bool(concepts) and concepts <= lexicon.concept_names()


def _runs(lines: Sequence[tuple[PageLayout, int]], sort: Sort) -> Iterator[list[Mark]]:
    """Marks at one edge without a total between them."""
    marks: list[list[Mark]] = [[]]
    last: tuple[PageLayout, int] | None = None
    for page, i in lines:
        line = page.lines[i]
        if sort == "amount" and is_total(line.segments):
            if is_stated_total(line.segments):
                marks.append([])
            continue
        mark = _amount_mark(page, i) if sort == "amount" else _period_mark(page, i)
        if mark is None:
            continue
        if last and last[0] is page and line.box.top - page.lines[last[1]].box.bottom > 8 * page.unit:
            marks.append([])
        marks[-1].append(mark)
        last = (page, i)
    for run in marks:
        for same in _by_edge(run):
            yield _outer(same)


def _outer(run: list[Mark]) -> list[Mark]:
    """The marks without sub-lines: those that are set in and say the same under every entry."""
    texts = [(m, *_words_beside(m)) for m in run]
    left = min((x0 for _, x0, _ in texts), default=0.0)
    counts = Counter(text for _, _, text in texts)
    kept = [m for m, x0, text in texts if x0 < left + 0.6 * m.page.unit or counts[text] == 1]
    return kept if len(kept) > 1 else run


def _words_beside(mark: Mark) -> tuple[float, str]:
    """Left edge and text of what stands beside a mark."""
    return (mark.beside[0].box.x0, " ".join(t.text for t in mark.beside)) if mark.beside else (mark.left, "")


def _by_edge(run: list[Mark]) -> Iterator[list[Mark]]:
    """The marks of a run that stand at the most frequent right edge, and those at the most frequent left edge."""
    for edge in ("right", "left"):
        best: list[Mark] = []
        for mark in run:
            same = [m for m in run if abs(getattr(m, edge) - getattr(mark, edge)) < 0.9 * mark.page.unit]
            if len(same) > len(best):
                best = same
        if best:
            yield best


def _amount_mark(page: PageLayout, index: int) -> Mark | None:
    """The amount at the end of a line that also has words before it, or a count with a price and words in the line above."""
    tokens = page.lines[index].tokens
    if counted_price(" ".join(t.text for t in tokens)):
        return None
    for size in (1, 2, 3):
        end = tokens[-size:]
        if not _AMOUNT.fullmatch(" ".join(t.text for t in end)):
            continue
        before, count = split_count(tokens[:-size])
        if count and not before:
            before = name_above(page, index)
        if any(re.search(r"[^\W\d_]{2}", t.text) for t in before):
            return Mark(page, index, end, "amount", before, count or count_below(page, index))
    return None


def _period_mark(page: PageLayout, index: int) -> Mark | None:
    """The date, time or period at the beginning or at the end of a line, with or without words beside it."""
    tokens = page.lines[index].tokens
    for size in range(min(8, len(tokens)), 0, -1):
        for end, rest in ((tokens[:size], tokens[size:]), (tokens[-size:], tokens[:-size])):
            text = " ".join(t.text for t in end).strip(" ,;:|")
            if re.search(r"\d", text) and _PERIOD.fullmatch(text):
                return Mark(page, index, end, "period", rest)
    return None


def _lines_of(run: list[Mark], within: Sequence[tuple[PageLayout, int]], more: int) -> list[tuple[PageLayout, int]]:
    """The lines from the first mark of every page to the last, and a few more below it."""
    absorbed = {(id(m.page), t) for m in run for t in _absorbed(m)}
    found = []
    for page in dict.fromkeys(m.page for m in run):
        numbers = [m.line for m in run if m.page is page]
        found += [(p, i) for p, i in within if p is page and min(numbers) <= i < max(numbers) + more]
    return [(p, i) for p, i in found if (id(p), i) not in absorbed]


def _absorbed(mark: Mark) -> Iterator[int]:
    """The numbers of lines that only hold the words beside a mark, or its count."""
    for tokens, other in ((mark.beside, mark.line - 1), (mark.count, mark.line + 1)):
        if tokens and 0 <= other < len(mark.page.lines) and any(tokens[0] is t for t in mark.page.lines[other].tokens):
            yield other


def _region(run: list[Mark], queries: Sequence[Query], within: Sequence[tuple[PageLayout, int]], text: int) -> ImplicitRegion:
    """Columns and answers of a list from its marks."""
    unit, sort = run[0].page.unit, run[0].sort
    lines = _lines_of(run, within, 3 if sort == "period" else 1)
    left, right = min(m.left for m in run), max(m.right for m in run)
    beside = [t for m in run for t in m.beside]
    mark_first = bool(beside) and sum(t.box.x0 > left for t in beside) > 0.5 * len(beside)
    key = Column(None, left, right)
    key.kinds.update(["number" if sort == "amount" else "period"] * len(run))
    if mark_first:
        inner = [t.box.x0 for t in beside] or [right + unit]
        words = Column(None, min(inner), max(t.box.x1 for t in beside) if beside else right + 20 * unit)
        columns, key_at, text_at = [key, words], 0, 1
        if sort == "period" and (behind := _column_behind(run)):
            words.x1 = behind.x0 - 0.5 * unit
            columns.append(behind)
    else:
        words = Column(None, min((t.box.x0 for t in beside), default=left - 20 * unit), left - 0.5 * unit)
        columns, key_at, text_at = [words, key], 1, 0
    words.kinds.update(["text"] * len(run))
    middle = _numbers_between(run) if sort == "amount" and not mark_first else []
    if middle:
        words.x1 = middle[0].x0 - 0.5 * unit
        columns[1:1] = middle
        key_at += len(middle)
    counted = None
    if any(m.count for m in run):
        counted = len(columns)
        columns.append(Column(None, right + unit, right + unit))  # nothing stands there: its cells are set from the marks
    starts = {(id(m.page), m.line): Entry(m.tokens, m.beside if m.count else [], m.count) for m in run}
    region = ImplicitRegion(lines, columns, Answers(), key_at, text_at, starts, counted)
    _answer(queries, run, region, text)
    return region


def _column_behind(run: list[Mark]) -> Column | None:
    """A column of short texts to the right of the entries' text, by its left edge."""
    ends = [end for m in run if (end := m.page.lines[m.line].segments[-1]).box.x0 > m.right and len(end.tokens) < 5]
    for seg in ends:
        same = [s for s in ends if abs(s.box.x0 - seg.box.x0) < 0.8 * seg.page.unit and s.box.x0 > run[0].right + 8 * seg.page.unit]
        if len(same) >= max(2, 0.4 * len(run)):
            column = Column(None, min(s.box.x0 for s in same), max(s.box.x1 for s in same), left=seg.box.x0)
            column.kinds.update(["text"] * len(same))
            return column
    return None


def _numbers_between(run: list[Mark]) -> list[Column]:
    """Columns of numbers between the item's name and its amount, by their right edges."""
    clusters: list[list[Token]] = []
    for mark in run:
        tokens = list(mark.beside)
        while tokens and kind_of(tokens[-1].text) in ("number", "percent") and len(tokens) > 1:
            token = tokens.pop()
            near = next((c for c in clusters if abs(c[0].box.x1 - token.box.x1) < 0.8 * mark.page.unit), None)
            if near is None:
                clusters.append([token])
            else:
                near.append(token)
    columns = []
    for cluster in sorted((c for c in clusters if len(c) >= 0.5 * len(run)), key=lambda c: c[0].box.x0):
        column = Column(None, min(t.box.x0 for t in cluster), max(t.box.x1 for t in cluster), right=cluster[0].box.x1)
        column.kinds.update(kind_of(t.text) for t in cluster)
        columns.append(column)
    return columns


def _answer(queries: Sequence[Query], run: list[Mark], region: ImplicitRegion, text: int) -> None:
    """Note in the region which of its columns answers which property. text: the first property that is a text."""
    answers, columns = region.answers, region.columns
    key, text_at, counted_at = region.key, region.text, region.counted
    total = any(is_amount(q) for q in queries)
    middle = [i for i in range(len(columns)) if i not in (key, text_at) and columns[i].main_kind == "number"]
    for number, query in enumerate(queries):
        if is_amount(query):
            answers.chosen.setdefault(number, key)
        elif counted_at is not None and (is_quantity(query) or (is_price(query) and (total or any(map(is_quantity, queries))))):
            answers.chosen[number] = counted_at
            answers.parts[number] = "count" if is_quantity(query) else "each"
        elif is_price(query) and middle:
            answers.chosen[number] = middle[-1]
        elif is_price(query) and not total:
            answers.chosen.setdefault(number, key)
        elif is_quantity(query):
            if len(middle) > 1 or (middle and not any(is_price(q) for q in queries)):
                answers.chosen[number] = middle[0]
            else:
                answers.chosen[number] = text_at
                answers.parts[number] = "lead"
        elif run[0].sort == "period" and (query.label & {"start", "end"} or query.kind in ("date", "datetime", "time")):
            answers.chosen[number] = key
            answers.parts[number] = "last" if "end" in query.label else "first"
    counted = any(part == "lead" for part in answers.parts.values())
    item = next(
        (i for i, q in enumerate(queries) if q.label & FAMILIES[0] and q.kind in ("text", "name") and i not in answers.chosen), text
    )
    answers.chosen[item] = text_at
    if counted:
        answers.parts[item] = "rest"
    open_ = [i for i, q in enumerate(queries) if i not in answers.chosen and q.kind in ("text", "name")]
    if run[0].sort == "period":
        short = next((i for i in open_ if not queries[i].many), None)
        if len(columns) > 2 and short is not None:
            answers.chosen[short] = 2
            open_.remove(short)
        if open_:
            answers.chosen[open_[0]] = text_at
            answers.parts[open_[0]] = "below"
            _order_names(queries, run, item, open_[0], answers)


def _order_names(queries: Sequence[Query], run: list[Mark], first: int, second: int, answers: Answers) -> None:
    """Two names over each other, one of them of an organisation: the lines' wording tells which is which."""
    organisation = [i for i in (first, second) if queries[i].label & _ORGANISATIONS]
    if len(organisation) != 1:
        return
    upper = sum(bool(_ORGANISATION.search(_words_beside(m)[1])) for m in run)
    lower = sum(bool(_ORGANISATION.search(m.page.lines[m.line + 1].text)) for m in run if m.line + 1 < len(m.page.lines))
    other = second if organisation[0] == first else first
    if upper == lower:
        return
    above, below = (organisation[0], other) if upper > lower else (other, organisation[0])
    answers.parts.pop(above, None)
    answers.parts[below] = "below"
