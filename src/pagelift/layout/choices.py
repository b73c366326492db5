"""Enum values and currencies that are printed as words, without a check box."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pagelift.core import Json, union
from pagelift.layout import lexicon
from pagelift.layout.candidates import Candidate
from pagelift.layout.labels import collect_labels, match_label
from pagelift.layout.lines import PageLayout, Segment
from pagelift.layout.marks import Answer
from pagelift.layout.query import Query, split_name
from pagelift.layout.scoring import Scored
from pagelift.layout.values import Locale, match_enum, plain, read_currency

_ABSENT = ("none", "other", "unknown", "na", "notapplicable", "unspecified")


def printed_enum(query: Query, pages: Sequence[PageLayout]) -> list[Answer]:
    """Enum values that stand on the page as they are, scored by label, height on the page and how telling they are."""
    wanted = {plain(split_name(str(v))): v for v in query.node.enum or () if v is not None and plain(str(v)) not in _ABSENT}
    for sex in ("male", "female"):
        value = next((v for k, v in wanted.items() if k in (sex, sex[0])), None)
        if value is not None and {"m", "f"} <= {k[:1] for k in wanted}:
            wanted |= {plain(w): value for w in lexicon.words_of(sex) if plain(w) not in wanted}
    wanted |= {key + "s": v for key, v in wanted.items() if len(key) > 4 and key + "s" not in wanted}
    answers = []
    for page in pages[:6]:
        for segment, start, end, value in _occurrences(page, wanted):
            candidate = Candidate("text", segment, start, end, " ".join(t.text for t in segment.tokens[start:end]))
            label = max((w * match_label(query, text) for text, w, _ in collect_labels(candidate)), default=0.0)
            if len(plain(candidate.text)) < 3 and label < 0.5:
                continue
            whole = start == 0 and end == len(segment.tokens)
            if label < 0.3 and not whole and len(segment.tokens) >= 6:
                continue  # a word of a sentence
            size = min(segment.height / page.unit - 1, 1.0)
            score = 0.5 + 1.5 * label + 0.3 * (1 - candidate.box.top / page.height) + 0.3 * whole + 0.3 * size - 0.2 * (page.number - 1)
            answers.append(
                Answer(value, candidate.text, page.number, union(w.box for w in candidate.words), score, "printed", tuple(candidate.words))
            )
    return answers


def form_enum(query: Query, candidates: Sequence[Candidate]) -> list[Answer]:
    """Enum values typed into a text field of a form whose caption names the query."""
    answers = []
    for candidate in candidates:
        if candidate.is_form and candidate.family == "text" and candidate.text:
            value = match_enum(query, candidate.text)
            label = max((w * match_label(query, text) for text, w, _ in candidate.labels), default=0.0)
            if value is not None and label > 0.25:
                box = union(w.box for w in candidate.words)
                answers.append(Answer(value, candidate.text, candidate.page.number, box, 1.0 + label, "form field", tuple(candidate.words)))
    return answers


def _occurrences(page: PageLayout, wanted: dict[str, Json]) -> Iterator[tuple[Segment, int, int, Json]]:
    longest = max((len(k) for k in wanted), default=0)
    for segment in page.segments:
        for start in range(len(segment.tokens)):
            text = ""
            for end in range(start + 1, min(start + 6, len(segment.tokens)) + 1):
                text += plain(segment.tokens[end - 1].text)
                if text in wanted:
                    yield segment, start, end, wanted[text]
                if len(text) >= longest:
                    break


def currency_answers(pages: Sequence[PageLayout], locale: Locale, labelled: Sequence[Scored]) -> list[Answer]:
    """The currency beside a label that asks for it, else the currency of most amounts."""
    answers = []
    for option in labelled:
        code = read_currency(option.candidate.text) if len(option.candidate.text) <= 12 else None
        if code and option.label > 0.5:
            words = option.candidate.words
            answers.append(
                Answer(
                    code, option.candidate.text, option.candidate.page.number, union(w.box for w in words), 2.0 + option.label, "labelled"
                )
            )
    if locale.currency:
        for page in pages:
            for segment in page.segments:
                for token in segment.tokens:
                    if read_currency(token.text) == locale.currency and re.search(r"\d|^\W*[A-Z]{0,3}\W*$", token.text):
                        answers.append(Answer(locale.currency, token.text, page.number, token.word.box, 1.0, "currency of the amounts"))
                        return answers
    return answers
