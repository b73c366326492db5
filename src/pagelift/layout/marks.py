"""Check boxes and radio buttons, and the enum and boolean properties that they answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pagelift.core import Box, Json, Word, union
from pagelift.layout import lexicon
from pagelift.layout.labels import match_label
from pagelift.layout.lines import PageLayout, Segment, Token
from pagelift.layout.query import Query, split_name
from pagelift.layout.squares import drawn_boxes
from pagelift.layout.values import match_enum, plain, read_boolean

_CHECKED = frozenset("☑ ☒ ✓ ✔ ✗ ✘ ⊠ ■ ● ◉ ⦿ [x] [X] (x) (X) [✓] [✔] 🗹 🗷 ⮽".split())
_UNCHECKED = frozenset("☐ □ ○ ◯ ⬜ [] () [_] ❏ ❑ ⭘".split())


@dataclass(slots=True, eq=False)
class Mark:
    """A check box with the text of its option. heading: text that may name the question (left of or above the group)."""

    checked: bool
    page: PageLayout
    box: Box
    option: str
    heading: str
    words: list[Word]
    export: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The value of an enum or boolean query with what it was read from; score is comparable over answers of one query."""

    value: Json
    raw: str
    page: int
    box: Box
    score: float
    reason: str = ""
    words: tuple[Word, ...] = ()


def find_marks(page: PageLayout) -> list[Mark]:
    """Check boxes of a page: form widgets, drawn squares and glyphs, each with the text beside it."""
    marks: list[Mark] = []
    boxes = [(f.box, f.checked, f) for f in page.content.form_fields if f.kind in ("checkbox", "radio")]
    if not page.turned:
        for box, checked, field in boxes:
            mark = _mark(page, box, checked, [b for b, _, _ in boxes])
            mark.heading, mark.export = f"{field.label} {mark.heading}", field.value
            mark.option = mark.option or field.label
            marks.append(mark)
        squares = drawn_boxes(page)
        for box, token in squares:
            mark = _mark(page, box, token is not None, [b for b, _ in squares])
            mark.box = union([box, *(w.box for w in mark.words)])
            marks.append(mark)
    for line in page.lines:
        tokens = [(s, t) for s in line.segments for t in s.tokens]
        for k, (segment, token) in enumerate(tokens):
            state = _glyph_state(token, tokens[k + 1][1] if k + 1 < len(tokens) else None)
            if state is not None:
                marks.append(_glyph_mark(page, segment, [t for _, t in tokens], k, state))
    return marks


def _glyph_state(token: Token, following: Token | None) -> bool | None:
    text = token.text
    if text in _CHECKED:
        return True
    if text in _UNCHECKED or (text == "[" and following is not None and following.text == "]"):
        return False
    if text[:1] in "☑☒☐" and len(text) > 1:
        return text[0] != "☐"
    return None


def _glyph_mark(page: PageLayout, segment: Segment, tokens: list[Token], k: int, state: bool) -> Mark:
    option: list[Token] = []
    for token in tokens[k + 1 :]:
        if (
            token.text in _CHECKED | _UNCHECKED
            or token.text[:1] in "☑☒☐"
            or token.text == "["
            or (option and token.box.x0 - option[-1].box.x1 > 2 * page.unit)
        ):
            break
        if token.text != "]":
            option.append(token)
    left = tokens[:k]
    cut = max((i + 1 for i, t in enumerate(left) if t.text in _CHECKED | _UNCHECKED), default=0)
    if not option:
        option, left = left[cut:], []
    first_mark = cut == 0
    heading = " ".join(t.text for t in left) if first_mark else " ".join(t.text for t in tokens[: _first_mark(tokens)])
    if not heading and segment.above:
        heading = segment.above[0].text
    text = (tokens[k].text[1:] + " " if len(tokens[k].text) > 1 and tokens[k].text[0] in "☑☒☐" else "") + " ".join(t.text for t in option)
    return Mark(state, page, tokens[k].word.box, text.strip(), heading, [tokens[k].word, *(t.word for t in option)])


def _first_mark(tokens: list[Token]) -> int:
    return next((i for i, t in enumerate(tokens) if t.text in _CHECKED | _UNCHECKED or t.text[:1] in "☑☒☐"), 0)


