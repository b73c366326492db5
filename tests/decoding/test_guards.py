"""Answers that would run on are ended by the grammar."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest
from drawn_answers import vocabulary
from hypothesis import given
from hypothesis import strategies as st

from pagelift.core import ConfigError
from pagelift.decoding import Constraint, GrammarLimits, compile_grammar, parse_partial
from pagelift.decoding.guards import cycles, repeats
from pagelift.decoding.scanning import Position, advance
from pagelift.schema import Schema


def answer(schema: Any, wanted: str, limits: GrammarLimits = GrammarLimits()) -> str:  # noqa: B008
    """What a model says that wants to say `wanted`, which never ends by itself, and closes what is open once it may not go on."""
    constraint: Constraint = compile_grammar(Schema.load(schema), vocabulary(), limits=limits).constraint()
    goal, texts, said = wanted.encode(), vocabulary().token_bytes, b""
    while not constraint.finished:
        assert len(said) < len(goal), "it went on to the end"
        ids = constraint.allowed().ids
        assert ids is not None
        rest = goal[len(said) :] if goal.startswith(said) else b""
        fitting = [t for t in ids.tolist() if texts[t] and rest.startswith(texts[t])]
        closing = [t for t in ids.tolist() if texts[t] in (b'"', b"]", b"}", b'"}', b'"]', b"}]", b'"}]')]
        token = max(fitting, key=lambda t: len(texts[t])) if fitting else (closing or ids.tolist())[0]
        constraint.accept([token])
        said += texts[token]
    return said.decode()


TEXT = {"type": "object", "properties": {"note": {"type": "string"}}}
ROWS = {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer"}}}}


@pytest.mark.parametrize("phrase", [" ", "-", "ab", " the same phrase", "10 20 30, ", "中文 Straße and so on, forty letters or more; "])
def test_a_phrase_again_and_again_ends_the_string(phrase: str) -> None:
    note = json.loads(answer(TEXT, '{"note": "' + phrase * 1000))["note"]
    assert len(note) > 3 * len(phrase)
    assert len(note) < max(60, 14 * len(phrase) + 40)


def test_text_that_goes_on_without_repeating_is_left_alone_up_to_the_size_of_the_document() -> None:
    rng = random.Random(3)
    text = "".join(rng.choice("abcdefgh ijklmnop") for _ in range(3000))
    note = json.loads(answer(TEXT, '{"note": "' + text, GrammarLimits(max_characters=1000)))["note"]
    assert 1000 <= len(note) < 1020
    assert text.startswith(note)


def test_the_same_row_again_and_again_ends_the_list() -> None:
    assert 24 <= len(json.loads(answer(ROWS, "[" + '{"a": 7}, ' * 100))) <= 27


def test_rows_that_take_turns() -> None:
    rows = json.loads(answer(ROWS, "[" + '{"a": 7}, {"a": 8}, {"a": null}, ' * 100))
    assert 3 * 24 <= len(rows) <= 3 * 26


NAMED = {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}, "n": {"type": "number"}}}}


@pytest.mark.parametrize(
    ("turn", "printed", "rows"),
    [
        ('{"a": "Red pen", "n": 1.5}, ', {"red": 1, "pen": 4}, 4),  # 1 time, 2 to spare, and the one that is too many
        ('{"a": "Red pen", "n": 2}, ', {"red": 1, "pen": 4, "2": 6}, 9),
        ('{"a": "Red pen", "n": 1}, {"a": "Ink", "n": 3}, ', {"red": 1, "pen": 1, "ink": 1}, 7),
        ('{"a": "Red pen", "n": 1}, {"a": "Ink", "n": 3}, ', {"blue": 1}, 49),  # nothing of it is printed: nothing is known
    ],
)
def test_rows_do_not_come_more_often_than_they_are_printed(turn: str, printed: dict[str, int], rows: int) -> None:
    said = json.loads(answer(NAMED, "[" + turn * 100, GrammarLimits(printed=printed)))
    assert rows <= len(said) <= rows + 2


def test_the_same_row_as_often_as_it_is_printed_is_left_alone() -> None:
    rows = [{"a": "Coffee", "n": 2.5}] * 9 + [{"a": "Tea", "n": 1}]
    wanted = json.dumps(rows)
    assert answer(NAMED, wanted, GrammarLimits(printed={"coffee": 9, "tea": 1})) == wanted


def test_no_more_rows_than_the_document_can_have() -> None:
    wanted = "[" + "".join(f'{{"a": {i}}}, ' for i in range(100))
    assert len(json.loads(answer(ROWS, wanted, GrammarLimits(max_rows=40)))) == 40
    assert len(json.loads(answer({"type": "array", "items": {"type": "integer"}}, "[" + "1, 2, " * 50, GrammarLimits(max_rows=40)))) == 40


def test_a_schema_that_wants_more_rows_gets_them() -> None:
    schema = {"type": "array", "items": {"enum": ["x"]}, "minItems": 30}
    assert len(json.loads(answer(schema, "[" + '"x", ' * 100, GrammarLimits(max_rows=5)))) == 30


def test_keys_are_not_used_twice() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    text = answer(schema, '{"k": 1, "kk": 1, "k": 1, ' + '"k": 1, ' * 100)
    pairs = json.loads(text, object_pairs_hook=list)
    assert [key for key, _ in pairs[:2]] == ["k", "kk"]
    assert len(pairs) > 2
    assert len({key for key, _ in pairs}) == len(pairs)


def test_keys_with_quotes_are_not_used_twice() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    key = r'"a\"b": 1, '
    text = answer(schema, "{" + key + r'"a\"bb": 1, ' + key * 100)
    pairs = json.loads(text, object_pairs_hook=list)
    assert [name for name, _ in pairs[:2]] == ['a"b', 'a"bb']
    assert len({name for name, _ in pairs}) == len(pairs)


def test_objects_in_objects_come_to_an_end() -> None:
    schema = {"type": "object", "properties": {"child": {"$ref": "#"}}}
    text = answer(schema, '{"child": ' * 100, GrammarLimits(max_depth=9))
    assert json.loads(text)
    assert text.count("{") == 9


def test_limits_are_checked() -> None:
    with pytest.raises(ConfigError, match="max_rows is 0"):
        GrammarLimits(max_rows=0)


VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=10,
)


@given(VALUES, st.data())
def test_where_an_answer_stands(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value, ensure_ascii=False).encode()
    cut = data.draw(st.integers(0, len(text)))
    whole = bytearray(text[:cut])
    at_once = advance(Position(), whole, bytes(whole))
    by_parts = Position()
    splits = sorted(data.draw(st.sets(st.integers(0, cut), max_size=6)) | {0, cut})
    for begin, end in itertools.pairwise(splits):
        by_parts = advance(by_parts, whole, text[begin:end])
    assert at_once == by_parts
    assert len(at_once.stack) == len(parse_partial(text[:cut].decode(errors="ignore")).open)
    if cut == len(text):
        assert (at_once.stack, at_once.string) == ((), -1)


@given(st.text(min_size=1, max_size=30), st.integers(0, 60), st.text(max_size=20))
def test_repetition_is_seen_and_nothing_else(phrase: str, count: int, before: str) -> None:
    said = (before + phrase * count).encode()
    if repeats(said, 12):
        assert len(said) >= 32
        assert any(said.endswith(said[-p:] * 5) for p in range(1, 101))
    if count == 60 and len(phrase.encode()) * count >= 32:
        assert repeats(said, 12)


def test_short_lists_with_equal_entries_are_no_cycle() -> None:
    assert not cycles((1,) * 12, 12)
    assert cycles((1,) * 13, 12)
    assert cycles((1, 2) * 13, 12)
    assert not cycles(tuple(range(100)), 12)
