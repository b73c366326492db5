"""AcroForm text fields as candidates: filled ones with their value, blank ones as evidence that a value is absent."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterator

from pagelift.core import Box, FormField
from pagelift.evidence import find_dates, parse_number
from pagelift.layout.candidates import PATTERNS, Candidate
from pagelift.layout.lines import PageLayout, Segment, Token, is_numeric
from pagelift.layout.query import split_name
from pagelift.layout.values import Locale


def form_candidates(page: PageLayout, locale: Locale) -> list[Candidate]:
    """One candidate per family for each text or choice field; a blank field is a text candidate with text ""."""
    fields = [f for f in page.content.form_fields if f.kind in ("text", "choice")]
    if page.turned:  # widgets have the coordinates of the page as shown
        return []
    found: list[Candidate] = []
    for field in fields:
        found += _field_candidates(page, field, unicodedata.normalize("NFC", field.value.strip()), [field], locale)
    for run in _digit_runs(fields):
        for mark in ("-", ""):
            found += _field_candidates(page, run[0], mark.join(f.value.strip() for f in run), run, locale)
    return found


def _field_candidates(page: PageLayout, field: FormField, value: str, run: list[FormField], locale: Locale) -> Iterator[Candidate]:
    tokens = [t for s in page.segments for t in s.tokens if t.word.source == "form" and any(_inside(t.box, f.box) for f in run)]
    segment = Segment(tokens, field.box, page, line=_nearest_line(page, field.box), text=value, height=page.unit)
    labels = _labels(page, field)
    families: list[Candidate] = [Candidate("text", segment, 0, len(tokens), re.sub(r"\s*[\r\n]+\s*", ", ", value))]
    if not value or not tokens:
        families[0].text = ""
    else:
        number = parse_number(value, locale.mark)
        span = next(find_dates(value, locale.order), None)
        if number is not None:
            families.append(Candidate("number", segment, 0, len(tokens), value, number))
        if span is not None:
            families.append(
                Candidate("date", segment, 0, len(tokens), value[span.start : span.end], iso=span.iso(), ambiguous=span.ambiguous)
            )
        if re.search(r"\d", value) or len(value) <= 4:
            families.append(Candidate("id", segment, 0, len(tokens), value))
        for family, pattern in PATTERNS:
            if pattern.fullmatch(value):
                families.append(Candidate(family, segment, 0, len(tokens), value))
    for candidate in families:
        candidate.is_form, candidate.labels = True, labels
        yield candidate


def _labels(page: PageLayout, field: FormField) -> list[tuple[str, float, str]]:
    box, unit = field.box, page.unit
    labels = [(field.label, 1.0, "form")] if field.label else []
    name = split_name(re.sub(r"\[\d+\]", "", field.name.rsplit(".", 1)[-1]))
    if len(re.sub(r"[\d\W]|field|text|f", "", name.lower())) >= 3:
        labels.append((name, 0.9, "name"))
    printed = [s for s in page.segments if not all(t.word.source == "form" for t in s.tokens) and not is_numeric(s.text)]
    row = [
        t
        for s in page.segments
        for t in s.tokens
        if t.word.source != "form" and t.box.x0 < box.x0 and t.box.overlap_y(box) > 0.3 * t.height
    ]
    left: list[Token] = []
    for token in sorted(row, key=lambda t: -t.box.x1):
        if left and left[-1].box.x0 - token.box.x1 > 1.5 * unit:
            break
        left.append(token)
    if left:
        words = " ".join(t.text for t in reversed(left))
        nearness = max(0.3, 1 - max(0.0, box.x0 - left[0].box.x1) / unit / 20)
        labels += [(_main_clause(words), nearness, "left"), (words, 0.8 * nearness, "left")]
    above = [s for s in printed if s.box.overlap_x(box) > 0 and s.box.center_y < box.center_y and box.top - s.box.bottom < 3 * unit]
    for k, segment in enumerate(sorted(above, key=lambda s: -s.box.bottom)[:2]):
        words = _main_clause(" ".join(t.text for t in segment.tokens if t.word.source != "form"))
        labels.append((words, (0.9 if k == 0 else 0.6) * max(0.3, 1 - max(0.0, box.top - segment.box.bottom) / unit / 8), "above"))
    return labels


def _main_clause(text: str) -> str:
    """A caption without the remarks behind it: "1 Name (as shown on ...). Required." is "1 Name"."""
    head = re.split(r"[(.;]", text, maxsplit=1)[0].strip()
    return head if len(re.findall(r"[^\W\d_]", head)) >= 3 else text


def _digit_runs(fields: list[FormField]) -> Iterator[list[FormField]]:
    """Neighbouring fields on one height that hold the parts of one number, as in ddd-dd-dddd."""
    parts = sorted(
        (f for f in fields if f.kind == "text" and re.fullmatch(r"\d{1,9}", f.value.strip())),
        key=lambda f: (round(f.box.center_y / 4), f.box.x0),
    )
    run: list[FormField] = []
    for a, b in itertools.pairwise([*parts, None]):
        run = run or ([a] if a else [])
        joined = (
            a is not None and b is not None and abs(a.box.center_y - b.box.center_y) < 4 and 0 <= b.box.x0 - a.box.x1 < 1.5 * a.box.height
        )
        if joined and b is not None:
            run.append(b)
        else:
            if len(run) > 1:
                yield run
            run = []


def _inside(inner: Box, outer: Box) -> bool:
    return outer.x0 - 1 <= inner.center_x <= outer.x1 + 1 and outer.top - 1 <= inner.center_y <= outer.bottom + 1


def _nearest_line(page: PageLayout, box: Box) -> int:
    return min(range(len(page.lines)), key=lambda i: abs(page.lines[i].box.center_y - box.center_y), default=0)
