"""The whole model on every installed backend against transformers (scripts/make_golden.py), in one step and in ragged pieces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pagelift.backends import Ragged, installed_backends, open_backend
from pagelift.models import Grid, Model, PictureRows, Step, open_model, prompt_positions, text_positions
from precision import close, same_tokens

GOLDEN = Path(__file__).parent.parent / "golden"


@pytest.fixture(params=installed_backends())
def backend(request: pytest.FixtureRequest) -> str:
    return request.param


def load(case: str, backend: str) -> tuple[Model, dict[str, np.ndarray]]:
    return open_model(GOLDEN / case, open_backend(backend)), dict(np.load(GOLDEN / case / "expected.npz"))


def run(model: Model, pieces: list) -> np.ndarray:
    """One step over (cache, tokens, draft) pieces of text: logits of all rows."""
    tokens = np.concatenate([piece[1] for piece in pieces])
    positions = np.concatenate([text_positions(cache.length, len(part)) for cache, part, _ in pieces], axis=1)
    batch = Ragged.of([(cache, len(part), draft) for cache, part, draft in pieces])
    return model.logits(model.forward(Step(tokens, positions, batch)), np.arange(len(tokens)))


@pytest.mark.parametrize("case", ["text", "text_long"])
def test_text_and_greedy_continuation(case: str, backend: str) -> None:
    model, expected = load(case, backend)
    cache = model.new_cache()
    logits = run(model, [(cache, expected["tokens"], False)])
    assert close(logits[expected["rows"]], expected["logits"], backend)
    greedy = [int(logits[-1].argmax())]
    while len(greedy) < len(expected["greedy"]):
        greedy.append(int(run(model, [(cache, np.array(greedy[-1:]), False)])[-1].argmax()))
    assert same_tokens(greedy, expected["greedy"].tolist(), backend)


def test_ragged_steps_with_a_rejected_draft(backend: str) -> None:
    model, expected = load("text", backend)
    tokens, rows = expected["tokens"], expected["rows"]
    a, b = model.new_cache(), model.new_cache()
    first = run(model, [(a, tokens[:70], False), (b, tokens[:1], False)])
    copy = a.copy()
    wrong = np.concatenate([tokens[70:75], tokens[:4]])
    second = run(model, [(b, tokens[1:120], False), (a, wrong, True)])
    a.keep(5)
    third = run(model, [(a, tokens[75:], False), (b, tokens[120:], False), (copy, tokens[70:], False)])
    by_a = np.concatenate([first[:70], second[119:124], third[:125]])
    by_b = np.concatenate([first[70:], second[:119], third[125:205]])
    by_copy = np.concatenate([first[:70], third[205:]])
    for logits in (by_a, by_b, by_copy):
        assert close(logits[rows], expected["logits"], backend)


def test_chosen_tokens_of_the_head(backend: str) -> None:
    model, expected = load("text", backend)
    n = len(expected["tokens"])
    hidden = model.forward(Step(expected["tokens"], text_positions(0, n), Ragged.of([(model.new_cache(), n, False)])))
    logits = model.logits(hidden, expected["rows"], np.array([5, 95, 0]))
    assert close(logits, expected["logits"][:, [5, 95, 0]], backend)


def test_pages_and_video(backend: str) -> None:
    model, expected = load("pictures", backend)
    tokens, config = expected["tokens"], model.config
    images, videos = ([Grid(*map(int, grid)) for grid in expected[f"{kind}_grids"]] for kind in ("image", "video"))
    features = [model.encode(expected[f"{kind}_patches"], grids) for kind, grids in (("image", images), ("video", videos))]
    to_numpy = open_backend(backend).to_numpy
    for kind, part in zip(("image", "video"), features, strict=True):
        assert close(to_numpy(part), expected[f"{kind}_features"], backend)
    runs = [(config.image_token, grid) for grid in images]
    runs += [(config.video_token, frame) for grid in videos for frame in [Grid(1, grid.rows, grid.columns)] * grid.frames]
    positions, after = prompt_positions(tokens, runs, 2)
    assert np.array_equal(positions, expected["positions"])
    assert after == expected["next_position"]
    pictures, used = [], {config.image_token: 0, config.video_token: 0}
    start = 0
    for token, grid in runs:
        start += int(np.flatnonzero(tokens[start:] == token)[0])
        source, first, count = features[token == config.video_token], used[token], grid.patches // 4
        pictures.append(PictureRows(start, source[first : first + count]))
        used[token], start = first + count, start + count
    step = Step(tokens, positions, Ragged.of([(model.new_cache(), len(tokens), False)]), tuple(pictures))
    logits = model.logits(model.forward(step), np.arange(len(tokens)))
    assert close(logits, expected["logits"], backend)
