"""What the validator rejects is generated again in its place; what cannot be met is left out with a reason."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from drawn_answers import draw, text_of, tokens_of, vocabulary

from pagelift.core import ExtractionError, SchemaError
from pagelift.decoding import Constraint, Finished, Generate, compile_grammar, finish_answer
from pagelift.schema import Schema

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"


class Scripted:
    """Says the given texts, one for each value that is asked for again, and notes what stood before them."""

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)
        self.before: list[str] = []

    def __call__(self, prefix: Sequence[int], constraint: Constraint) -> Sequence[int]:
        self.before.append(text_of(prefix))
        text = self.texts.pop(0)
        tokens = tokens_of(text)
        allowed = constraint.prefix(tokens)
        if allowed < len(tokens):
            self.before[-1] += f" REFUSED {text_of(tokens[allowed:])}"
            return draw(constraint, random.Random(1))
        constraint.accept(tokens)
        assert constraint.finished
        return tokens


def finished(schema: dict[str, Any], text: str, generate: Generate | None = None) -> Finished:
    given = Schema.load(schema)
    result = finish_answer(compile_grammar(given, vocabulary()), text, generate)
    assert given.is_valid(result.data)
    assert json.loads(result.text) == result.data
    return result


ADDRESS = {
    "type": "object",
    "properties": {"country": {"enum": ["US", "DE"]}, "zip": {"type": "string"}, "note": {"type": "string"}},
    "if": {"properties": {"country": {"const": "US"}}},
    "then": {"properties": {"zip": {"pattern": "^[0-9]{5}$"}}},
}


def test_a_valid_answer_stays_as_it_is() -> None:
    text = '{"country": "US", "zip": "12345", "note": "27.80"}'
    assert finished(ADDRESS, text, Scripted()) == Finished(json.loads(text), text)


def test_the_value_is_generated_under_what_the_validator_asked_for() -> None:
    say = Scripted(' "80331",')
    result = finished(ADDRESS, '{"country": "US", "zip": "München", "note": "stays"}', say)
    assert result.data == {"country": "US", "zip": "80331", "note": "stays"}
    assert (result.regenerated, result.dropped) == (("/zip",), ())
    assert say.before == ['{"country": "US", "zip":']


def test_what_was_tried_is_not_allowed_again() -> None:
    say = Scripted(" 7,", " 12,", " 12.0,", " 13,")
    result = finished({"type": "object", "properties": {"n": {"type": "number", "multipleOf": 13}, "m": {}}}, '{"n": 7, "m": 1}', say)
    assert result.regenerated == ("/n",) or result.dropped
    assert "REFUSED" in say.before[0]  # 7 itself


def test_the_second_of_equal_entries() -> None:
    schema = {"type": "object", "properties": {"tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True}}}
    say = Scripted(' "b"]')
    assert finished(schema, '{"tags": ["a", "a"]}', say).data == {"tags": ["a", "b"]}
    assert finished(schema, '{"tags": ["a", "a"]}').data == {"tags": ["a"]}


def test_without_a_model_values_are_left_out_with_a_reason() -> None:
    result = finished(ADDRESS, '{"country": "US", "zip": "München", "note": "stays"}')
    assert result.data == {"country": "US", "zip": None, "note": "stays"}
    assert [(d.pointer, d.value) for d in result.dropped] == [("/zip", "München")]


def test_tries_are_bounded() -> None:
    calls = 0

    def stubborn(_: Sequence[int], constraint: Constraint) -> Sequence[int]:
        nonlocal calls
        calls += 1
        return draw(constraint, random.Random(calls), closing=0.9)

    schema = {"type": "object", "properties": {"a": {"type": "string", "format": "json-pointer", "not": {"maxLength": 20}}}}
    assert finished(schema, '{"a": "x"}', stubborn).data == {"a": None} or calls <= 6
    assert 0 < calls <= 6


def test_a_cut_answer_keeps_what_was_complete_and_says_what_was_not_reached() -> None:
    result = finished(ADDRESS, '{"country": "DE", "zip": "803')
    assert result.data == {"country": "DE", "zip": None, "note": None}
    assert result.never_reached == ("/zip", "/note")


def test_values_that_may_not_be_null_are_not_made_up_for_a_cut_answer() -> None:
    schema = Schema.load({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, nulls="declared")
    with pytest.raises(ExtractionError):
        finish_answer(compile_grammar(schema, vocabulary()), '{"a": "x')


@pytest.mark.parametrize("seed", range(1000, 1060))
def test_random_schemas_end_valid(seed: int, load_script: Any) -> None:
    """A model that knows nothing, under schemas with every keyword: what comes out is valid, whole or cut, or there is a reason."""
    rng = random.Random(seed)
    try:
        schema = Schema.load(load_script(BENCHMARKS / "random_schemas.py").random_schema(rng))
        grammar = compile_grammar(schema, vocabulary())
    except SchemaError:
        return
    tokens = draw(grammar.constraint(), rng)
    text = b"".join(vocabulary().token_bytes[t] for t in tokens).decode(errors="ignore")
    for answer in (text, text[: rng.randint(0, len(text))]):
        try:
            result = finish_answer(grammar, answer, lambda _, constraint: draw(constraint, rng, most=200))
        except ExtractionError:
            continue
        assert schema.is_valid(result.data)
        assert json.loads(result.text) == result.data
