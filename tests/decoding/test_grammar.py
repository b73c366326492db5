"""Grammars of ordinary schemas, token by token."""

from __future__ import annotations

import json
import random
import re
import unicodedata
from decimal import Decimal
from pathlib import Path
from typing import Any

import llguidance
import numpy as np
import pytest
from drawn_answers import MARKS, accepts, draw, text_of, tokens_of, validates, vocabulary

from pagelift.core import ConfigError, EngineError, SchemaError, SchemaRefused
from pagelift.decoding import Grammar, GrammarLimits, JsonStyle, compile_grammar, parse_partial, unpack_mask
from pagelift.decoding.format_patterns import FORMAT_PATTERNS
from pagelift.decoding.guards import Guard
from pagelift.decoding.matching import GrammarConstraint
from pagelift.decoding.number_patterns import shows_in_digits
from pagelift.decoding.scalar_values import GUIDANCE_FORMATS, string_values, without_lookahead
from pagelift.decoding.values import ByGuidance
from pagelift.schema import Schema, report
from pagelift.schema import keywords as kw

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"
INVOICE = {
    "type": "object",
    "properties": {
        "vendor": {"type": "string"},
        "date": {"type": "string", "format": "date"},
        "total": {"type": "number", "minimum": 0, "multipleOf": 0.01},
        "paid": {"type": "boolean"},
        "currency": {"enum": ["EUR", "USD"]},
        "address": {"type": "object", "properties": {"zip": {"type": "string", "pattern": "^[0-9]{5}$"}}},
        "rows": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "integer"}}}},
    },
    "required": ["vendor"],
}
ANSWER = (
    '{"vendor": "Müller \\"&\\" 中文", "date": "2024-01-31", "total": 27.80, "paid": null, "currency": "EUR", '
    '"address": {"zip": "80331"}, "rows": [{"name": "item", "n": 1}, {"name": null, "n": -20}]}'
)


def grammar(schema: Any, **options: Any) -> Grammar:
    return compile_grammar(Schema.load(schema), vocabulary(), **options)


def test_an_answer_with_digits_as_printed_and_unescaped_text() -> None:
    assert accepts(grammar(INVOICE).constraint(), ANSWER)


@pytest.mark.parametrize("style", [JsonStyle(), JsonStyle.compact(), JsonStyle.indented(2), JsonStyle.indented(4)])
def test_styles(style: JsonStyle) -> None:
    constraint = grammar(INVOICE, style=style).constraint()
    assert accepts(constraint, style.write(json.loads(ANSWER)))
    for other in (JsonStyle(), JsonStyle.compact(), JsonStyle.indented(2), JsonStyle.indented(4)):
        if other != style:
            assert not accepts(grammar(INVOICE, style=style).constraint(), other.write(json.loads(ANSWER)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"paid": null, ', ""),  # a property left out
        ('"vendor"', ' "vendor"'),  # free white space
        ("null", "none"),
        ("27.80", "-27.80"),
        ("27.80", "27.805"),
        ("27.80", "2.78e1"),
        ("2024-01-31", "31.01.2024"),
        ("中文", "\\u4e2d"),
        ("中文", "\\f"),
        ("80331", "8033"),
        ("EUR", "CHF"),
        ("-20", "-20.0"),
        ("-20", "-0"),
        ("]}", "], }"),
    ],
)
def test_what_no_answer_may_be(old: str, new: str) -> None:
    assert old in ANSWER
    assert not accepts(grammar(INVOICE).constraint(), ANSWER.replace(old, new, 1))


