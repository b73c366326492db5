"""Forced tokens, drafts, head rows, batching and reuse change nothing: answers are those of plain masked greedy decoding."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pagelift.backends import Ragged, installed_backends, open_backend
from pagelift.decoding import Constraint, Proposal, Sampling, Vocabulary, compile_grammar
from pagelift.models import Model, Step, load_config, open_model, text_positions
from pagelift.models.prompt import Prompt
from pagelift.runtime import Runner, RuntimeSettings
from pagelift.runtime.sequences import Sequence
from pagelift.schema import Schema
from pagelift.weights import Tokenizer
from runtime.fakes import FOLDER, FakeModel, Guided, hashed, plain, spoken

CONFIG, TOKENIZER = load_config(FOLDER), Tokenizer.load(FOLDER)
VOCABULARY = CONFIG.text.vocab_size
GRAMMARS = Vocabulary(TOKENIZER, VOCABULARY)
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


def run(runner: Runner, asked: list[tuple[Prompt, Sampling, Constraint, list[str]]]) -> list[Sequence]:
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


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
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
    few, real = data.draw(st.sampled_from([0, 9, 64])), data.draw(st.booleans())

    def make() -> Constraint:
        return compile_grammar(Schema.load(schema), GRAMMARS).constraint() if real else Guided(TOKENIZER, schema, few)

    for size in data.draw(st.lists(st.integers(1, 30), min_size=1, max_size=3)):
        most = data.draw(st.sampled_from([300, 17, 1]))
        prompt = text_prompt(size)
        expected.append(plain(model, prompt.tokens.tolist(), make(), most, TOKENIZER.stop_tokens))
        asked.append((prompt, Sampling(max_tokens=most), make(), hints))
    runner = Runner(model, TOKENIZER.stop_tokens, RuntimeSettings(step_tokens=data.draw(st.sampled_from([512, 20, 3]))), TOKENIZER)
    found = run(runner, asked)
    assert [ids(sequence) for sequence in found] == expected
    for sequence, tokens in zip(found, expected, strict=True):
        assert sequence.finish_reason == ("stop" if len(tokens) < sequence.limit or sequence.constraint.finished else "length")
        if speaks and sequence.finish_reason == "stop" and sequence.limit == 300:
            assert TOKENIZER.decode(tokens) == text


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_draws_do_not_depend_on_drafts(data: st.DataObject) -> None:
    schema, pages = data.draw(SCHEMAS), data.draw(PAGES)
    text = json.dumps(value_for(schema, data.draw), ensure_ascii=False)
    model = FakeModel(CONFIG, spoken(TOKENIZER, text, VOCABULARY, STOP))
    sampling = Sampling(data.draw(st.sampled_from([0.7, 2.0])), data.draw(st.sampled_from([1.0, 0.9])), data.draw(st.integers(0, 9)), 200)
    answers = []
    for rows, few in ((0, 0), (16, 64), (4, 9)):
        runner = Runner(model, TOKENIZER.stop_tokens, RuntimeSettings(draft_rows=rows), TOKENIZER)
        (sequence,) = run(runner, [(text_prompt(9), sampling, Guided(TOKENIZER, schema, few), [*pages, text])])
        answers.append([(token.id, round(token.logprob, 5), token.forced) for token in sequence.output])
    assert answers[0] == answers[1] == answers[2]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_an_answer_does_not_depend_on_when_others_come_and_go(data: st.DataObject) -> None:
    schema = data.draw(SCHEMAS)
    model = FakeModel(CONFIG, hashed(VOCABULARY))
    sizes = data.draw(st.lists(st.integers(1, 60), min_size=2, max_size=5))
    expected = [plain(model, text_prompt(size).tokens.tolist(), Guided(TOKENIZER, schema), 40, TOKENIZER.stop_tokens) for size in sizes]
    settings_ = RuntimeSettings(step_tokens=data.draw(st.sampled_from([512, 16, 5])), mixed_tokens=data.draw(st.sampled_from([256, 3])))
    runner = Runner(model, TOKENIZER.stop_tokens, settings_, TOKENIZER)
    sequences = []
    for size in sizes:
        sequences.append(runner.add(text_prompt(size), Sampling(max_tokens=40), Guided(TOKENIZER, schema)))
        for _ in range(data.draw(st.integers(0, 12))):
            runner.step()
        if data.draw(st.booleans()):
            gone = runner.add(text_prompt(7), Sampling(), Guided(TOKENIZER, schema))
            runner.step()
            runner.cancel(gone)
    while runner.active:
        runner.step()
    assert [ids(sequence) for sequence in sequences] == expected


@pytest.mark.parametrize(("step_tokens", "draft_rows"), [(512, 16), (7, 0), (40, 64)])
def test_rows_are_of_the_prompt_exactly_before_its_end(step_tokens: int, draft_rows: int) -> None:
    """Forced tokens, drafts and answers never count as prompt, in whatever steps, so each token has the kernel of its kind."""
    model, size = FakeModel(CONFIG, hashed(VOCABULARY, 3)), 300
    runner = Runner(model, TOKENIZER.stop_tokens, RuntimeSettings(step_tokens=step_tokens, draft_rows=draft_rows), TOKENIZER)
    asked = [(text_prompt(size), Sampling(max_tokens=20), Guided(TOKENIZER, INVOICE), ["12.50 EUR"]) for _ in range(3)]
    run(runner, asked)
    run(runner, [(text_prompt(size), Sampling(max_tokens=20), Guided(TOKENIZER, INVOICE), [])])  # from caches that were kept
    seen = set()
    for step in model.steps:
        expected = step.positions[0] < size
        mask = step.batch.prompt_rows
        assert np.array_equal(np.zeros(len(expected), np.bool_) if mask is None else mask, expected)
        seen |= {(bool(s.prompt), s.prompt < s.length) for s in step.batch.segments}
    assert seen == {(True, False), (False, True), (True, True)}


@cache
def opened(backend: str, folder: str = "document") -> Model:
    return open_model(FOLDER.parent / folder, open_backend(backend))


INVOICE = {
    "type": "object",
    "properties": {
        "number": {"type": ["string", "null"], "maxLength": 30},
        "total": {"type": ["integer", "null"], "maximum": 99999},
        "paid": {"type": "boolean"},
        "rows": {
            "type": "array",
            "maxItems": 3,
            "items": as_object(["item", "price"], ({"type": "string", "maxLength": 9}, {"type": "integer", "maximum": 99})),
        },
    },
    "required": ["number", "total", "paid", "rows"],
    "additionalProperties": False,
}


class Oracle:
    """Drafts what will be said, with a mistake after `right` bytes."""

    def __init__(self, expected: list[int], right: int) -> None:
        self._text = b"".join(map(TOKENIZER.token_bytes, expected))
        self._right = right
        self._said = 0

    def token_bytes(self, index: int) -> bytes:
        return TOKENIZER.token_bytes(index)

    def extend(self, tokens: list[int]) -> None:
        self._said += sum(len(TOKENIZER.token_bytes(token)) for token in tokens)

    def propose(self, constraint: Guided, room: int) -> Proposal:  # noqa: ARG002
        rest = self._text[self._said :]
        text = (rest[: self._right] + b"1" + rest[self._right :]).decode(errors="ignore")
        return Proposal(TOKENIZER, text, [len(text.encode())], [1.0])


def one_by_one(model: Model, tokens: np.ndarray, constraint: Guided, most: int) -> list[int]:
    """Masked greedy decoding on a real model, one token a pass."""
    past, output = model.new_cache(), []
    while len(output) < most and not constraint.finished:
        batch = Ragged.of([(past, len(tokens), False)], [0 if output else len(tokens)])
        step = Step(tokens, text_positions(past.length, len(tokens)), batch)
        logits = model.logits(model.forward(step), np.array([len(tokens) - 1]))[0]
        allowed = np.unpackbits(constraint.allowed().mask.view(np.uint8), bitorder="little")[: len(logits)].astype(bool)
        forced = constraint.forced()
        token = int(forced[0]) if forced else int(np.where(allowed, logits, -np.inf).argmax())
        if token in TOKENIZER.stop_tokens:
            break
        constraint.accept([token])
        output.append(token)
        tokens = np.array([token])
    return output


@pytest.mark.parametrize("backend", installed_backends())
@pytest.mark.parametrize(("size", "folder"), [(3, "document"), (40, "document"), (20, "document_mlx")])
def test_real_kernels_give_what_one_token_a_pass_gives(backend: str, size: int, folder: str) -> None:
    """On checkpoints with random weights, quantized or not, with drafts that are partly right."""
    model = opened(backend, folder)
    expected = one_by_one(model, text_prompt(size).tokens, Guided(TOKENIZER, INVOICE), 90)
    runner = Runner(model, TOKENIZER.stop_tokens, RuntimeSettings(draft_rows=24), TOKENIZER)
    sequences = []
    for right in (0, 1, 5, 1000):
        sequences.append(runner.add(text_prompt(size), Sampling(max_tokens=90), Guided(TOKENIZER, INVOICE)))
        oracle = Oracle(expected, right)
        oracle.extend([token.id for token in sequences[-1].output])
        sequences[-1].drafter = oracle  # type: ignore[assignment]
    while runner.active:
        runner.step()
    assert [ids(sequence) for sequence in sequences] == [expected] * 4
    none, one, some, most = (sequence.counts for sequence in sequences)
    assert none.accepted < none.drafted
    assert 0 < one.accepted < one.drafted
    assert len(expected) > none.passes > some.passes > most.passes


@pytest.mark.parametrize("folder", ["document", "document_mlx"])
@pytest.mark.parametrize("backend", installed_backends())
def test_some_rows_of_the_head_are_those_of_the_whole(backend: str, folder: str) -> None:
    model, cache_, ids_ = opened(backend, folder), opened(backend, folder).new_cache(), np.array([1, 5, 7, 100, 200])
    hidden = model.forward(Step(np.arange(5, 25), text_positions(0, 20), Ragged.of([(cache_, 20, False)])))
    whole, few = model.logits(hidden, np.arange(20)), model.logits(hidden, np.arange(20), ids_)
    assert np.array_equal(whole[:, ids_], few) if backend == "cpu" else np.abs(whole[:, ids_] - few).max() < 1e-4
