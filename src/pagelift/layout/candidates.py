"""Typed spans of a page: everything that could be the value of some scalar."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from pagelift.core import Box, Word, union
from pagelift.evidence import DateSpan, Number, find_dates, find_open_ranges, parse_number
from pagelift.layout.lexicon import only_label_words
from pagelift.layout.lines import PageLayout, Segment, Token, block_below
from pagelift.layout.values import EMAIL, IBAN, PHONE, TIME, URL, Locale

Family = Literal["number", "date", "id", "text", "block", "wrapped", "email", "phone", "url", "iban", "time", "place", "phrase"]

PATTERNS: tuple[tuple[Family, re.Pattern[str]], ...] = (("email", EMAIL), ("url", URL), ("iban", IBAN), ("phone", PHONE), ("time", TIME))
"""Families that a regular expression finds."""
MAX_WORD = 200
"""Longer words are no numbers, identifiers or dates."""
_EDGE = " .,;:()[]*|"
_GLUED_VALUE = re.compile(r"^(.*[^\W\d_)#.][:#=.]?\s?)([-$€£(]*(?:RM)?\d[\d.,']*\)?)$")
_RANGE = re.compile(r"\s*(?:-|–|—|~|to|bis|through|thru|until|au|al|a|/|\.\.|,)?\s*(?:end:?|end date:?)?\s*", re.I)
_NUMBER_RANGE = re.compile(r"\S{0,4}\s*(?:…|\.\.\.?|-|–|—|~|to|bis|à|a|÷)", re.I)
_ID = re.compile(r"[\w./#&-]*\d[\w./#&-]*(?:\s?[-/]\s?|\s)(?:[A-Z]{1,2} )?[\w./-]*\d[\w./-]*(?: (?:[A-Z]|\d+))*|\d+ [A-Z]")
_REGISTRATION = re.compile(
    r"\s*[\[(][^()\[\]]*\d[^()\[\]]*[\])]?\s*$|\s+(?:Co\.?|Company)?\s*(?:Reg\.?|Registration)?\s*(?:No\.?|Nr\.?)[:.]?\s*[\w-]*\d[\w-]*$",
    re.I,
)
_SALUTATION = re.compile(r"(?:herrn?|frau|firma|fa\.?|mr\.?|mrs\.?|ms\.?|m\.|mme|monsieur|madame|dr\.?|an|to|attn:?|z\.\s?hd\.?)", re.I)


@dataclass(slots=True, eq=False)
class Candidate:
    """A span that could be a value.

    start, end: tokens of `segment` (end exclusive). text: as it would be returned. before: text in the first token that stands
    before the value ("No.:" of "No.:123"). range_part: 1 or 2 for the first or second value of a range. in_date: a number
    that is a part of a date. trimmed: a registration number behind the name was left out. is_form: the value of a form
    field. part: of an address, for places. lines: segments of a block or a wrapped value. labels: texts that may name it,
    with weight and relation. around: the box, once it was asked for.
    """

    family: Family
    segment: Segment
    start: int
    end: int
    text: str
    number: Number | None = None
    iso: str | None = None
    ambiguous: bool = False
    before: str = ""
    range_part: int = 0
    in_date: bool = False
    trimmed: bool = False
    lines: list[Segment] = field(default_factory=list)
    is_form: bool = False
    part: str = ""
    labels: list[tuple[str, float, str]] = field(default_factory=list)
    around: Box | None = None

    @property
    def page(self) -> PageLayout:
        return self.segment.page

    @property
    def tokens(self) -> list[Token]:
        if self.lines:
            return self.segment.tokens[self.start :] + [t for s in self.lines[1:] for t in s.tokens]
        return self.segment.tokens[self.start : self.end]

    @property
    def box(self) -> Box:
        if self.around is None:
            tokens = self.tokens
            self.around = tokens[0].box if len(tokens) == 1 else union(t.box for t in tokens)
        return self.around

    @property
    def words(self) -> list[Word]:
        return [t.word for t in self.tokens]


def page_candidates(page: PageLayout, locale: Locale) -> list[Candidate]:
    """All candidates of a page, in reading order per family."""
    found: list[Candidate] = []
    for line in page.lines:
        if any(len(t.text) > MAX_WORD for t in line.tokens):
            found += [Candidate("text", s, 0, len(s.tokens), s.text) for s in line.segments]
            continue
        dates = _dates(line.segments, locale)
        found += dates
        for segment in line.segments:
            numbers = list(_numbers(segment, locale))
            for number in numbers:
                number.in_date = any(d.segment is segment and d.start <= number.start and number.end <= d.end for d in dates)
            found += _mark_ranges(numbers)
            found += _identifiers(segment)
            found += _patterns(segment)
            found += _texts(segment)
            found += _phrases(segment)
    return found


def _dates(segments: list[Segment], locale: Locale) -> list[Candidate]:
    """Dates may be cut by segment borders ("31 . 12 . 2024"), so they are looked for in whole lines."""
    text, owners = _joined(segments)
    if not re.search(r"\d", text):
        return []
    found: list[tuple[DateSpan, Candidate]] = []
    open_ranges = find_open_ranges(text)
    covered = [(first.start, last.end) for first, last in open_ranges]
    spans = [(span, part) for pair in open_ranges for part, span in enumerate(pair, 1)]
    plain = re.sub(r"(\d)\s?-\s?(?=\d{1,2}/\d{1,2}/)", lambda m: m[0].replace("-", "~"), text)
    spans += [(s, 0) for s in find_dates(plain, locale.order) if not any(s.start < end and start < s.end for start, end in covered)]
    for span, part in sorted(spans, key=lambda pair: pair[0].start):
        segment, start = owners[span.start]
        last_segment, last = owners[span.end - 1]
        end = last + 1 if last_segment is segment else len(segment.tokens)
        candidate = Candidate(
            "date", segment, start, end, text[span.start : span.end].strip(" -–"), iso=span.iso(), ambiguous=span.ambiguous
        )
        candidate.before = _before(segment.tokens[start].text, candidate.text.split()[0])
        candidate.range_part = part
        if not part and found and not found[-1][1].range_part and _RANGE.fullmatch(text[found[-1][0].end : span.start]):
            found[-1][1].range_part, candidate.range_part = 1, 2
        found.append((span, candidate))
    return [c for _, c in found]


def _joined(segments: list[Segment]) -> tuple[str, list[tuple[Segment, int]]]:
    """Text of a line and, for each character, its segment and token index."""
    parts: list[str] = []
    owners: list[tuple[Segment, int]] = []
    for segment in segments:
        for k, token in enumerate(segment.tokens):
            if parts:
                parts.append(" ")
                owners.append((segment, k))
            parts.append(token.text)
            owners += [(segment, k)] * len(token.text)
    return "".join(parts), owners


def _before(token: str, value: str) -> str:
    at = token.find(value)
    return token[:at] if at > 0 else ""


def _numbers(segment: Segment, locale: Locale) -> Iterator[Candidate]:
    tokens = segment.tokens
    for k, token in enumerate(tokens):
        if not re.search(r"\d", token.text):
            continue
        bare = token.text.strip(":;#") if len(token.text) > 1 else token.text
        number = parse_number(bare, locale.mark) or parse_number(bare.rstrip(".,"), locale.mark)
        if number is not None:
            start = k
            currency = tokens[k - 1].text if k and parse_number(tokens[k - 1].text + "1") else ""
            if currency and not re.search(r"\d", currency) and len(currency) <= 4:
                start, number = k - 1, parse_number(currency + bare, locale.mark) or number
            digits = len(re.sub(r"\D", "", token.text))
            if digits <= 9 or number.decimals:
                yield Candidate("number", segment, start, k + 1, " ".join([*(t.text for t in tokens[start:k]), bare.rstrip(".,")]), number)
        elif glued := _GLUED_VALUE.match(token.text):
            number = parse_number(glued[2].replace("RM", ""), locale.mark)
            if number is not None:
                yield Candidate("number", segment, k, k + 1, glued[2], number, before=glued[1])
        if k + 1 < len(tokens) and re.fullmatch(r"[$€£-]?\d{1,3}", token.text) and re.match(r"\d{3}(?:[.,]\d{2})?$", tokens[k + 1].text):
            joined = token.text + " " + tokens[k + 1].text
            number = parse_number(joined, locale.mark)
            if number is not None:
                yield Candidate("number", segment, k, k + 2, joined, number)


def _mark_ranges(numbers: list[Candidate]) -> list[Candidate]:
    """Neighbours like "12 ... 36 V" are the first and the last number of a range."""
    for first, last in itertools.pairwise(numbers):
        between = " ".join(t.text for t in first.segment.tokens[first.end : last.start])
        if first.end <= last.start and _NUMBER_RANGE.fullmatch(between):
            first.range_part, last.range_part = 1, 2
    return numbers


def _identifiers(segment: Segment) -> Iterator[Candidate]:
    tokens = segment.tokens
    for k, token in enumerate(tokens):
        text = token.text.strip(_EDGE)
        if not re.search(r"\d", text):
            continue
        if len(text) >= 1:
            yield Candidate("id", segment, k, k + 1, text)
        for mark in (":", "#", "=", ".", "°", ")"):
            head, _, tail = text.rpartition(mark)
            if head and len(tail) >= 3 and re.search(r"\d", tail) and re.search(r"[^\W\d_]", head):
                yield Candidate("id", segment, k, k + 1, tail, before=head + mark)
        for end in range(k + 2, min(k + 4, len(tokens)) + 1):
            joined = " ".join(t.text for t in tokens[k:end]).strip(_EDGE)
            if _ID.fullmatch(joined):
                yield Candidate("id", segment, k, end, joined)
    for k, token in enumerate(tokens[:-1]):
        if re.fullmatch(r"[A-Z]{1,4}", token.text) and re.match(r"\d", tokens[k + 1].text):
            for end in range(k + 2, min(k + 5, len(tokens)) + 1):
                yield Candidate("id", segment, k, end, " ".join(t.text for t in tokens[k:end]).strip(_EDGE))


def _patterns(segment: Segment) -> Iterator[Candidate]:
    for family, pattern in PATTERNS:
        for match in pattern.finditer(segment.text):
            start, end = token_range(segment, match.start(), match.end())
            text = match[0].strip().rstrip(".")
            yield Candidate(family, segment, start, end, text, before=_before(segment.tokens[start].text, text.split()[0]))


def token_range(segment: Segment, first: int, last: int) -> tuple[int, int]:
    """Tokens that the characters [first, last) of the segment's text touch."""
    position, start, end = 0, 0, len(segment.tokens)
    for k, token in enumerate(segment.tokens):
        if position <= first:
            start = k
        if position < last:
            end = k + 1
        position += len(token.text) + 1
    return start, end