def test_forced_tokens_are_accepted_and_cost_no_choice() -> None:
    constraint = grammar(INVOICE).constraint()
    forced = constraint.forced()
    assert text_of(forced).startswith('{"vendor')
    assert constraint.forced() == forced
    for token in forced:
        assert constraint.allowed().mask[token // 32] >> (token % 32) & 1
        constraint.accept([token])
    assert not constraint.finished


def test_only_stop_tokens_follow_the_end() -> None:
    constraint = grammar(INVOICE).constraint()
    constraint.accept(tokens_of(ANSWER))
    assert constraint.finished
    assert constraint.forced() == ()
    stop = list(vocabulary().stop_tokens)
    assert constraint.allowed().ids is not None
    assert constraint.allowed().ids.tolist() == stop  # type: ignore[union-attr]
    assert constraint.prefix([stop[1], 5]) == 1
    constraint.accept([stop[1]])
    with pytest.raises(EngineError, match="is not what the grammar allows"):
        constraint.accept([tokens_of("{")[0]])
    constraint.rollback(2)
    assert not constraint.finished


def test_the_mask_is_what_can_be_accepted() -> None:
    constraint = grammar(INVOICE).constraint()
    constraint.accept(tokens_of(ANSWER[:30]))
    given = constraint.allowed()
    allowed = unpack_mask(given.mask, vocabulary().size)
    assert given.ids is not None
    assert np.array_equal(np.flatnonzero(allowed), given.ids)
    for token in range(vocabulary().size):
        assert constraint.prefix([token]) == int(allowed[token])


def test_going_back_and_copies() -> None:
    rng = random.Random(5)
    constraint = grammar(INVOICE).constraint()
    tokens = draw(constraint.copy(), rng)
    for cut in range(0, len(tokens), 7):
        fresh = grammar(INVOICE).constraint()
        fresh.accept(tokens[:cut])
        other = fresh.copy()
        assert other.prefix(tokens[cut:]) == len(tokens) - cut
        other.accept(tokens[cut:])
        other.rollback(len(tokens) - cut)
        assert np.array_equal(other.allowed().mask, fresh.allowed().mask)
        assert list(other.forced()) == list(fresh.forced())


@pytest.mark.parametrize("seed", range(20))
def test_drawn_answers_are_valid(seed: int) -> None:
    schema = Schema.load(INVOICE)
    tokens = draw(compile_grammar(schema, vocabulary()).constraint(), random.Random(seed), most=2000)
    text = text_of(tokens)
    assert validates(schema, text) or "-02-" in text or "-31" in text  # dates are checked against the calendar at the end
    assert list(json.loads(text)) == list(INVOICE["properties"])  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "string", "maxLength": 3}, ['"äöü"', '""', "null"], ['"abcd"']),
        ({"type": "integer", "minimum": 3, "exclusiveMaximum": 12}, ["3", "11"], ["2", "12", "07"]),
        ({"const": {"a": [1]}}, ['{"a": [1]}'], ['{"a": [2]}', "null"]),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2}, ["[1]", "[1, null]"], ["[]", "[1, 2, 3]"]),
        ({"type": "array", "prefixItems": [{"const": "a"}, {"type": "number"}], "items": False}, ["[]", '["a"]', '["a", 2.5]'], ["[1]"]),
        ({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "boolean"}}]}, ['"x"', "[true]"], ["[1]", "1"]),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, ["{}", '{"a": 1, "b": null}'], ['{"a": "x"}']),
        ({"type": "object", "patternProperties": {"^n_": {"type": "number"}}, "additionalProperties": False}, ['{"n_a": 1}'], ['{"x": 1}']),
        ({"allOf": [{"type": "integer", "minimum": 2}, {"maximum": 4}]}, ["2", "4"], ["1", "5"]),
        ({"oneOf": [{"type": ["string", "null"]}, {"type": ["number", "null"]}]}, ['"x"', "5"], ["null"]),
        (
            {"type": "object", "propertyNames": {"enum": ["alpha", "beta"]}, "additionalProperties": {"type": "integer"}},
            ["{}", '{"beta": 2}', '{"alpha": 1, "beta": null}'],
            ['{"alpha": 1, "alpha": 2}', '{"gamma": 1}', '{"alpha": "x"}'],
        ),
        ({"type": "object"}, ["{}", '{"a": [1, {"b": "x"}]}'], ["[]", "null"]),
    ],
)
def test_keywords(schema: dict[str, Any], good: list[str], bad: list[str]) -> None:
    for text in good:
        assert accepts(grammar(schema).constraint(), text), text
    for text in bad:
        assert not accepts(grammar(schema).constraint(), text), text


def test_recursion_may_end_and_optional_objects_are_written() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}, "child": {"$ref": "#"}}}
    assert accepts(grammar(schema).constraint(), '{"a": {"b": null}}')
    assert accepts(grammar(schema).constraint(), '{"a": {"b": null}, "child": {"a": {"b": "x"}}}')
    assert not accepts(grammar(schema).constraint(), '{"child": {"a": {"b": null}}}')


