"""The parts between words and values: lines, candidates, places, check boxes, and the solver."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pages import DATE, NUMBER, STRING, check_box, layout, page, query, turned, words_at

from pagelift.core import Box, PageContent, Word
from pagelift.layout.candidates import Candidate, page_candidates
from pagelift.layout.lines import analyse_page, block_below
from pagelift.layout.marks import find_marks
from pagelift.layout.places import place_candidates
from pagelift.layout.scoring import Scored
from pagelift.layout.solve import Choice, solve
from pagelift.layout.values import Locale

patient = settings(deadline=None)


def segments(content: PageContent) -> list[list[str]]:
    return [[s.text for s in line.segments] for line in analyse_page(content).lines]


# Lines and segments


def test_wide_gaps_cut_a_line_and_word_order_is_that_of_the_page() -> None:
    content = page({50: "Invoice number", 300: "RE 4711"}, "Second line")
    expected = [["Invoice number", "RE 4711"], ["Second line"]]
    assert segments(content) == expected
    shuffled = PageContent(1, 600, 800, content.words[::-1])
    assert segments(shuffled) == expected


def test_words_of_one_line_may_stand_a_little_higher_or_lower() -> None:
    words = [
        Word(w.text, Box(w.box.x0, w.box.top + d, w.box.x1, w.box.bottom + d))
        for w, d in zip(words_at("a bc def", 40), (0, 2, -1.5), strict=True)
    ]
    assert segments(PageContent(1, 600, 800, tuple(words))) == [["a bc def"]]


def test_a_ruling_line_cuts_where_the_gap_does_not() -> None:
    content = page("left right")
    assert segments(content) == [["left right"]]
    x = (content.words[0].box.x1 + content.words[1].box.x0) / 2
    ruled = PageContent(1, 600, 800, content.words, rules=(Box(x, 30, x + 0.5, 60),))
    assert segments(ruled) == [["left", "right"]]


@pytest.mark.parametrize("clockwise", [True, False])
def test_a_page_on_its_side_has_the_lines_of_the_upright_page(clockwise: bool) -> None:
    content = page({50: "Invoice number", 300: "RE-4711"}, {50: "Invoice date", 300: "2024-03-05"}, "Thank you for your order")
    assert segments(turned(content, clockwise)) == segments(content)


def test_a_note_along_the_margin_does_not_break_the_lines() -> None:
    note = [Word("confidential", Box(580, 100, 590, 160))]
    assert segments(page("First line", "Second line", more=note)) == [["First line"], ["Second line"]]


def test_blocks_end_at_a_wide_gap() -> None:
    analysed = layout(page("Alpha Tools", "12 High Street", "London", "", "Dear customer"))
    assert [s.text for s in block_below(analysed.segments[0])] == ["Alpha Tools", "12 High Street", "London"]


def test_a_page_without_words() -> None:
    assert layout(page()).lines == []
    blank = PageContent(1, 600, 800, (Word(" ", Box(0, 0, 5, 5)),))
    assert layout(blank).segments == []


WORDS = st.builds(
    lambda text, x, y, w, h: Word(text, Box(x, y, x + w, y + h)),
    st.sampled_from(["a", "Total", "12.50", "x" * 30, "2024-01-02", "☒"]),
    st.floats(0, 550),
    st.floats(0, 750),
    st.floats(0.1, 50),
    st.floats(0.1, 50),
)


@patient
@given(st.lists(WORDS, max_size=25))
def test_every_word_is_on_one_line_and_lines_go_down(words: list[Word]) -> None:
    analysed = analyse_page(PageContent(1, 600, 800, tuple(words)))
    placed = [id(t.word) for s in analysed.segments for t in s.tokens]
    assert len(placed) == len(set(placed))
    upright = [w for w in words if len(w.text) < 3 or w.box.height <= 1.5 * w.box.width]
    if analysed.width == 600 and len(words) - len(upright) < 3:
        assert {id(w) for w in upright} == set(placed)
    assert [s for line in analysed.lines for s in line.segments] == analysed.segments
    for segment in analysed.segments:
        assert segment.text == " ".join(t.text for t in segment.tokens)
        assert segment.line_segments[segment.index] is segment


# Candidates


def candidates(content: PageContent, locale: Locale = Locale()) -> list[Candidate]:  # noqa: B008 - frozen
    return page_candidates(layout(content), locale)


def texts(found: list[Candidate], family: str) -> list[str]:
    return [c.text for c in found if c.family == family]


def test_typed_spans_of_a_line() -> None:
    found = candidates(page("Invoice RE-4711 of 05.03.2024 total 1.119,00 EUR info@alpha.example DE89 3704 0044 0532 0130 00"), Locale(","))
    assert [c.iso for c in found if c.family == "date"] == ["2024-03-05"]
    assert Decimal("1119.00") in [c.number.value for c in found if c.number is not None]
    assert "RE-4711" in texts(found, "id")
    assert texts(found, "email") == ["info@alpha.example"]
    assert texts(found, "iban") == ["DE89 3704 0044 0532 0130 00"]


def test_dates_cut_by_gaps_and_the_ends_of_ranges() -> None:
    found = candidates(page({50: "31 .", 90: "12 .", 130: "2024"}, "01.03.2024 - 15.03.2024"))
    dates = [(c.iso, c.range_part) for c in found if c.family == "date"]
    assert dates == [("2024-12-31", 0), ("2024-03-01", 1), ("2024-03-15", 2)]


def test_a_number_glued_to_its_label() -> None:
    found = candidates(page("Total:12.50"))
    assert [(c.text, c.before) for c in found if c.family == "number"] == [("12.50", "Total:")]


@patient
@given(
    st.lists(
        st.sampled_from(["Total:", "12.50", "€", "31.12.2024", "☒", "a@b.example", "A-1", "(", ")", ",", ":", "1", "234", "London"]),
        min_size=1,
        max_size=9,
    )
)
def test_candidates_are_made_of_the_words_that_they_hold(printed: list[str]) -> None:
    for candidate in candidates(page(" ".join(printed))):
        held = "".join(t.text for t in candidate.tokens)
        position = -1
        for character in candidate.text.replace(" ", ""):
            position = held.find(character, position + 1)
            assert position >= 0, (candidate.text, held)


# Places


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["Hauptstraße 5", "12345 Berlin"], {"street": "Hauptstraße 5", "postcode": "12345", "city": "Berlin"}),
        (["12 High Street", "London SW1A 1AA"], {"street": "12 High Street", "city": "London", "postcode": "SW1A 1AA"}),
        (
            ["5 rue de la Paix", "75002 Paris", "France"],
            {"street": "5 rue de la Paix", "postcode": "75002", "city": "Paris", "country": "France"},
        ),
        (["Dorpsstraat 7", "1234 AB Utrecht"], {"street": "Dorpsstraat 7", "postcode": "1234 AB", "city": "Utrecht"}),
        (
            ["Hauptstraße 5, 12345 Berlin, Germany"],
            {"street": "Hauptstraße 5", "postcode": "12345", "city": "Berlin", "country": "Germany"},
        ),
        (["Springfield, IL 62704"], {"city": "Springfield", "state": "IL", "postcode": "62704"}),
    ],
)
def test_parts_of_an_address(lines: list[str], expected: dict[str, str]) -> None:
    parts = {part: c.text for segment in layout(page(*lines)).segments for part, c in place_candidates(segment)}
    assert parts == expected


def test_running_text_has_no_places() -> None:
    for segment in layout(page("Thank you for your order", "Total 12.50", "Page 1 of 2")).segments:
        assert list(place_candidates(segment)) == []


# Check boxes


def marks(content: PageContent) -> list[tuple[str, bool]]:
    return [(m.option, m.checked) for m in find_marks(layout(content))]


def test_glyphs_and_widgets_have_the_words_to_their_right() -> None:
    assert marks(page("Paid by: ☐ Cash ☒ Credit card")) == [("Cash", False), ("Credit card", True)]
    assert marks(page("☑Married", "☐ Divorced")) == [("Married", True), ("Divorced", False)]
    boxes = [check_box("a", False, 150, 40), check_box("b", True, 250, 40)]
    assert marks(page({50: "Paid by", 165: "Cash", 265: "Credit card"}, fields=boxes)) == [("Cash", False), ("Credit card", True)]
    assert marks(page("No box at all")) == []


# The solver


def choice(name: str, definition: dict[str, Any], scores: dict[str, float], found: list[Candidate]) -> Choice:
    """A field that is left empty below 0.5; its options are those candidates of its type that have the given texts."""
    asked = query(name, definition)
    family = asked.kind if asked.kind in ("date", "number") else "text"
    options = {c.text: c for c in found if c.family == family}
    return Choice(asked, [Scored(options[text], score, score, {"label": score, "context": 0.0}) for text, score in scores.items()], 0.5)


def chosen(*choices: Choice) -> list[str | None]:
    solve(choices)
    return [c.pick.candidate.text if c.pick else None for c in choices]


def test_the_best_option_above_the_threshold_wins() -> None:
    found = candidates(page({50: "one", 200: "two"}))
    assert chosen(choice("remark", STRING, {"one": 0.7, "two": 0.9}, found)) == ["two"]
    assert chosen(choice("remark", STRING, {"one": 0.3, "two": 0.4}, found)) == [None]
    assert chosen(choice("remark", STRING, {}, found)) == [None]
    assert chosen() == []


def test_two_fields_do_not_share_a_span() -> None:
    found = candidates(page({50: "one", 200: "two"}))
    remark = choice("remark", STRING, {"one": 2.0, "two": 1.0}, found)
    note = choice("note", STRING, {"one": 1.6, "two": 1.5}, found)
    assert chosen(remark, note) == ["one", "two"]


def test_net_and_tax_add_up_to_gross() -> None:
    found = candidates(page("100.00", "19.00", "119.00", "150.00"))
    net = choice("net", NUMBER, {"100.00": 1.0}, found)
    tax = choice("tax", NUMBER, {"19.00": 1.0}, found)
    gross = choice("total", NUMBER, {"150.00": 1.3, "119.00": 1.2}, found)
    assert chosen(net, tax, gross) == ["100.00", "19.00", "119.00"]


def test_a_period_does_not_end_before_it_starts() -> None:
    found = candidates(page("01.03.2024", "15.03.2024"))
    start = choice("start_date", DATE, {"15.03.2024": 1.1, "01.03.2024": 1.0}, found)
    end = choice("end_date", DATE, {"15.03.2024": 1.1, "01.03.2024": 1.0}, found)
    assert chosen(start, end) == ["01.03.2024", "15.03.2024"]


SCORES = st.fixed_dictionaries({name: st.floats(-2, 3, width=16) for name in ("one", "two", "three")})


@patient
@given(SCORES, SCORES)
def test_answers_are_good_enough_and_the_same_every_time(first: dict[str, float], second: dict[str, float]) -> None:
    found = candidates(page("one", "", "two", "", "three"))

    def answer() -> list[str | None]:
        return chosen(choice("remark", STRING, first, found), choice("note", STRING, second, found))

    assert answer() == answer()
    for pick, scores in zip(answer(), (first, second), strict=True):
        assert pick is None or scores[pick] >= 0.5
