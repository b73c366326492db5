"""Drafts: where the answer stands, what the page says, and that proposing leaves the grammar alone."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pagelift.decoding import Drafter, Vocabulary, compile_grammar
from pagelift.decoding.drafts import split_hints
from pagelift.decoding.guesses import Guesser
from pagelift.decoding.outline import Outline, Place, Written, path_of
from pagelift.decoding.pages import Pages, dates
from pagelift.decoding.trail import Record, Trail
from pagelift.schema import Schema
from pagelift.weights import Tokenizer

TOKENIZER = Tokenizer.load(Path(__file__).parent.parent / "golden" / "document")
VOCABULARY = Vocabulary(TOKENIZER)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)


def leaves(value: Any, place: Place = ()) -> list[tuple[Place, Any]]:
    if isinstance(value, dict) and value:
        return [found for name, part in value.items() for found in leaves(part, (*place, name))]
    if isinstance(value, list) and value:
        return [found for index, part in enumerate(value) for found in leaves(part, (*place, index))]
    return [(place, value)]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(JSON, min_size=1).map(lambda parts: [*parts, 0]), st.sampled_from([None, 2]), st.integers(0, 999))
def test_the_outline_finds_every_leaf_and_its_place_however_the_text_comes(data: Any, indent: int | None, seed: int) -> None:
    text = json.dumps(data, indent=indent).encode()
    outline, found, start, cuts = Outline(), [], 0, random.Random(seed)
    while start < len(text):
        end = start + cuts.randint(1, 40)
        found += [(written.place, json.loads(written.text)) for written in outline.copy().feed(text[start:end])]
        list(outline.feed(text[start:end]))
        start = end
    assert found == leaves(data)


@pytest.mark.parametrize("text", ["}}]]", '{"a":,,', '{"a" "b" 1 2', "[}{]", "\\", '"'])
def test_the_outline_survives_what_is_not_json(text: str) -> None:
    list(Outline().feed(text.encode()))


@pytest.mark.parametrize(
    ("word", "page", "number"),
    [
        ("1.234,50", "", "1234.50"),
        ("1,234.50", "", "1234.50"),
        ("27,80", "", "27.80"),
        ("€27.80", "", "27.80"),
        ("1.234.567", "", "1234567"),
        ("1.234", "5,10 6,20", "1234"),
        ("1.234", "5.10 6.20", "1.234"),
        ("1,234", "5.10 6.20", "1234"),
        ("-7", "", "-7"),
        ("007", "", "7"),
        ("1'250.00", "", "1250.00"),
        ("12%", "", "12"),
        ("abc", "", None),
    ],
)
def test_numbers_keep_their_digits(word: str, page: str, number: str | None) -> None:
    assert Pages([page]).number(word) == number


def test_dates_the_day_first() -> None:
    assert next(dates("12.03.2024")) == "2024-03-12"
    assert list(dates("03/15/24")) == ["2024-03-15"]
    assert next(dates("2024-3-1")) == "2024-03-01"
    assert list(dates("99.99.2024")) == []


def test_values_are_found_as_they_are_printed() -> None:
    pages = Pages(["Total: 1.234,50 EUR\nBolt M8 on 12.03.2024", "Total 1.234,50"])
    assert pages.find("1234.5", 0) == (1, 2)
    assert pages.find("1234.50", 3) == (8, 9)
    assert pages.find('"Bolt  M8"', 0) == (3, 5)
    assert pages.find('"2024-03-12"', 0) == (6, 7)
    assert pages.find('"nowhere"', 0) is None
    assert pages.find("null", 0) is None
    assert (pages.line_of(5), pages.line_end(5)) == (3, 7)


def test_hints_that_are_json_are_answers() -> None:
    assert split_hints(["a b", '{"a": 1}', "[1]", "{broken", "12"]) == (["a b", "{broken", "12"], [{"a": 1}, [1]])


def test_the_next_row_is_read_below_the_last() -> None:
    pages = Pages(["Pos Item Qty\n1 Hex bolt 5\n2 Flat big washer 12\n3 Nut 7"])
    guesser, trail = Guesser(pages, []), Trail()
    for row, (item, quantity) in enumerate([("Hex bolt", 5), ("Flat big washer", 12)]):
        for name, text in (("item", f'"{item}"'), ("quantity", str(quantity))):
            written = Written(("rows", row, name), text)
            trail.add(written, guesser.learn(written, trail))
    best = guesser.guesses(("rows", 2, "item"), trail)
    assert (best[0].source, best[0].text) == ("row", '"Nut"')
    assert guesser.more_rows(("rows", 2), trail)
    written = Written(("rows", 2, "item"), '"Nut"')
    trail.add(written, guesser.learn(written, trail))
    assert guesser.guesses(("rows", 2, "quantity"), trail)[0].text == "7"
    written = Written(("rows", 2, "quantity"), "7")
    trail.add(written, guesser.learn(written, trail))
    assert not guesser.more_rows(("rows", 3), trail)


@pytest.mark.parametrize(
    ("partial", "rest"),
    [('"2024-', "2024-03-12"), ('"Hafen', "Hafenstraße 12"), ('"Hafenstraße 12,', "Hafenstraße 12, 24103 Kiel"), ("12", "1234.50")],
)
def test_a_value_that_has_begun_goes_on_as_on_the_page(partial: str, rest: str) -> None:
    guesser = Guesser(Pages(["Hafenstraße 12\n24103 Kiel\nDate 12.03.2024\nTotal 1.234,50"]), [])
    found = [guess.text for guess in guesser.begun(("x",), partial, Trail())]
    assert (json.dumps(rest, ensure_ascii=False) if partial.startswith('"') else rest) in found


def test_a_source_that_is_often_wrong_comes_last() -> None:
    record, path = Record(), path_of(("a",))
    before = record.rate("label", path)
    for _ in range(5):
        record.add("label", path, False)
        record.add("next", path, True)
    assert record.rate("label", path) < before < record.rate("next", path)
    assert record.rate("label", path_of(("a", 0))) == before


SCHEMA = {
    "type": "object",
    "properties": {
        "number": {"type": ["string", "null"]},
        "total": {"type": ["number", "null"]},
        "rows": {"type": "array", "items": {"type": "object", "properties": {"item": {"type": ["string", "null"]}}}},
    },
}
HINTS = ["Number A-17\nTotal 12,50\nNut\nBolt M8"]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(HINTS[0].split()), max_size=8).map(" ".join), st.integers(1, 60), st.integers(0, 40))
def test_proposing_leaves_the_grammar_as_it_was(page: str, room: int, said: int) -> None:
    grammar = compile_grammar(Schema.load(SCHEMA), VOCABULARY)
    answer = TOKENIZER.encode('{"number": "A-17", "total": 12.50, "rows": [{"item": "Bolt M8"}]}')
    constraint, drafter = grammar.constraint(), Drafter(TOKENIZER, [*HINTS, page])
    begin = answer[: constraint.prefix(answer[:said])]
    constraint.accept(begin)
    drafter.extend(begin)
    forced, mask = list(constraint.forced()), constraint.allowed().mask.copy()
    proposal = drafter.propose(constraint, room)
    assert (list(constraint.forced()), constraint.allowed().mask.tobytes()) == (forced, mask.tobytes())
    again = drafter.propose(constraint, room)
    assert (proposal and proposal.text) == (again and again.text)
    assert proposal is None or proposal.text.decode()


def test_free_text_is_continued_from_the_page() -> None:
    drafter = Drafter(TOKENIZER, ["The quick brown fox jumps over the lazy dog"])
    drafter.extend(TOKENIZER.encode("He said: The quick brown"))
    proposal = drafter.propose(None, 20)
    assert proposal is not None
    assert proposal.text == b" fox jumps over the lazy dog"
    drafter.extend(TOKENIZER.encode(" bear, and so on"))
    assert drafter.propose(None, 20) is None