def test_what_may_not_be_null_and_is_not_required_can_be_left_out() -> None:
    schema = Schema.load(
        {"type": "object", "properties": {"a": {"type": "string"}, "b": {"enum": ["x"]}, "c": {"type": "null"}}}, nulls="declared"
    )
    for text in ('{"c": null}', '{"a": "q", "c": null}', '{"b": "x", "c": null}', '{"a": "", "b": "x", "c": null}'):
        assert accepts(compile_grammar(schema, vocabulary()).constraint(), text), text
    assert not accepts(compile_grammar(schema, vocabulary()).constraint(), '{"b": "x"}')


def test_more_keys_than_are_listed_are_refused() -> None:
    with pytest.raises(SchemaRefused, match="no value satisfies"):
        grammar({"type": "object", "propertyNames": {"enum": ["a", "b"]}, "minProperties": 3})


def test_no_value_at_all_is_refused() -> None:
    with pytest.raises(SchemaRefused, match="no value satisfies"):
        grammar({"allOf": [{"type": "integer", "minimum": 5, "nullable": False}, {"maximum": 3}]})


def test_grammars_are_compiled_once() -> None:
    assert grammar(INVOICE).compiled is grammar(dict(INVOICE)).compiled
    assert grammar(INVOICE).compiled is not grammar(INVOICE, style=JsonStyle.compact()).compiled


MARKED = JsonStyle(marks=MARKS)


def test_marks_stand_before_scalars_outside_of_arrays_and_before_entries() -> None:
    text = ANSWER.replace(": ", ": <|box_start|>").replace('"address": <|box_start|>{', '"address": {').replace("[{", "[<|box_end|>{")
    head, rows = text.split('"rows": <|box_start|>')
    rows = rows.replace(": <|box_start|>", ": ").replace(", {", ", <|box_start|>{")
    constraint = grammar(INVOICE, style=MARKED).constraint()
    assert accepts(constraint, head + '"rows": ' + rows)
    assert not accepts(grammar(INVOICE, style=MARKED).constraint(), ANSWER)
    assert not accepts(grammar(INVOICE).constraint(), head + '"rows": ' + rows)


def test_rows_of_a_list_go_down_the_pages() -> None:
    schema = {"properties": {"rows": {"type": "array", "items": {"properties": {"a": {"type": "integer"}}}}, "b": {"type": "integer"}}}
    one, other = MARKS
    limits = GrammarLimits(lines=(one, other, other, one))

    def answer(*marks: str) -> str:
        return '{"rows": [' + ", ".join(f'{mark}{{"a": 1}}' for mark in marks) + f'], "b": {one}3}}'

    for marks in [(one, other, one), (other, other, one), (one, one), (one, other, other, one), ()]:
        assert accepts(grammar(schema, limits=limits, style=MARKED).constraint(), answer(*marks))
    for marks in [(one, one, other), (other, one, one), (other, other, other), (one, other, other, one, one)]:
        assert not accepts(grammar(schema, limits=limits, style=MARKED).constraint(), answer(*marks))
    constraint = grammar(schema, limits=limits, style=MARKED).constraint()
    constraint.accept(tokens_of('{"rows": [' + f'{one}{{"a": 1}}, {one}{{"a": 1}}'))
    assert not constraint.prefix(tokens_of(","))  # there is no further line
    constraint.rollback(len(tokens_of(f'{one}{{"a": 1}}')))
    assert [constraint.prefix(tokens_of(mark)) for mark in MARKS] == [1, 1]


def test_texts_of_a_list_may_stand_on_one_line() -> None:
    schema = {"properties": {"words": {"type": "array", "items": {"type": "string"}}}}
    assert accepts(grammar(schema, style=MARKED).constraint(), '{"words": [<|box_end|>"a", <|box_end|>"b", <|box_end|>"c"]}')


@pytest.mark.parametrize("seed", range(40))
def test_marks_add_nothing_to_an_answer(seed: int, load_script: Any) -> None:
    """Under random schemas: what is left without the marks is an answer under the plain grammar; the wide one takes it as it is."""
    rng = random.Random(seed)
    try:
        schema = Schema.load(load_script(BENCHMARKS / "random_schemas.py").random_schema(rng))
        given = compile_grammar(schema, vocabulary(), MARKED)
    except SchemaError:
        return
    tokens = draw(given.constraint(), rng)
    text = text_of(tokens)
    if parse_partial(text).complete and unicodedata.normalize("NFC", text) == text:
        assert any(token in vocabulary().tokenizer.special_ids for token in tokens) or not re.search(r'[:\[] ?["\d]', text)
        plain = compile_grammar(schema, vocabulary())
        assert accepts(plain.constraint(), text)
        kept = [token for token in tokens if token not in vocabulary().tokenizer.special_ids]
        assert given._wide().consume_tokens(tokens) or not plain._wide().consume_tokens(kept)