def _texts(segment: Segment) -> Iterator[Candidate]:
    tokens, count = segment.tokens, len(segment.tokens)
    yield Candidate("text", segment, 0, count, segment.text)
    for k in range(count - 1):
        if tokens[k].text.endswith((":", "►", "▶", "#")) or tokens[k].text in ("-", "–", "|", "•"):
            yield Candidate("text", segment, k + 1, count, " ".join(t.text for t in tokens[k + 1 :]))
        if tokens[k].text.endswith((",", "|", ";")) or tokens[k + 1].text in ("|", "•", "·", "●", "*", "-", "–", "/"):
            yield Candidate("text", segment, 0, k + 1, " ".join(t.text for t in tokens[: k + 1]).rstrip(_EDGE))
    yield from _after_label_words(segment)
    if ":" in tokens[0].text[:-1] and not re.match(r"\d+:\d|https?:", tokens[0].text):
        label, _, rest = segment.text.partition(":")
        yield Candidate("text", segment, 0, count, rest.strip(), before=label)
    plain = _REGISTRATION.sub("", segment.text)
    if plain != segment.text and len(plain) > 2:
        _, end = token_range(segment, 0, len(plain))
        yield Candidate("text", segment, 0, end, plain, trimmed=True)
    block = block_below(segment)
    for length in range(2, len(block) + 1):
        yield Candidate("block", segment, 0, count, join_lines([s.text for s in block[:length]]), lines=block[:length])
    yield from _wrapped(segment, block)


