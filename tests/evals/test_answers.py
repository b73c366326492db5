"""True answers as the decoder would write them."""

import json

import numpy as np
import pytest

from pagelift.core import Box, PageContent, Word
from pagelift.decoding import GrammarLimits, JsonStyle, compile_grammar
from pagelift.evals.answers import AnswerText, TokenKind, answer_text, answer_tokens
from pagelift.evals.spelling import spelled
from pagelift.evidence.places import PageIndex
from pagelift.extract.fields import restrict
from pagelift.extract.words_prompt import MARKS, NUMBERS, SAID
from pagelift.schema import Schema
from runtime.scripted import scripted

SCHEMA = Schema.load(
    {
        "type": "object",
        "properties": {
            "number": {"type": "string"},
            "total": {"type": "number"},
            "note": {"type": "string"},
            "rows": {"type": "array", "items": {"type": "object", "properties": {"item": {"type": "string"}, "price": {"type": "number"}}}},
        },
    }
)
TRUTH = {"total": 1234.5, "number": "A-17", "rows": [{"item": "Nut", "price": 2}, {"item": "Bolt", "price": 3}]}


def page(number: int, *lines: str) -> PageIndex:
    words = []
    for row, line in enumerate(lines):
        at = 40.0
        for text in line.split():
            words.append(Word(text, Box(at, 40 + 20 * row, at + 6 * len(text), 50 + 20 * row)))
            at += 6 * len(text) + 4
    return PageIndex(PageContent(number, 400, 300, tuple(words)))


FIRST = page(1, "Invoice A-17", "Total 1.234,50", "Nut 2,00")
SECOND = page(2, "Bolt 3,00")


def test_properties_come_in_schema_order_with_the_digits_on_the_page() -> None:
    answer = answer_text(TRUTH, SCHEMA, [FIRST, SECOND])
    assert answer.text == (
        '{"number": "A-17", "total": 1234.50, "note": null, "rows": [{"item": "Nut", "price": 2.00}, {"item": "Bolt", "price": 3.00}]}'
    )
    assert answer.unknown == {"/note"}


def test_a_window_of_pages_has_what_is_printed_there() -> None:
    text = answer_text(TRUTH, SCHEMA, [FIRST, SECOND], shown=[2]).text
    assert json.loads(text) == {"number": None, "total": None, "note": None, "rows": [{"item": "Bolt", "price": 3}]}


def test_a_group_of_fields_has_only_these() -> None:
    assert answer_text(TRUTH, restrict(SCHEMA, [("total",)]), [FIRST, SECOND]).text == '{"total": 1234.50}'


@pytest.mark.parametrize(
    ("value", "printed", "text"),
    [(27.8, "27,80", "27.80"), (-5, "(5.0)", "-5.0"), (0.19, "19 %", "0.19"), (3, "", "3"), (True, "1", "true"), ("1", "1.0", '"1"')],
)
def test_numbers_as_printed(value: object, printed: str, text: str) -> None:
    assert spelled(value, printed) == text


def test_tokens_that_are_chosen() -> None:
    vocabulary = scripted("").vocabulary
    answer = answer_text(TRUTH, SCHEMA, [FIRST, SECOND])
    found = answer_tokens(answer, compile_grammar(SCHEMA, vocabulary).constraint(), vocabulary)
    pieces = [vocabulary.token_bytes[token] for token in found.tokens]
    assert found.complete
    assert b"".join(pieces).decode() == answer.text
    kinds = np.repeat(found.kinds, [len(piece) for piece in pieces])
    for part, kind in (("number", TokenKind.FORCED), ("A-17", TokenKind.VALUE), ("1234.5", TokenKind.VALUE), ("null", TokenKind.UNKNOWN)):
        begin = answer.text.index(part)
        assert kind in kinds[begin : begin + len(part)]
        assert set(kinds[begin : begin + len(part)]) <= {kind, TokenKind.FORCED}
    between = answer.text.index("}, {") + 1  # whether the list goes on is a choice
    assert kinds[between] == TokenKind.PUNCTUATION
    assert (found.kinds == TokenKind.VALUE).sum() > 8


def test_a_model_that_says_lines_is_shown_them() -> None:
    vocabulary = scripted("", marks=MARKS).vocabulary
    contents = [PageContent(index.number, 400, 300, tuple(word for line in index.lines for word in line)) for index in (FIRST, SECOND)]
    answer = answer_text(TRUTH, SCHEMA, [FIRST, SECOND], marked=contents)
    assert answer.text == answer_text(TRUTH, SCHEMA, [FIRST, SECOND]).text
    found = answer_tokens(answer, compile_grammar(SCHEMA, vocabulary, JsonStyle(marks=SAID)).constraint(), vocabulary)
    assert found.complete
    special = [vocabulary.tokenizer.token_bytes(t).decode() for t in found.tokens.tolist() if t in vocabulary.tokenizer.special_ids]
    assert special == ["<|l00|>", "<|l01|>", "<|page|>", "<|l02|>", "<|l03|>"]
    marks = [kind for t, kind in zip(found.tokens.tolist(), found.kinds, strict=True) if t in vocabulary.tokenizer.special_ids]
    assert marks == [TokenKind.VALUE, TokenKind.VALUE, TokenKind.UNKNOWN, TokenKind.PUNCTUATION, TokenKind.PUNCTUATION]


def test_rows_that_are_not_in_the_order_of_the_lines_have_marks_that_do_not_count() -> None:
    vocabulary = scripted("", marks=MARKS).vocabulary
    contents = [PageContent(index.number, 400, 300, tuple(word for line in index.lines for word in line)) for index in (FIRST, SECOND)]
    truth = {**TRUTH, "rows": [{"item": "Bolt", "price": 3}, {"item": "Nut", "price": 2}]}
    answer = answer_text(truth, SCHEMA, [FIRST, SECOND], marked=contents)
    grammar = compile_grammar(SCHEMA, vocabulary, JsonStyle(marks=SAID), GrammarLimits(lines=NUMBERS[:6]))
    found = answer_tokens(answer, grammar.constraint(), vocabulary)
    assert found.complete
    pairs = zip(found.tokens.tolist(), found.kinds.tolist(), strict=True)
    marks = [(vocabulary.tokenizer.token_bytes(t), kind) for t, kind in pairs if t in vocabulary.tokenizer.special_ids]
    assert marks[-2:] == [(b"<|l03|>", TokenKind.PUNCTUATION), (b"<|l04|>", TokenKind.FORCED)]


def test_an_answer_that_the_grammar_does_not_admit_is_cut() -> None:
    vocabulary = scripted("").vocabulary
    strict = Schema.load({"type": "object", "properties": {"a": {"enum": ["x", "y"]}, "b": {"type": "string"}}})
    found = answer_tokens(AnswerText('{"a": "z", "b": "k"}', frozenset()), compile_grammar(strict, vocabulary).constraint(), vocabulary)
    assert not found.complete
    assert b"".join(vocabulary.token_bytes[token] for token in found.tokens) == b'{"a": "'