def test_a_style_with_other_signs_is_refused() -> None:
    with pytest.raises(ConfigError, match="is no JSON style"):
        JsonStyle(separator=";")


@pytest.mark.parametrize("seed", range(2000, 2040))
def test_forced_tokens_are_those_of_the_tokenizer(seed: int, load_script: Any) -> None:
    """Under random schemas, in every style: what the grammar forces is what the tokenizer makes of the whole text."""
    rng = random.Random(seed)
    try:
        schema = Schema.load(load_script(BENCHMARKS / "random_schemas.py").random_schema(rng))
        given = compile_grammar(schema, vocabulary(), rng.choice([JsonStyle(), JsonStyle.compact(), JsonStyle.indented(2)]))
    except SchemaError:
        return
    tokens = draw(given.constraint(), rng)
    text = b"".join(vocabulary().token_bytes[t] for t in tokens).decode(errors="ignore")
    if parse_partial(text).complete and unicodedata.normalize("NFC", text) == text:
        assert accepts(given.constraint(), text)


def test_another_grammar_takes_over_when_a_limit_is_met() -> None:
    given = grammar(INVOICE)
    tight = llguidance.LLMatcher(
        vocabulary().engine,
        llguidance.LLMatcher.grammar_from_lark(given.compiled.lark),
        log_level=0,
        limits=llguidance.LLParserLimits(step_lexer_fuel=300),
    )
    constraint = GrammarConstraint(tight, vocabulary(), Guard(vocabulary(), GrammarLimits()), given._wide)
    tokens = tokens_of(ANSWER.replace("2024-01-31", "not a date"))
    for token in tokens:
        assert constraint.allowed().mask[token // 32] >> (token % 32) & 1
        constraint.accept([token])
    constraint.rollback(len(tokens) - 1)
    constraint.accept(tokens[1:])
    alone = GrammarConstraint(tight.deep_copy(), vocabulary(), Guard(vocabulary(), GrammarLimits()))
    with pytest.raises(EngineError, match="the grammar failed after"):
        accepts(alone, ANSWER)


def test_the_report_names_what_the_grammar_knows() -> None:
    assert set(FORMAT_PATTERNS) | GUIDANCE_FORMATS == kw.GRAMMAR_FORMATS
    for step in (1, 2, 3, 5, 7, 10, 25, 40, 0.01, 0.25, 0.3, 0.125, 1e-3, 12.5, 1e-300, 1e300, 0.2, 64, 1024):
        assert report.shows_in_digits(step) == shows_in_digits(Decimal(str(step))), step
    for pattern in ("^[0-9]{5}$", "[a-z]+", "(?<=a)b", r"^(\w)\1$", "^(?:a|b)$", "^.{3,400}$", "a(?=b)"):
        in_report = report.checked_by("pattern", {"pattern": pattern}) == "grammar"
        assert in_report == isinstance(next(string_values({"type": "string", "pattern": pattern})), ByGuidance), pattern


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        ("^(?=.*[0-9])[a-z0-9]+$", ["^(?:.*[0-9])", "^[a-z0-9]+$"]),
        (r"^(?!.*(\.\.|[)]))(?=a)[a-z.]+$", ["^(?:a)", "^[a-z.]+$"]),
        ("^(?=a)b|c$", ["^(?=a)b|c$"]),
        ("^(?:a|b)$", ["^(?:a|b)$"]),
        ("a(?=b)", ["a(?=b)"]),
    ],
)
def test_lookahead_at_the_beginning(pattern: str, parts: list[str]) -> None:
    assert without_lookahead(pattern) == parts


def test_what_a_pattern_looks_ahead_to_is_enforced() -> None:
    schema = {"type": "string", "pattern": "^(?=.*[0-9])(?!q)[a-z0-9]+$"}
    for text, fits in (('"abc1"', True), ('"1"', True), ('"abc"', False), ('"AB1"', False), ('"q1"', True)):  # the last: at the end
        assert accepts(grammar(schema).constraint(), text) == fits, text