def _mark(page: PageLayout, box: Box, checked: bool, boxes: list[Box]) -> Mark:
    """A box with the words on its height to the right, up to the next box. boxes: all of its kind on the page."""
    printed = [t for s in page.segments for t in s.tokens if t.word.source != "form"]
    row = [t for t in printed if t.box.top < box.bottom and t.box.bottom > box.top and not any(_covers(b, t.box) for b in boxes)]
    stop = min((b.x0 for b in boxes if b.x0 > box.x1 and b.overlap_y(box) > 0), default=page.width)
    right = sorted((t for t in row if box.x1 - 2 <= t.box.x0 < stop and not read_glyph(t.text)), key=lambda t: t.box.x0)
    option: list[Token] = []
    for token in right:
        if option and token.box.x0 - option[-1].box.x1 > 3 * page.unit:
            break
        option.append(token)
    left = sorted((t for t in row if t.box.x1 <= box.x0 + 2), key=lambda t: t.box.x0)
    above = [
        s for s in page.segments if s.box.bottom <= box.top + 2 and box.top - s.box.bottom < 6 * page.unit and s.box.overlap_x(box) > 0
    ]
    heading = " ".join(t.text for t in left[-8:]) or (above[-1].text if above else "")
    return Mark(checked, page, box, " ".join(t.text for t in option), heading, [t.word for t in option])


def _covers(outer: Box, inner: Box) -> bool:
    return outer.x0 <= inner.center_x <= outer.x1 and outer.top <= inner.center_y <= outer.bottom


def read_glyph(text: str) -> bool:
    return text in _CHECKED or text in _UNCHECKED


def enum_answers(query: Query, marks: Sequence[Mark]) -> list[Answer]:
    """Answers from checked boxes whose option says an enum value."""
    answers: list[Answer] = []
    for mark in marks:
        if not mark.checked:
            continue
        value, fit = max(((v, _option_fit(v, mark)) for v in query.node.enum or ()), key=lambda p: p[1], default=(None, 0.0))
        if value is not None and fit >= 0.5:
            answers.append(
                Answer(
                    value, mark.option, mark.page.number, mark.box, 1.0 + fit + max(0.0, match_label(query, mark.heading)), "checked box"
                )
            )
    return answers


def _option_fit(value: Json, mark: Mark) -> float:
    """How well an option's text says an enum value, in [0, 1]."""
    if value is None:
        return 0.0
    name, option = split_name(str(value)), re.split(r"[.:;(►▶]", mark.option)[0].strip()
    if plain(name) in (plain(option), plain(mark.export)) and plain(name):
        return 1.0
    words = [w for w in re.split(r"[\s/-]+", option) if w]
    if len(plain(name)) >= 2 and plain(name) == "".join(w[0] for w in words).casefold()[: len(plain(name))]:
        return 0.8
    wanted, said = lexicon.bag(name), lexicon.bag(option)
    if not wanted or not said:
        return 0.0
    return 0.9 * len(wanted & said) / len(wanted) * (0.6 + 0.4 * len(wanted & said) / len(said))


def offers_options(query: Query, marks: Sequence[Mark]) -> bool:
    """Whether the enum values are options of check boxes, so that the words alone say nothing."""
    return sum(any(_option_fit(v, m) >= 0.5 for v in query.node.enum or ()) for m in marks) >= 2


def boolean_answers(query: Query, marks: Sequence[Mark]) -> list[Answer]:
    """Answers of a boolean query: its own box checked or not, or one of a Yes/No pair whose question names it."""
    answers: list[Answer] = []
    for mark in marks:
        said = read_boolean(mark.option.split()[0]) if mark.option and len(mark.option) <= 5 else None
        if said is not None:
            fit = match_label(query, mark.heading)
            if mark.checked and fit > 0.3:
                answers.append(Answer(said, mark.option, mark.page.number, mark.box, 1.5 * fit, "checked box"))
            continue
        fit = max(match_label(query, mark.option), 0.8 * match_label(query, split_name(mark.export)))
        if fit > 0.45:
            answers.append(
                Answer(mark.checked, mark.option, mark.page.number, mark.box, fit, "checked box" if mark.checked else "box not checked")
            )
    return answers


def checked_options(query: Query, marks: Sequence[Mark]) -> list[Answer]:
    """Entries of an array beside checked boxes: of a group whose heading names it, or all where the schema asks for checked ones."""
    asks = bool(re.search(r"\b(?:check|tick|select|chosen|cross)", query.description.lower()))
    found = []
    for mark in marks:
        if mark.checked and mark.option and (asks or match_label(query, mark.heading) > 0.4):
            value = match_enum(query, mark.option) if query.node.enum else mark.option
            if value is not None:
                found.append(Answer(value, mark.option, mark.page.number, mark.box, 1.0, "checked box"))
    return found
