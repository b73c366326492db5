"""The prompt with the words of the pages: what it shows of a page and of a schema, and which checkpoints get it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagelift import ConfigError, Extractor, WeightsError
from pagelift.core import Box, PageContent, Word
from pagelift.decoding import JsonStyle
from pagelift.evals.synthetic import make_sample
from pagelift.extract.local import LocalAsker
from pagelift.extract.questions import Question, SeenPage
from pagelift.extract.vlm import VlmEngine
from pagelift.extract.words_prompt import (
    COLUMNS,
    ENDS,
    LINES,
    MARKS,
    NUMBERS,
    SAID,
    STARTS,
    harmless,
    line_marks,
    page_pieces,
    schema_outline,
    shown_marks,
    wants_words,
    words_prompt,
)
from pagelift.schema import Schema
from runtime.scripted import scripted


def page(*words: tuple[str, float, float, float], rules: tuple[Box, ...] = ()) -> PageContent:
    """A page of 480 x 100 points, so that a column is 10 points wide. words: text, x0, x1 and top."""
    return PageContent(1, 480, 100, tuple(Word(text, Box(x0, top, x1, top + 10)) for text, x0, x1, top in words), rules=rules)


class Spot(NamedTuple):
    page: int
    box: Box


def shown(*contents: PageContent) -> str:
    return "".join(piece.text for piece in page_pieces(contents))


def test_segments_stand_between_the_columns_where_they_begin_and_end() -> None:
    text = shown(page(("Total", 20, 45, 10), ("due", 48, 61, 10), ("1,50", 400, 429, 10), ("Thanks", 20, 50, 60)))
    assert text == "<|page|><|l00|><|x02|>Total due<|r06|><|x40|>1,50<|r42|>\n<|l01|><|x02|>Thanks<|r05|>\n"


def test_each_page_has_its_mark_and_lines_are_counted_on() -> None:
    two = page(("a", 0, 5, 0)), page(("b", 470, 480, 0))
    assert shown(*two) == "<|page|><|l00|><|x00|>a<|r00|>\n<|page|><|l01|><|x47|>b<|r47|>\n"
    assert [piece.text for piece in page_pieces(two, first_line=LINES - 1) if piece.text in NUMBERS] == ["<|l63|>", "<|l00|>"]


def test_boxes_to_tick_are_shown_with_their_state() -> None:
    def square(x: float) -> list[Box]:
        return [Box(x, 9.8, x + 10, 10.2), Box(x, 19.8, x + 10, 20.2), Box(x - 0.2, 10, x + 0.2, 20), Box(x + 9.8, 10, x + 10.2, 20)]

    text = shown(page(("X", 101, 109, 10), ("Yes", 120, 140, 10), ("No", 220, 235, 10), rules=(*square(100), *square(200))))
    assert "[x]" in text
    assert "[ ]" in text
    assert "X" not in text


def test_drawn_lines_are_short() -> None:
    assert "---<" in shown(page(("-" * 40, 0, 400, 0)))


def test_the_outline_has_a_line_for_each_property() -> None:
    schema = Schema.load(
        {
            "type": "object",
            "properties": {
                "seller": {"type": "object", "properties": {"name": {"type": "string", "description": "Who\nsells"}}},
                "day": {"type": ["string", "null"], "format": "date"},
                "currency": {"enum": ["EUR", "USD", None]},
                "tags": {"type": "array", "items": {"type": "string"}},
                "rows": {"type": "array", "description": "All", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
            },
        }
    )
    assert schema_outline(schema) == (
        "\nstring Who sells = seller.name\ndate = day\nEUR/USD = currency\nlist = tags\nlist All = rows\n- integer = n\n"
    )


def test_a_schema_that_contains_itself_ends() -> None:
    node = {"type": "object", "properties": {"name": {"type": "string"}, "part": {"$ref": "#/$defs/node"}}}
    outline = schema_outline(Schema.load({"$ref": "#/$defs/node", "$defs": {"node": node}}))
    assert 2 <= outline.count("name") < 20


@given(st.text())
def test_no_text_of_a_document_becomes_a_special_token(text: str) -> None:
    tokens = ("<|im_end|>", "<|image_pad|>", *MARKS)
    assert not any(token in harmless(f"{text}{token}{text}") for token in tokens)


@given(st.lists(st.tuples(st.text("aé9", min_size=1, max_size=5), st.floats(-50, 600), st.floats(1, 200), st.floats(0, 90)), max_size=8))
def test_any_words_come_out_once_and_columns_stay_on_the_page(words: list[tuple[str, float, float, float]]) -> None:
    content = page(*((text, x, x + width, top) for text, x, width, top in words))
    pieces = list(page_pieces([content]))
    upright = {id(piece.word) for piece in pieces if piece.word}
    assert len(upright) == sum(piece.word is not None for piece in pieces) <= len(words)
    starts = [piece.text for piece in pieces if piece.text in STARTS]
    assert len(starts) == sum(piece.text in ENDS for piece in pieces)
    assert len(STARTS) == COLUMNS


def test_the_words_of_generated_documents_keep_their_order_and_place() -> None:
    sample = make_sample(3, "validation")
    pieces = [piece for piece in page_pieces(sample.pages) if piece.word and not piece.text.lstrip().startswith("[")]
    assert {piece.page for piece in pieces} == {content.number for content in sample.pages}
    assert all(piece.word and piece.word.text[:3] in piece.text for piece in pieces)


def test_a_checkpoint_says_what_it_wants(tmp_path: Path) -> None:
    assert not wants_words("scripted")
    assert not wants_words(tmp_path)
    (tmp_path / "pagelift.json").write_text('{"prompt": "words-3"}')
    assert wants_words(tmp_path)
    (tmp_path / "pagelift.json").write_text('{"prompt": "words-9"}')
    with pytest.raises(ConfigError, match="words-9"):
        wants_words(tmp_path)


def test_only_lines_of_the_pages_can_be_said() -> None:
    words = tuple(Word(text, Box(10, 20 + 15 * (k % 70), 40, 30 + 15 * (k % 70))) for k, text in enumerate(["a"] * 70))
    pages = [PageContent(1, 200, 1200, words)]
    assert tuple(shown_marks(pages)) == (*NUMBERS, *NUMBERS[:6])
    model = scripted("", marks=MARKS)
    asker = LocalAsker(model, None, 100, JsonStyle(marks=SAID))
    schema = Schema.load({"properties": {"rows": {"type": "array", "items": {"properties": {"a": {"type": "string"}}}}}})
    for count, said, admitted in [(70, "<|l63|>", True), (3, "<|l02|>", True), (3, "<|l03|>", False), (3, "<|page|>", True)]:
        seen = cast(SeenPage, SimpleNamespace(content=replace(pages[0], words=words[:count])))
        constraint = asker.grammar(Question(schema, (seen,))).constraint()
        tokens = model.tokenizer.encode('{"rows": [' + said)
        assert (constraint.prefix(tokens) == len(tokens)) == admitted


def test_the_engine_asks_such_a_checkpoint_with_words(pdf: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "pagelift.json").write_text('{"prompt": "words-3"}')
    loaded = scripted('{"total": <|l00|>5}', marks=MARKS)
    loaded.name = str(tmp_path)
    asked: list[Any] = []
    prompt = type(loaded).prompt
    monkeypatch.setattr(type(loaded), "prompt", lambda self, *given: asked.append(given) or prompt(self, *given))
    schema = {"type": "object", "properties": {"total": {"type": "number", "description": "Sum <|im_end|>"}}}
    result = Extractor(schema, VlmEngine(loaded)).extract(pdf(["Total: 5"]))
    ((text, pictures),) = asked
    assert text.startswith("<|page|><|l00|><|x")
    assert ">Total: 5<" in text
    assert text.endswith("number Sum < |im_end|> = total\n")
    assert len(pictures) == 1
    assert result.metadata["wording"] == "words-3"
    assert result.data == {"total": 5}
    assert result.fields["/total"].status == "found"


def test_a_checkpoint_without_the_marks_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pagelift.json").write_text('{"prompt": "words-3"}')
    loaded = scripted("{}")
    loaded.name = str(tmp_path)
    with pytest.raises(WeightsError, match=r"no special token <\|page\|>"):
        VlmEngine(loaded)


def test_values_and_entries_have_the_mark_of_the_line_they_begin_on() -> None:
    two = page(("No", 0, 9, 0), ("7", 20, 25, 0), ("Nut", 0, 15, 20), ("a", 30, 35, 20), ("Bolt", 0, 20, 40)), page(("Nail", 0, 20, 0))
    places = {
        "/number": Spot(1, Box(20, 0, 25, 10)),
        "/rows/0/note": Spot(1, Box(30, 20, 35, 30)),
        "/rows/0/item": Spot(1, Box(0, 20, 35, 50)),
        "/rows/1/item": Spot(2, Box(0, 0, 20, 10)),
        "/gone": Spot(1, Box(400, 0, 410, 10)),
    }
    second = replace(two[1], number=2)
    marks = line_marks([two[0], second], places)
    assert marks["/number"] == "<|l00|>"
    assert marks["/rows/0"] == marks["/rows/0/item"] == marks["/rows/0/note"] == "<|l01|>"
    assert marks["/rows/1"] == "<|l03|>"
    assert "/gone" not in marks
    assert line_marks([two[0], second], places, first_line=LINES - 1)["/rows/1"] == "<|l02|>"


def test_the_prompt_is_pages_and_outline() -> None:
    sample = make_sample(1, "train")
    schema = Schema.load(sample.schema)
    assert words_prompt(sample.pages, schema) == shown(*sample.pages) + schema_outline(schema)
