"""What pagelift-nano is taught: the very prompt of the engine, answers in the grammar's style, and where values are copied from."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nano.blanks import with_blanks
from nano.codes import with_codes
from nano.coined import lexicon, with_coined_words
from nano.crops import Crop, cropped, whole
from nano.curve import table
from nano.examples import NOWHERE, Example, encode, in_array
from nano.lessons import FEW, LESSONS, MANY, ROWS, SOME, batches, check_lot, make_lot, padded
from nano.strangers import letter_tokens, with_strangers
from tokenizers import Tokenizer

from pagelift.evals.spelling import PieceKind, Printed, answer_pieces, spelled
from pagelift.evals.synthetic import Sample, make_sample
from pagelift.extract.words_prompt import NUMBERS, schema_outline, words_prompt
from pagelift.models.prompt import user_turn
from pagelift.schema import Schema
from pagelift.weights import ChatTemplate
from pagelift.weights import Tokenizer as ProductTokenizer

SEEDS = range(12)
Taught = list[tuple[Sample, Example]]


def samples() -> list[Sample]:
    return [make_sample(seed, "train") for seed in SEEDS]


@pytest.fixture(scope="module")
def taught(words: Tokenizer) -> Taught:
    return [(sample, encode(whole(sample), words)) for sample in samples()]


@given(st.text())
def test_any_text_comes_back(words: Tokenizer, text: str) -> None:
    text = unicodedata.normalize("NFC", text)
    assert words.decode(words.encode(text, add_special_tokens=False).ids, skip_special_tokens=False) == text


@given(st.text("abXYÄé", min_size=1, max_size=9), st.integers(0, 99999), st.text("abc", min_size=1))
def test_a_word_is_cut_alike_on_the_page_and_in_the_answer(words: Tokenizer, word: str, number: int, other: str) -> None:
    value = f"{word} {number}"
    alone = words.encode(value, add_special_tokens=False).ids
    for around in (f"<|x01|>{value}<|r09|>", f'{{"k": "{value}", "l": 1}}', f"{other}: {value}, {other}"):
        inside = words.encode(around, add_special_tokens=False).ids
        assert any(inside[k : k + len(alone)] == alone for k in range(len(inside)))


@pytest.mark.parametrize(
    ("value", "raw", "text"),
    [
        (186.5, "186,50 \u20ac", "186.50"),
        (903.0, "903,00", "903.00"),
        (-2070.82, "-2.070,82", "-2070.82"),
        (12, "12", "12"),
        (63365.6, "63.365,60", "63365.60"),
        (5.0, "twice", "5.0"),
        (True, "X", "true"),
        (None, "", "null"),
        ("Café", "Café", '"Café"'),
    ],
)
def test_numbers_keep_the_digits_that_are_printed(value: object, raw: str, text: str) -> None:
    assert spelled(value, raw) == text


def test_answers_say_what_is_expected_in_the_order_of_the_schema() -> None:
    for sample in samples():
        text = "".join(piece.text for piece in answer_pieces(sample.expected, Printed.at(sample.evidence)))
        assert json.loads(text) == sample.expected
        assert list(json.loads(text)) == list(sample.schema["properties"])
        assert "\n" not in text


def test_the_prompt_is_the_engines(taught: Taught, words: Tokenizer, run_folder: Path) -> None:
    template = ChatTemplate.load(run_folder, ProductTokenizer.load(run_folder))
    for sample, example in taught:
        prompt = words.decode(example.tokens[: example.answer].tolist(), skip_special_tokens=False)
        assert prompt == template.render(user_turn(words_prompt(sample.pages, Schema.load(sample.schema))))


def test_values_are_chosen_and_keys_are_not(taught: Taught, words: Tokenizer) -> None:
    for sample, example in taught:
        tokens = example.tokens
        assert not example.chosen[: example.answer].any()
        for first, last in example.values.values():
            assert example.chosen[first:last].all()
        chosen = [words.decode([token]) for token in tokens[example.chosen].tolist()]
        assert '":' not in chosen
        lists = [value for value in sample.expected.values() if isinstance(value, list)]
        assert chosen.count('{"') == sum(bool(value) and isinstance(value[0], dict) for value in lists)  # that there is a first entry
        assert words.id_to_token(int(tokens[-1])) == "<|im_end|>"
        assert len(example.values) == sum(1 for piece in answer_pieces(sample.expected, Printed()) if piece.kind == PieceKind.SCALAR)


def test_values_are_where_they_are_said_to_be(taught: Taught, words: Tokenizer) -> None:
    for sample, example in taught:
        for pointer, (first, last) in example.values.items():
            value = sample.expected
            for step in pointer.split("/")[1:]:
                value = value[int(step)] if isinstance(value, list) else value[step]
            text = words.decode(example.tokens[first:last].tolist())
            assert json.loads(text) == value


def test_values_know_their_lines_of_the_outline(taught: Taught, words: Tokenizer) -> None:
    for _, example in taught:
        for pointer, (first, _) in example.values.items():
            end, key = example.lines[first], pointer.rpartition("/")[2]
            if key.isdigit():  # an entry of a list of strings
                assert end == NOWHERE
                continue
            line = words.decode(example.tokens[end - 30 : end + 1].tolist(), skip_special_tokens=False)
            assert re.search(rf"[ .]{key}\n$", line)


def test_the_outline_knows_where_the_first_printed_value_of_a_column_is(words: Tokenizer) -> None:
    page_mark, later = words.token_to_id("<|page|>"), 0
    for seed in range(60):
        sample = make_sample(seed, "train", "statement")
        example = encode(whole(sample), words)
        for pointer in example.values:
            if not re.fullmatch(r"/\w+/0/\w+", pointer):
                continue
            name, _, column = pointer.split("/")[1:]
            ends = [end for end in np.flatnonzero(example.outline != NOWHERE) if end == example.lines[example.values[pointer][0]]]
            shown = [f"/{name}/{k}/{column}" for k in range(len(sample.expected[name])) if f"/{name}/{k}/{column}" in sample.evidence]
            looked_at = example.tokens[example.outline[ends[0]]]
            assert (looked_at == page_mark) == (not shown)
            later += bool(shown) and shown[0] != pointer
    assert later > 5


def test_marks_name_the_lines_of_their_values(taught: Taught, words: Tokenizer) -> None:
    numbers = {words.token_to_id(mark) for mark in NUMBERS}
    for sample, example in taught:
        flat = {pointer for pointer in example.values if not re.search(r"/\d+", pointer)}
        entries = {f"/{key}/{k}" for key, value in sample.expected.items() if isinstance(value, list) for k in range(len(value))}
        assert set(example.marks) == flat | entries
        for pointer, index in example.marks.items():
            mark, source = example.tokens[index], example.sources[index]
            assert example.chosen[index]
            if mark in numbers:
                line = next(token for token in example.tokens[source::-1].tolist() if token in numbers)
                assert mark == line
            else:
                assert pointer not in sample.evidence
                assert words.id_to_token(int(mark)) == words.id_to_token(int(example.tokens[source])) == "<|page|>"
            above, _, step = pointer.rpartition("/")
            if step.isdigit() and step != "0":
                assert example.lines[index] == example.marks[f"{above}/{int(step) - 1}"]


def test_codes_for_keys_change_nothing_else() -> None:
    for seed in SEEDS:
        question = whole(make_sample(seed, "train"))
        coded = with_codes(question, Random(seed))
        schema = Schema.load(coded.schema)
        assert schema.is_valid(coded.expected)
        assert _values(coded.expected) == _values(question.expected)
        assert list(coded.places.values()) == list(question.places.values())
        for pointer, place in coded.places.items():
            value, old = coded.expected, next(p for p, other in question.places.items() if other == place)
            for step in pointer.split("/")[1:]:
                value = value[int(step)] if isinstance(value, list) else value[step]
            assert re.search(r"\d$", pointer)
            assert len(pointer.split("/")) == len(old.split("/"))
            assert value is not None
        assert schema_outline(schema).count(" = ") == schema_outline(Schema.load(question.schema)).count(" = ")


def _values(value: object) -> list[object]:
    if isinstance(value, dict | list):
        return [leaf for inner in (value.values() if isinstance(value, dict) else value) for leaf in _values(inner)]
    return [value]


def test_sources_stand_before_the_answer_and_show_what_is_copied(taught: Taught, words: Tokenizer) -> None:
    same = copied = 0
    for sample, example in taught:
        pointed = np.flatnonzero(example.sources >= 0)
        assert (example.sources[pointed] < example.answer).all()
        for pointer, (first, last) in example.values.items():
            if isinstance(sample.evidence.get(pointer), tuple) and last - first > 3:
                inner = np.arange(first + 1, last - 1)
                shown = example.sources[inner]
                same += int((example.tokens[shown[shown >= 0]] == example.tokens[inner[shown >= 0]]).sum())
                copied += int((shown >= 0).sum())
        nulls = [first for first, last in example.values.values() if words.decode(example.tokens[first:last].tolist()) == "null"]
        assert {words.id_to_token(int(example.tokens[example.sources[first]])) for first in nulls} <= {"<|page|>"}
    assert copied > 300
    assert same == copied


def test_dates_point_at_their_digits(taught: Taught, words: Tokenizer) -> None:
    found = 0
    for sample, example in taught:
        for pointer, (first, _) in example.values.items():
            place = sample.evidence.get(pointer)
            if place and re.fullmatch(r"\d\d[./-]\d\d[./-]\d{4}", place.raw):
                year = example.sources[first + 1 : first + 5]
                assert [words.id_to_token(int(example.tokens[source])) for source in year] == list(place.raw[6:])
                found += 1
    assert found


@pytest.mark.parametrize("crop", [FEW, SOME, ROWS, MANY])
def test_parts_keep_to_their_schemas_and_show_their_values(crop: Crop) -> None:
    made = 0
    for seed in SEEDS:
        sample = make_sample(seed, "validation")
        question = cropped(sample, crop, Random(seed))
        if question is None:
            continue
        made += 1
        schema = Schema.load(question.schema)
        assert schema.is_valid(question.expected), (question.schema, question.expected)
        flat = [pointer for pointer in question.places if not any(step.isdigit() for step in pointer.split("/"))]
        assert len(flat) <= crop.fields
        for place in question.places.values():
            page = next(page for page in question.pages if page.number == place.page)
            inside = [word.text for word in page.words if place.box.x0 <= word.box.center_x <= place.box.x1]
            assert inside
        assert sum(len(page.words) for page in question.pages) <= sum(len(page.words) for page in sample.pages)
    assert made >= len(SEEDS) // 2


def test_lots_are_always_the_same_and_splits_differ(run_folder: Path) -> None:
    first, again = (make_lot(LESSONS[2], 4, run_folder, 4) for _ in range(2))
    assert [one.tokens.tolist() for one in first] == [one.tokens.tolist() for one in again]
    assert [one.tokens.tolist() for one in first] != [one.tokens.tolist() for one in make_lot(LESSONS[2], 5, run_folder, 4)]
    assert all(len(one) <= LESSONS[2].tokens for one in first)
    assert 0 < len(check_lot(LESSONS[0], run_folder, 3, "validation")) <= 3


def test_strange_words_are_copied_as_the_known_ones_were(taught: Taught, words: Tokenizer) -> None:
    letters = letter_tokens(words)
    for _, example in taught:
        strange = with_strangers(example, letters, Random(1), share=1.0)
        changed = strange.tokens != example.tokens
        assert changed.any()
        assert set(strange.tokens[changed].tolist()) <= letters
        copied = [
            i
            for i in range(example.answer, len(example))
            if example.sources[i] >= 0 and example.tokens[example.sources[i]] == example.tokens[i]
        ]
        assert all(strange.tokens[strange.sources[i]] == strange.tokens[i] for i in copied)
        assert not changed[example.answer :][~example.chosen[example.answer :]].any()


def test_coined_words_are_the_same_wherever_the_known_ones_stood(taught: Taught, words: Tokenizer) -> None:
    known, replaced = lexicon(words), 0
    for _, example in taught:
        coined = with_coined_words(example, known, Random(1), share=1.0)
        pairs = set(zip(example.tokens.tolist(), coined.tokens.tolist(), strict=True))
        assert len({new for _, new in pairs}) == len({old for old, _ in pairs}) == len(pairs)
        for old, new in pairs:
            if old != new:
                replaced += 1
                assert known.of[old][1] == known.of[new][1]
                assert known.of[new][0] not in {known.of[token][0] for token in example.tokens.tolist() if token in known.of}
        assert words.decode(coined.tokens[: example.answer].tolist()).endswith("\nassistant\n")
    assert replaced > 3


def leaf(value: object, pointer: str) -> object:
    for step in pointer.split("/")[1:]:
        value = value[int(step)] if isinstance(value, list) else value[step]  # type: ignore[index]
    return value


def test_values_that_are_taken_away_are_null_and_nowhere_on_the_page() -> None:
    rng = Random(1)
    taken, in_columns = 0, 0
    for sample in samples():
        before = whole(sample)
        after = with_blanks(before, rng, share=0.5)
        assert 0 < len(after.places) <= len(before.places)
        assert Schema.load(after.schema).is_valid(after.expected)
        text = ["".join(word.text for word in page.words) for page in after.pages]
        for pointer in before.places.keys() - after.places.keys():
            taken += 1
            assert leaf(after.expected, pointer) is None
            if in_array(pointer):  # cells of other columns may say the same
                in_columns += 1
                place = before.places[pointer]
                (page,) = (page for page in after.pages if page.number == place.page)
                assert not any(
                    place.box.x0 <= word.box.center_x <= place.box.x1 and place.box.top <= word.box.center_y <= place.box.bottom
                    for word in page.words
                )
                continue
            assert not any("".join(before.places[pointer].raw.split()) in page for page in text)
        for pointer, place in after.places.items():
            assert leaf(after.expected, pointer) == leaf(before.expected, pointer)
            (page,) = (page for page in after.pages if page.number == place.page)
            assert any(place.box.x0 <= word.box.center_x <= place.box.x1 for word in page.words)
        assert before == whole(sample)  # nothing was changed in place
    assert taken - in_columns > 10
    assert in_columns > 10


def test_for_training_a_schema_asks_for_everything() -> None:
    some, everything = (
        sum(sum("/" not in pointer[1:] for pointer in make_sample(seed, "train", everything=all_of).evidence) for seed in SEEDS)
        for all_of in (False, True)
    )
    assert everything > 1.3 * some


def test_batches_hold_everything_and_not_more_tokens_than_asked(run_folder: Path) -> None:
    lot = make_lot(LESSONS[1], 0, run_folder, 12)
    groups = list(batches(lot, 600, Random(0)))
    assert sorted(len(one) for group in groups for one in group) == sorted(map(len, lot))
    assert all(len(group) * max(map(len, group)) <= 600 for group in groups if len(group) > 1)
    arrays = padded(groups[0], 0, 1)
    longest = max(map(len, groups[0]))
    assert arrays["tokens"].shape == arrays["sources"].shape == (len(groups[0]), longest)
    assert (arrays["positions"] == np.arange(longest)).all()
    assert arrays["chosen"].sum() == sum(one.chosen.sum() for one in groups[0])


def test_pictures_stand_before_the_words(run_folder: Path, words: Tokenizer) -> None:
    import dataclasses

    lesson = dataclasses.replace(LESSONS[-1], pictures=1.0, mix=((None, 1.0),))
    lot = make_lot(lesson, 1, run_folder, 2)
    image = words.token_to_id("<|image_pad|>")
    for group in batches(lot, 10_000):
        arrays = padded(group, 0, image)
        per_example = [sum(grid.patches // 4 for grid in one.grids) for one in group]
        assert (arrays["tokens"] == image).sum(1).tolist() == per_example
        assert all(0 < count <= 70 * len(one.grids) for count, one in zip(per_example, group, strict=True))
        assert len(arrays["patches"]) == 4 * sum(per_example)
        assert (arrays["positions"][1] != arrays["positions"][2]).any()


def test_the_curve_is_a_table_of_the_checks() -> None:
    shares = {"values": 0.5, "flat": 0.75, "array": 0.25, "nulls": 1.0, "lines": 0.5, "n": 4}
    entries = [{"step": k, "seconds": 60 * k, "tokens": 10**6 * k, "lesson": 1, "check": shares, "fresh": shares} for k in range(5)]
    lines = [json.dumps(entry) for entry in [{"step": 0, "loss": 3.0}, *entries]]
    rows = list(table(lines, every=3))[2:]
    assert [row.split(" | ")[0] for row in rows] == ["| 0", "| 3", "| 4"]
    assert rows[1].endswith("| 3.00 M | 3 | some fields | 0.500 | 0.500 | 0.750 | 0.250 | 1.000 | 0.500 |")
