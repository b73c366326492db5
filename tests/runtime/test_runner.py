"""The generation loop: however prompts are cut and mixed, the answers are the same."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from pagelift.backends import installed_backends, open_backend
from pagelift.core.errors import ConfigError, EngineError, WeightsError
from pagelift.models import PictureRows, open_model, text_positions
from pagelift.models.prompt import Prompt
from pagelift.runtime import Runner, RuntimeSettings, Sampling, Token, load_model
from pagelift.runtime.schedule import schedule
from runtime.scripted import scripted

DOCUMENT = Path(__file__).parent.parent / "golden" / "document"
EXPECTED = dict(np.load(DOCUMENT / "expected.npz"))
MODELS = {name: open_model(DOCUMENT, open_backend(name)) for name in installed_backends()}


def text_prompt(tokens: list[int]) -> Prompt:
    return Prompt(np.array(tokens), text_positions(0, len(tokens)), len(tokens))


def answers(runner: Runner, prompts: list[Prompt], sampling: Sampling) -> list[list[int]]:
    sequences = [runner.add(prompt, sampling) for prompt in prompts]
    while runner.active:
        runner.step()
    return [[token.id for token in sequence.output] for sequence in sequences]


@pytest.mark.parametrize("backend", MODELS)
def test_answers_do_not_depend_on_step_size_or_company(backend: str) -> None:
    prompts = [text_prompt(EXPECTED["one/tokens"][-n:].tolist()) for n in (3, 17, 30)]
    alone = [answers(Runner(MODELS[backend], frozenset()), [prompt], Sampling(max_tokens=6))[0] for prompt in prompts]
    for step_tokens in (1, 4, 64):
        assert (
            answers(Runner(MODELS[backend], frozenset(), RuntimeSettings(step_tokens=step_tokens)), prompts, Sampling(max_tokens=6))
            == alone
        )


def test_a_picture_is_encoded_once_and_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    from PIL import Image

    loaded = load_model(DOCUMENT, "reference")
    prompt = loaded.prompt("x", [Image.new("RGB", (40, 56)), Image.new("RGB", (24, 40), "red")])
    runner = Runner(loaded.model, frozenset(), RuntimeSettings(step_tokens=5))
    shown: list[PictureRows] = []
    forward = loaded.model.forward
    monkeypatch.setattr(loaded.model, "forward", lambda step: shown.extend(step.pictures) or forward(step))
    sequence = runner.add(prompt, Sampling(max_tokens=1))
    most = 0
    while runner.active:
        runner.step()
        most = max(most, len(sequence.features))
    assert runner.counters.pictures == 2
    assert sum(picture.features.shape[0] for picture in shown) == sum(picture.tokens for picture in prompt.pictures)
    assert (most, sequence.features) == (1, {})


def test_waiting_tokens_go_before_prompts() -> None:
    loaded = scripted("abc")
    runner = Runner(loaded.model, loaded.tokenizer.stop_tokens, RuntimeSettings(step_tokens=8))
    first = runner.add(text_prompt([1, 2]), Sampling())
    runner.step()
    runner.add(text_prompt(list(range(100))), Sampling())
    work = schedule(runner.active, 8, 8)
    assert [(item.sequence is first, item.count) for item in work] == [(True, 1), (False, 7)]


def test_every_end_is_told() -> None:
    loaded = scripted("abc")
    runner = Runner(loaded.model, loaded.tokenizer.stop_tokens)
    stopped, cut = runner.add(text_prompt([1]), Sampling()), runner.add(text_prompt([1]), Sampling(max_tokens=2))
    while runner.active:
        runner.step()
    assert (stopped.finish_reason, len(stopped.output)) == ("stop", 3)
    assert (cut.finish_reason, len(cut.output)) == ("length", 2)
    gone = runner.add(text_prompt([1]), Sampling())
    runner.cancel(gone)
    assert (gone.finish_reason, runner.active, runner.step()) == ("cancelled", [], [])
    runner.cancel(stopped)
    assert stopped.finish_reason == "stop"


def test_the_context_is_the_limit() -> None:
    loaded = scripted("abc", end=False)
    most = loaded.model.config.text.max_positions
    runner = Runner(loaded.model, loaded.tokenizer.stop_tokens)
    sequence = runner.add(text_prompt([1] * (most - 2)), Sampling(max_tokens=100))
    while runner.active:
        runner.step()
    assert (sequence.finish_reason, len(sequence.output)) == ("length", 2)
    with pytest.raises(EngineError, match="context"):
        runner.add(text_prompt([1] * most), Sampling())
    with pytest.raises(ConfigError, match="step_tokens"):
        RuntimeSettings(step_tokens=0)


def test_streaming_gives_text_tokens_and_counts() -> None:
    loaded = scripted('{"金額": 5}')
    generation = loaded.stream(loaded.prompt("Hello"))
    pieces = list(generation)
    assert generation.text == "".join(piece.text for piece in pieces) == '{"金額": 5}'
    assert [piece.token.id for piece in pieces if piece.token] == [token.id for token in generation.tokens]
    assert generation.finish_reason == "stop"
    assert generation.metadata["output_tokens"] == len(pieces)
    assert generation.metadata["passes"] == len(pieces) + 1
    assert all(token.logprob < 0 for token in generation.tokens)


def test_a_character_that_is_cut_off_is_replaced() -> None:
    loaded = scripted("a金")
    generation = loaded.generate("x", sampling=Sampling(max_tokens=2))
    assert (generation.text, generation.finish_reason) == ("a\ufffd", "length")


def test_cancel_while_streaming() -> None:
    loaded = scripted("a" * 50)
    generation = loaded.stream(loaded.prompt("x"))
    for count, _ in enumerate(generation):
        if count == 3:
            generation.cancel()
    assert (len(generation.tokens), generation.finish_reason) == (4, "cancelled")


@pytest.mark.parametrize("backend", MODELS)
def test_threads_share_steps(backend: str) -> None:
    loaded = load_model(DOCUMENT, backend)
    expected = loaded.generate("one", sampling=Sampling(max_tokens=8)).tokens
    results: list[tuple[Token, ...]] = []
    threads = [
        threading.Thread(target=lambda: results.append(loaded.generate("one", sampling=Sampling(max_tokens=8)).tokens)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [[token.id for token in tokens] for tokens in results] == [[token.id for token in expected]] * 4
    if backend == "cpu":  # which promises the same bits whatever else is in a step
        assert results == [expected] * 4


def test_seeds_repeat_draws_and_differ_from_each_other() -> None:
    loaded = load_model(DOCUMENT, "reference")
    draws = [loaded.generate("x", sampling=Sampling(1.0, seed=seed, max_tokens=20)).tokens for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


def test_load_model_names_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="pagelift models pull some/model"):
        load_model("some/model")
    with pytest.raises(EngineError, match="no backend is called"):
        load_model(DOCUMENT, "gpu")
    with pytest.raises(WeightsError, match=r"tokenizer\.json"):
        load_model(tmp_path)
