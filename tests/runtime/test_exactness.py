"""Forced tokens, drafts, head rows, batching and reuse change nothing: answers are those of plain masked greedy decoding."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pagelift.decoding import Sampling
from pagelift.models import load_config, text_positions
from pagelift.models.prompt import Prompt
from pagelift.runtime import Runner, RuntimeSettings
from pagelift.runtime.sequences import Sequence
from pagelift.weights import Tokenizer
from runtime.fakes import FOLDER, FakeModel, Guided, hashed, plain, spoken

CONFIG, TOKENIZER = load_config(FOLDER), Tokenizer.load(FOLDER)
VOCABULARY = CONFIG.text.vocab_size
STOP = min(TOKENIZER.stop_tokens)
WORDS = ["Nut", "M8", "12.50", "1.234,50", "A-17", "Köln", "EUR", "12.03.2024", 'q"t', "\\", "3", "金額", "-7", "null"]

SCALARS = st.sampled_from(
    [
        {"type": ["string", "null"], "maxLength": 12},
        {"type": "string", "maxLength": 8},
        {"type": ["number", "null"]},
        {"type": "integer", "minimum": 0, "maximum": 500},
        {"type": ["boolean", "null"]},
        {"enum": ["EUR", "USD", None, 3]},
    ]
)
NAMES = st.lists(st.sampled_from(["a", "total", "item_name", "no", "ü", "rows2"]), min_size=1, max_size=4, unique=True)


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return NAMES.flatmap(lambda names: st.tuples(*[inner] * len(names)).map(lambda parts: as_object(names, parts)))


def as_object(names: list[str], parts: tuple[Any, ...]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(zip(names, parts, strict=True)), "required": names, "additionalProperties": False}


def lists(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return inner.map(lambda items: {"type": "array", "items": items, "maxItems": 4})


SCHEMAS = objects(st.recursive(SCALARS, lambda inner: objects(inner) | lists(inner), max_leaves=5))
PAGES = st.lists(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join), max_size=2)


def value_for(schema: dict[str, Any], draw: Any) -> Any:
    """A value that the schema allows, mostly made of the words of pages."""
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    kind = schema["type"] if isinstance(schema["type"], str) else schema["type"][0]
    if "null" in schema["type"] and draw(st.integers(0, 4)) == 0:
        return None
    if kind == "object":
        return {name: value_for(part, draw) for name, part in schema["properties"].items()}
    if kind == "array":
        return [value_for(schema["items"], draw) for _ in range(draw(st.integers(0, 4)))]
    if kind == "string":
        return draw(st.sampled_from(WORDS))[: schema["maxLength"]]
    return draw(st.sampled_from({"number": [12.5, 1234.5, -7, 3], "integer": [3, 12, 499], "boolean": [True, False]}[kind]))


def text_prompt(size: int) -> Prompt:
    return Prompt(np.arange(1, size + 1), text_positions(0, size), size)


def run(runner: Runner, asked: list[tuple[Prompt, Sampling, Guided, list[str]]]) -> list[Sequence]:
    sequences = [runner.add(prompt, sampling, constraint, hints) for prompt, sampling, constraint, hints in asked]
    for _ in range(5000):
        if not runner.active:
            break
        runner.step()
    for sequence in sequences:
        if sequence.error:
            raise sequence.error
    assert not runner.active
    return sequences


def ids(sequence: Sequence) -> list[int]:
    return [token.id for token in sequence.output]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_answers_are_those_of_plain_greedy_decoding(data: st.DataObject) -> None:
    """Several answers at once, by models that say something random, or something true."""
    expected, asked = [], []
    schema, pages = data.draw(SCHEMAS), data.draw(PAGES)
    text = json.dumps(value_for(schema, data.draw), ensure_ascii=False)
    speaks = data.draw(st.booleans())
    says = spoken(TOKENIZER, text, VOCABULARY, STOP) if speaks else hashed(VOCABULARY, data.draw(st.integers(0, 99)))
    model = FakeModel(CONFIG, says)
    hints = [*pages, *data.draw(st.sampled_from([[], [text]]))]
    for size in data.draw(st.lists(st.integers(1, 30), min_size=1, max_size=3)):
        most = data.draw(st.sampled_from([300, 17, 1]))
        prompt = text_prompt(size)
        expected.append(plain(model, prompt.tokens.tolist(), Guided(TOKENIZER, schema), most))
        asked.append((prompt, Sampling(max_tokens=most), Guided(TOKENIZER, schema, data.draw(st.sampled_from([0, 9, 64]))), hints))
    runner = Runner(model, TOKENIZER.stop_tokens, RuntimeSettings(step_tokens=data.draw(st.sampled_from([512, 20, 3]))), TOKENIZER)
    found = run(runner, asked)
    assert [ids(sequence) for sequence in found] == expected
    for sequence, tokens in zip(found, expected, strict=True):
        assert sequence.finish_reason == ("stop" if len(tokens) < sequence.limit or sequence.constraint.finished else "length")
        if speaks and sequence.finish_reason == "stop" and sequence.limit == 300:
            assert TOKENIZER.decode(tokens) == text