def _after_label_words(segment: Segment) -> Iterator[Candidate]:
    """Values behind label words without a colon, up to the next label word: "Name Weber Vorname Elif"."""
    tokens = segment.tokens
    named = [only_label_words(t.text) and t.text[:1].isupper() for t in tokens]
    if not named[0] or named[-1] or sum(named) < 2 or segment.text.endswith(":"):
        return
    for k in range(len(tokens) - 1):
        if named[k] and not named[k + 1] and not tokens[k].text.endswith(":") and tokens[k + 1].text[:1].isupper():
            end = next((j for j in range(k + 2, len(tokens)) if named[j]), len(tokens))
            yield Candidate("text", segment, k + 1, end, " ".join(t.text for t in tokens[k + 1 : end]))


def _wrapped(segment: Segment, block: list[Segment]) -> Iterator[Candidate]:
    """A value that goes on in the next lines of its cell: nothing stands left of the continuation where the first line has its label."""
    if len(block) > 1 and _SALUTATION.fullmatch(segment.text):
        yield Candidate("wrapped", segment, 0, len(segment.tokens), f"{segment.text} {block[1].text}", lines=block[:2])
    if segment.height > 1.3 * segment.page.unit:
        large = next((k for k, s in enumerate(block) if s.height < 0.85 * segment.height), len(block))
        for length in range(2, min(large, 4) + 1):  # a title over several lines
            yield Candidate("wrapped", segment, 0, len(segment.tokens), " ".join(s.text for s in block[:length]), lines=block[:length])
    for start in {0, *(k + 1 for k, t in enumerate(segment.tokens[:-1]) if t.text.endswith(":"))}:
        if not segment.index and not start:
            continue
        lines = [segment]
        while len(lines) < 3 and (following := _continuation(segment, start, lines[-1])):
            lines.append(following)
            text = " ".join([" ".join(t.text for t in segment.tokens[start:]), *(s.text for s in lines[1:])])
            yield Candidate("wrapped", segment, start, len(segment.tokens), text, lines=list(lines))


