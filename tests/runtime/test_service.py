"""Requests of several threads: they come, go and fail without touching each other."""

from __future__ import annotations

import contextlib
import gc
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from pagelift.backends import Array, installed_backends
from pagelift.core.errors import ConfigError, EngineError
from pagelift.decoding import Allowed, Sampling
from pagelift.models import Step, load_config, text_positions
from pagelift.models.prompt import Prompt, PromptBuilder
from pagelift.runtime import LoadedModel, RuntimeSettings, load_model, service
from pagelift.weights import ChatTemplate, Tokenizer
from runtime.fakes import FOLDER, FakeModel, Guided, Next
from runtime.fakes import hashed as random_logits

CONFIG, TOKENIZER = load_config(FOLDER), Tokenizer.load(FOLDER)
VOCABULARY = CONFIG.text.vocab_size
POISON = 77
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer", "maximum": 99}}, "required": ["a"], "additionalProperties": False}


def hashed(vocabulary: int) -> Next:
    """Random logits of a model that never stops, nor says POISON."""
    inner = random_logits(vocabulary)

    def logits(past: tuple[int, ...]) -> np.ndarray:
        row = inner(past)
        row[[POISON, *TOKENIZER.stop_tokens]] = -50
        return row

    return logits


class SlowModel(FakeModel):
    """Takes each step only when it is let; fails on steps that hold the token POISON."""

    def __init__(self, next_logits: Next) -> None:
        super().__init__(CONFIG, next_logits)
        self.gate = threading.Semaphore(0)
        self.waiting = threading.Event()

    def forward(self, step: Step) -> Array:
        self.waiting.set()
        self.gate.acquire()
        if POISON in step.tokens:
            raise EngineError("poison")
        return super().forward(step)

    def let(self, steps: int = 100_000) -> None:
        self.gate.release(steps)


class Broken(Guided):
    """Fails after some tokens."""

    def __init__(self, after: int) -> None:
        super().__init__(TOKENIZER, SCHEMA)
        self.left = after

    def allowed(self) -> Allowed:
        self.left -= 1
        if self.left < 0:
            raise EngineError("the grammar is broken")
        return super().allowed()


def loaded(model: FakeModel, **settings: Any) -> LoadedModel:
    prompts = PromptBuilder(CONFIG, TOKENIZER, ChatTemplate.load(FOLDER, TOKENIZER), None)
    return LoadedModel("fake", "none", model, TOKENIZER, prompts, None, RuntimeSettings(**settings))


def prompt(tokens: Sequence[int]) -> Prompt:
    return Prompt(np.array(tokens), text_positions(0, len(tokens)), len(tokens))


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.002)


def answer(model: LoadedModel, tokens: Sequence[int], most: int = 12) -> list[int]:
    generation = model.stream(prompt(tokens), Sampling(max_tokens=most))
    return [piece.token.id for piece in generation if piece.token]


def test_requests_share_steps_and_get_the_answers_they_get_alone() -> None:
    alone = [answer(loaded(FakeModel(CONFIG, hashed(VOCABULARY))), [1, k]) for k in range(8)]
    model = SlowModel(hashed(VOCABULARY))
    together = loaded(model)
    generations = [together.stream(prompt([1, k]), Sampling(max_tokens=12)) for k in range(8)]
    model.let()
    found = [[piece.token.id for piece in generation if piece.token] for generation in generations]
    assert found == alone
    assert len(model.steps) < sum(map(len, alone)) / 3
    assert all(generation.metadata["passes"] <= 14 for generation in generations)


def test_a_request_is_gone_after_the_step_in_which_it_is_given_up() -> None:
    model = SlowModel(hashed(VOCABULARY))
    together = loaded(model)
    given_up, dropped, closed, stays = (together.stream(prompt([1, k]), Sampling(max_tokens=30)) for k in range(4))
    model.waiting.wait()
    model.let(1)
    wait_for(lambda: len(model.steps) >= 1)
    given_up.cancel()
    with closed:
        pass
    del dropped
    gc.collect()
    model.let()
    assert len([piece for piece in stays if piece.token]) == 30
    assert (given_up.finish_reason, closed.finish_reason, list(given_up)) == ("cancelled", "cancelled", [])
    assert max(step.batch.rows for step in model.steps[3:]) == 1


def test_an_abandoned_reader_stops_the_model() -> None:
    model = SlowModel(hashed(VOCABULARY))
    together = loaded(model)
    generation = together.stream(prompt([1]), Sampling(max_tokens=4000))
    model.let(3)
    for _ in generation:
        break
    assert len([piece for piece, _ in zip(generation, range(1), strict=False)]) == 1  # reading may go on
    del generation
    model.let()
    wait_for(lambda: together.service.load().active == 0)
    assert len(model.steps) < 10


def test_an_error_stays_with_its_request() -> None:
    random = hashed(VOCABULARY)
    sick = (1, 66)
    model = SlowModel(lambda past: np.full(VOCABULARY, np.nan) if past[:2] == sick and len(past) > 4 else random(past))
    expected = [answer(loaded(FakeModel(CONFIG, random)), [1, k]) for k in range(3)]
    together = loaded(model)
    good = [together.stream(prompt([1, k]), Sampling(max_tokens=12)) for k in range(3)]
    bad = {
        "not a number": together.stream(prompt(sick), Sampling(max_tokens=12)),
        "the grammar is broken": together.stream(prompt([1, 5]), Sampling(max_tokens=12), constraint=Broken(0)),
        "poison": together.stream(prompt([1, 2, 3, POISON]), Sampling(max_tokens=12)),
    }
    model.let()
    assert [[piece.token.id for piece in generation if piece.token] for generation in good] == expected
    for told, generation in bad.items():
        with pytest.raises(EngineError, match=told):
            list(generation)
        assert generation.finish_reason == "error"
    assert answer(together, [1, 1]) == expected[1]


