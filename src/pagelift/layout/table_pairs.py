"""Short lists of names with a remark each: "English - fluent", "Deutsch (Muttersprache), Englisch (C1)"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pagelift.layout import lexicon
from pagelift.layout.lines import PageLayout, Segment, Token
from pagelift.layout.query import Query

_PAIR = re.compile(r"(?P<name>[^\W\d_][^:()–—]*?)\s*(?:\((?P<inside>[^()]*)\)|(?::|\s[-–—]|[–—])\s*(?P<behind>.+))?")


@dataclass(slots=True, eq=False)
class Pair:
    """name: the first property's text. remark: the second's, None when there is none. tokens: the words of both."""

    name: str
    remark: str | None
    tokens: list[Token]
    page: PageLayout
    top: float


def find_pairs(pages: Sequence[PageLayout], queries: Sequence[Query], names: frozenset[str]) -> list[Pair]:
    """The entries under (or behind) a heading that is the array's name, for items of a name and at most one remark."""
    if not 1 <= len(queries) <= 2 or any(q.kind not in ("text", "name", "enum") or q.many for q in queries) or not names:
        return []
    for page in pages:
        for seg in page.segments:
            concepts = lexicon.bag(seg.text)
            if len(seg.tokens) > 3 or not concepts or not concepts <= names:
                continue
            parts = list(_below(seg)) or seg.line_segments[seg.index + 1 : seg.index + 2]
            pairs = [pair for part in parts for pair in _split(part)]
            if pairs and any(p.remark for p in pairs):
                return pairs
    return []


def _below(heading: Segment) -> list[Segment]:
    """The lines of the paragraph under a heading, one below the other at its left edge."""
    page = heading.page
    if len(heading.line_segments) > heading.index + 1 and heading.line_segments[heading.index + 1].box.x0 - heading.box.x1 < 12 * page.unit:
        return []  # a label with its value beside it
    found: list[Segment] = []
    last = heading
    for line in page.lines[heading.line + 1 :]:
        near = [s for s in line.segments if abs(s.box.x0 - heading.box.x0) < 2.5 * page.unit]
        if not near:
            continue
        if near[0].box.top - last.box.bottom > 1.6 * page.unit or (near[0].bold > 0.5) != (
            found[0].bold > 0.5 if found else near[0].bold > 0.5
        ):
            break
        found.append(near[0])
        last = near[0]
    return found


def _split(seg: Segment) -> list[Pair]:
    """The entries of one line, at commas and semicolons outside of parentheses."""
    groups: list[list[Token]] = [[]]
    depth = 0
    for token in seg.tokens:
        groups[-1].append(token)
        depth += token.text.count("(") - token.text.count(")")
        if depth <= 0 and token.text[-1] in ",;":
            groups.append([])
    pairs = []
    for tokens in groups:
        text = " ".join(t.text for t in tokens).strip(" ,;.•·-–")
        match = _PAIR.fullmatch(text)
        if match:
            remark = match["inside"] or match["behind"]
            pairs.append(Pair(match["name"].strip(), remark.strip() if remark else None, tokens, seg.page, seg.box.top))
    return pairs