def _continuation(segment: Segment, start: int, last: Segment) -> Segment | None:
    """The segment under `last` that goes on with the value that begins at token `start` of `segment`."""
    page = segment.page
    if last.line + 1 >= len(page.lines):
        return None
    line = page.lines[last.line + 1]
    following = line.segments[0]
    unfinished = last.text.count("(") > last.text.count(")") or last.text.endswith(("&", ",", "-"))
    flush = abs(following.box.x0 - segment.tokens[start].box.x0) < (2.0 if unfinished else 0.6) * page.unit
    wide = following.box.top - last.box.bottom > 0.6 * page.unit
    if flush and unfinished and not wide:
        return following
    if not flush or wide or following.bold != segment.bold or following.text.endswith(":") or only_label_words(following.text):
        return None
    if any(s.box.x0 < _right_edge(segment) - page.unit for s in line.segments[1:]):
        return None
    return following


def _right_edge(segment: Segment) -> float:
    """Where the next cell of the segment's line begins; the page's edge if there is none."""
    following = segment.line_segments[segment.index + 1 :]
    return following[0].box.x0 if following else segment.page.width


_JOINING = frozenset("de von van der den of the & und and et del della di la le du des da y zu".split())


def _phrases(segment: Segment) -> Iterator[Candidate]:
    """Runs of capitalised words in running text: names in a sentence."""
    tokens = segment.tokens
    if len(tokens) < 7:
        return
    k = 0
    while k < len(tokens):
        end = k
        while end < len(tokens) and end - k < 8 and (tokens[end].text[:1].isupper() or (end > k and tokens[end].text in _JOINING)):
            end += 1
            if tokens[end - 1].text.endswith((",", ";", ":", ")")):
                break
        while end > k and tokens[end - 1].text in _JOINING:
            end -= 1
        if end > k:
            yield Candidate("phrase", segment, k, end, " ".join(t.text for t in tokens[k:end]).strip(_EDGE + "\"'“”"))
        k = max(end, k + 1)


def join_lines(texts: list[str]) -> str:
    """Lines of an address or a paragraph as one line: a comma between them unless punctuation or a hyphen is there."""
    out = texts[0]
    for text in texts[1:]:
        out = out.rstrip() + (" " if re.search(r"[,;:./&-]$", out.rstrip()) or text[:1] in ",;" else ", ") + text
    return out