def test_a_step_that_always_fails_ends_all_of_it_in_the_end() -> None:
    class Failing(FakeModel):
        def forward(self, step: Step) -> Array:
            if len(step.batch.segments) > 1:
                raise EngineError("out of memory")
            return super().forward(step)

    model = loaded(Failing(CONFIG, hashed(VOCABULARY)))
    generations = [model.stream(prompt([1, k]), Sampling(max_tokens=2000)) for k in range(3)]
    for generation in generations:
        with contextlib.suppress(EngineError):
            list(generation)
    assert {generation.finish_reason for generation in generations} <= {"length", "error"}
    assert len(answer(model, [1, 2])) == 12


def test_readers_of_finished_answers_hold_no_caches() -> None:
    model = loaded(FakeModel(CONFIG, hashed(VOCABULARY)))
    generation = model.stream(prompt([1, 2]), Sampling(max_tokens=12))
    list(generation)
    assert generation.metadata["cache_bytes"] > 0
    assert generation._ticket.sequence.cache.layers == ()


def test_a_page_that_says_how_answers_end_does_not_end_one() -> None:
    (end,) = [text for text in ("<|im_end|>",) if TOKENIZER.find(text) is not None]
    script = [*TOKENIZER.encode("abcdefghijklmnopqrst"), TOKENIZER.id(end)]
    model = loaded(FakeModel(CONFIG, lambda past: np.eye(VOCABULARY)[script[len(past) - 2]]))
    generation = model.stream(prompt([1, 2]), Sampling(max_tokens=50), hints=[f"abcdefghijklmnopqrst{end} more"])
    list(generation)
    assert (generation.text, generation.finish_reason) == ("abcdefghijklmnopqrst", "stop")


def test_requests_wait_when_memory_is_used_up() -> None:
    model = SlowModel(hashed(VOCABULARY))
    size = model.cache_bytes(2 + 20)
    together = loaded(model, cache_bytes=2 * size)
    generations = [together.stream(prompt([1, k]), Sampling(max_tokens=20)) for k in range(5)]
    huge = together.stream(prompt([1, 9]), Sampling(max_tokens=500))
    model.waiting.wait()
    assert together.service.load().reserved_bytes <= 2 * size
    model.let()
    assert [len([p for p in generation if p.token]) for generation in (*generations, huge)] == [20] * 5 + [500]
    assert max(step.batch.rows for step in model.steps if step.batch.rows) <= 4
    assert together.service.load().reserved_bytes == 0
    assert generations[4].metadata["queue_s"] > 0


@pytest.mark.parametrize("backend", [name for name in ("reference", "cpu", "mlx") if name in installed_backends()])
def test_a_request_takes_no_more_memory_than_it_waits_for(backend: str) -> None:
    model = load_model(FOLDER, backend)
    for hints in ([], ["abcabcabc" * 20]):
        generation = model.stream(model.prompt("abcabcabc" * 20), Sampling(max_tokens=200), hints=hints)
        list(generation)
        taken, promised = generation.metadata["cache_bytes"], generation._ticket.size
        assert promised / 4 < taken <= promised
    assert model.service.load().passes > 2


def test_the_thread_ends_when_there_is_nothing_to_do_and_the_model_can_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "IDLE_S", 0.01)
    model = loaded(FakeModel(CONFIG, hashed(VOCABULARY)))
    expected = answer(model, [1, 2])
    (thread,) = [thread for thread in threading.enumerate() if thread is model.service._thread] or [None]
    if thread is not None:
        thread.join(20)
    assert answer(model, [1, 2]) == expected
    gone = weakref.ref(model.service)
    del model, thread
    wait_for(lambda: gc.collect() >= 0 and gone() is None)


def test_a_closed_model_refuses_and_ends_what_it_has() -> None:
    model = SlowModel(hashed(VOCABULARY))
    together = loaded(model)
    generation = together.stream(prompt([1]), Sampling(max_tokens=4000))
    model.waiting.wait()
    model.let(1)
    threading.Timer(0.05, model.let).start()
    together.service.close()
    list(generation)
    assert generation.finish_reason == "cancelled"
    with pytest.raises(EngineError, match="closed"):
        together.stream(prompt([1]))


def test_a_grammar_that_is_over_needs_no_model() -> None:
    model = loaded(FakeModel(CONFIG, hashed(VOCABULARY)))
    schema = {"type": "object", "properties": {"a": {"const": 5}}, "required": ["a"], "additionalProperties": False}
    generation = model.stream(prompt([1]), constraint=Guided(TOKENIZER, schema))
    assert [piece.token.forced for piece in generation if piece.token]
    assert (generation.text, generation.finish_reason, generation.metadata["passes"]) == ('{"a": 5}', "stop", 0)


@pytest.mark.parametrize("wrong", ["step_tokens", "mixed_tokens", "max_active", "draft_rows", "prefix_bytes", "cache_bytes"])
def test_settings_out_of_range_are_refused(wrong: str) -> None:
    with pytest.raises(ConfigError, match=wrong):
        RuntimeSettings(**{wrong: -1})
