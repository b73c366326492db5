"""What is computed once is not computed again: pages, prompts, pictures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from pagelift.backends import SequenceCache, installed_backends, open_backend
from pagelift.models import Model, load_config, open_model, prompt_positions, text_positions
from pagelift.models.pictures import Picture
from pagelift.models.prompt import PlacedPicture, Prompt
from pagelift.runtime import LoadedModel, RuntimeSettings, Sampling, load_model
from pagelift.runtime.prefixes import Point, PrefixCache, Trunk
from pagelift.weights import Tokenizer
from runtime.fakes import FOLDER, FakeModel, Memory, hashed

CONFIG, TOKENIZER = load_config(FOLDER), Tokenizer.load(FOLDER)
MODELS = {name: open_model(FOLDER, open_backend(name)) for name in installed_backends()}


def pages(count: int) -> list[Image.Image]:
    rng = np.random.default_rng(5)
    return [Image.fromarray(rng.integers(0, 256, (56, 72, 3), np.uint8)) for _ in range(count)]


def with_model(loaded: LoadedModel, model: Model | FakeModel, **options: Any) -> LoadedModel:
    new = LoadedModel("x", "none", model, loaded.tokenizer, loaded.prompts, loaded.processor, RuntimeSettings(**options))
    new.service.runner.prefixes.spacing = 4
    return new


@pytest.fixture(scope="module")
def template() -> LoadedModel:
    return load_model(FOLDER, "reference")


def ask(model: LoadedModel, text: str, images: list[Image.Image]) -> tuple[list[int], dict[str, Any]]:
    generation = model.generate(text, images, sampling=Sampling(max_tokens=8))
    return [token.id for token in generation.tokens], generation.metadata


@pytest.mark.parametrize("backend", MODELS)
def test_another_question_about_the_same_pages_computes_the_question_only(backend: str, template: LoadedModel) -> None:
    fresh = [ask(with_model(template, MODELS[backend]), text, pages(n))[0] for text, n in (("one", 2), ("other?", 2), ("one", 3))]
    model = with_model(template, MODELS[backend])
    encode, encoded = model.model.encode, []
    model.model.encode = lambda *given: encoded.append(1) or encode(*given)  # type: ignore[method-assign]
    try:
        (first, one), (other, two), (again, three), (more, four) = (
            ask(model, text, pages(n)) for text, n in (("one", 2), ("other?", 2), ("one", 2), ("one", 3))
        )
    finally:
        del model.model.encode
    assert [first, other, again, more] == [fresh[0], fresh[1], fresh[0], fresh[2]]
    behind = model.prompt("one", pages(2)).pictures[-1]
    assert one["cached_tokens"] == 0
    assert two["cached_tokens"] == four["cached_tokens"] == behind.start + behind.tokens
    assert three["cached_tokens"] == three["prompt_tokens"] - 1
    assert len(encoded) == 3
    assert [found["pictures"] for found in (one, two, three, four)] == [2, 0, 0, 1]


def test_pictures_are_known_in_any_order_and_told_apart(template: LoadedModel) -> None:
    fake = FakeModel(CONFIG, hashed(CONFIG.text.vocab_size))
    model = with_model(template, fake)
    one, two = pages(2)
    for images, encoded in (([one, two], 2), ([two, one], 2), ([two], 2), ([one.rotate(180)], 3)):
        ask(model, "x", images)
        assert fake.encoded == encoded


def page_prompt(template: LoadedModel, question: int) -> Prompt:
    """Ten pages of 1,500 tokens, and a question of 600 that begins with the pages."""
    assert template.processor
    settings = template.processor.image
    assert CONFIG.image_token is not None
    tokens, placed = [1, 2, 3], []
    for number in range(10):
        frame = np.full((30 * settings.factor, 50 * settings.factor, 3), number, np.uint8)
        placed.append(PlacedPicture(len(tokens), 1500, Picture((frame, frame), settings)))
        tokens += [*[CONFIG.image_token] * 1500, 4]
    tokens += [question, *range(5, 300), *range(5, 300)]
    grids = [(CONFIG.image_token, part.picture.grid) for part in placed]
    positions, after = prompt_positions(np.array(tokens), grids, settings.merge_size)
    return Prompt(np.array(tokens), positions, after, tuple(placed))


def test_the_second_question_about_ten_pages_costs_little(template: LoadedModel) -> None:
    config = replace(CONFIG, text=replace(CONFIG.text, max_positions=1 << 16))
    fake = FakeModel(config, lambda _: np.eye(CONFIG.text.vocab_size)[min(TOKENIZER.stop_tokens)])
    runner = with_model(template, fake).service.runner
    computed = []
    for question in (5, 6):
        before = runner.counters.tokens
        runner.add(page_prompt(template, question), Sampling())
        while runner.active:
            runner.step()
        computed.append(runner.counters.tokens - before)
    assert computed[0] > 15_000
    assert computed[1] <= 0.05 * computed[0]
    assert fake.encoded == 10


def test_a_beginning_that_is_being_computed_is_waited_for(template: LoadedModel) -> None:
    fake = FakeModel(CONFIG, hashed(CONFIG.text.vocab_size))
    runner = with_model(template, fake).service.runner
    prompt = template.prompt("one", pages(3))
    sequences = [runner.add(prompt, Sampling(max_tokens=5)) for _ in range(4)]
    while runner.active:
        runner.step()
    assert [sequence.counts.cached_tokens for sequence in sequences] == [0, *[len(prompt) - 1] * 3]
    assert len({tuple(token.id for token in sequence.output) for sequence in sequences}) == 1


def test_without_a_budget_nothing_is_kept(template: LoadedModel) -> None:
    fake = FakeModel(CONFIG, hashed(CONFIG.text.vocab_size))
    model = with_model(template, fake, prefix_bytes=0)
    for _ in range(2):
        assert ask(model, "one", pages(2))[1]["cached_tokens"] == 0
    assert (fake.encoded, model.service.load().prefix_bytes) == (4, 0)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(budget=st.integers(0, 3000), lengths=st.lists(st.lists(st.integers(1, 60), min_size=1, max_size=5), min_size=1, max_size=6))
def test_the_budget_holds_and_what_is_found_is_right(budget: int, lengths: list[list[int]]) -> None:
    """Prompts of some lengths that begin alike or differ, kept at several points."""
    known = PrefixCache(budget, spacing=1)
    for number, sizes in enumerate(lengths):
        trunk, ancestor = Trunk(), None
        for size in sorted(set(sizes)):
            tokens = [number % 2] * size
            point = Point(size, bytes([number % 2, size]))
            known.keep(point, SequenceCache([Memory(tokens), Memory(tokens)], size), trunk, ancestor)
            ancestor = point
            assert 0 <= known.nbytes <= budget
            found = known.find([Point(k, bytes([number % 2, k])) for k in range(1, size + 1)])
            if found:
                assert found[1].length == found[0].length
                assert [layer.tokens for layer in found[1].layers] == [[number % 2] * found[0].length] * 2  # type: ignore[attr-defined]
    known.clear()
    assert known.nbytes == 0


def test_what_is_kept_goes_on_to_be_counted_after_everything_was_forgotten() -> None:
    known, trunk = PrefixCache(1000), Trunk()
    for size in (5, 9):
        known.keep(Point(size, bytes([size])), SequenceCache([Memory([0] * size)], size), trunk, None)
        if size == 5:
            known.clear()
    assert known.nbytes == 8 * 9


def test_the_least_recently_used_goes_first() -> None:
    known = PrefixCache(3 * 8 * 2 * 10)

    def keep(name: int) -> None:
        known.keep(Point(10, bytes([name])), SequenceCache([Memory([name] * 10)], 10), Trunk(), None)

    def kept(name: int) -> bool:
        return known.find([Point(10, bytes([name]))]) is not None

    for name in range(6):
        keep(name)
    assert kept(0)
    keep(6)
    assert (kept(0), kept(1), kept(6)) == (True, False, True)


def test_points_lie_behind_pages_and_before_the_last_token(template: LoadedModel) -> None:
    prompt = template.prompt("one", pages(3))
    points = PrefixCache(1 << 20, spacing=4).points(prompt)
    ends = [placed.start + placed.tokens for placed in prompt.pictures]
    assert [point.length for point in points] == [*ends, len(prompt) - 1]
    assert len({point.key for point in points}) == 4
    sparse = PrefixCache(1 << 20, spacing=1000).points(prompt)
    assert [point.length for point in sparse] == ends[-1:]
    plain = Prompt(np.arange(300), text_positions(0, 300), 300)
    assert [point.length for point in PrefixCache(1 << 20).points(plain)] == [299]
    long = Prompt(np.arange(3000), text_positions(0, 3000), 3000)
    assert [point.length for point in PrefixCache(1 << 20).points(long)] == [1024, 2048, 2999]
    assert PrefixCache(1 << 20).points(Prompt(np.arange(30), text_positions(0, 30), 30)) == []
