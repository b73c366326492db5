"""One prompt cut into ragged steps in any way, beside other sequences, with drafts, gives the same logits."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagelift.backends import Ragged, installed_backends, open_backend
from pagelift.models import Model, Step, open_model, text_positions

GOLDEN = Path(__file__).parent.parent / "golden"
ROWS, PROMPT = 90, 61
"""Tokens of a sequence, and how many of them are its prompt."""


@cache
def opened(backend: str, case: str) -> tuple[Model, np.ndarray, np.ndarray]:
    """The model, a prompt with an answer, and the logits of their rows from one step."""
    model = open_model(GOLDEN / case, open_backend(backend))
    tokens = np.load(GOLDEN / "text" / "expected.npz")["tokens"][:ROWS]
    return model, tokens, step(model, [(model.new_cache(), tokens, False)])


def step(model: Model, pieces: list) -> np.ndarray:
    tokens = np.concatenate([piece[1] for piece in pieces])
    positions = np.concatenate([text_positions(cache.length, len(part)) for cache, part, _ in pieces], axis=1)
    prompts = [min(max(PROMPT - cache.length, 0), len(part)) for cache, part, _ in pieces]
    batch = Ragged.of([(cache, len(part), draft) for cache, part, draft in pieces], prompts)
    return model.logits(model.forward(Step(tokens, positions, batch)), np.arange(len(tokens)))


PACKED = [(backend, "document_mlx") for backend in installed_backends() if backend.startswith("cpu")]


@pytest.mark.parametrize(("backend", "case"), [*((backend, "text") for backend in installed_backends()), *PACKED])
@settings(max_examples=20, deadline=None)
@given(cuts=st.lists(st.tuples(st.integers(1, 60), st.integers(0, 20), st.integers(0, 5)), min_size=1, max_size=8), data=st.data())
def test_any_cut_gives_the_same_logits(backend: str, case: str, cuts: list[tuple[int, int, int]], data: st.DataObject) -> None:
    """cuts: rows of the sequence, rows of another in the same step, and wrong tokens drafted after the right ones.

    The prompt ends somewhere in a cut; what is drafted before its end counts as prompt too, which is as good as anything.
    """
    model, tokens, expected = opened(backend, case)
    own, other = model.new_cache(), model.new_cache()
    rows: list[np.ndarray] = []
    for length, beside, wrong in [*cuts, (ROWS, 0, 0)]:
        right = tokens[own.length : own.length + length]
        if not len(right):
            break
        pieces = [(own, np.concatenate([right, tokens[:wrong]]), wrong > 0)] + ([(other, tokens[:beside], False)] if beside else [])
        if data.draw(st.booleans()):
            pieces.reverse()
        logits = step(model, pieces)
        start = len(pieces[0][1]) if pieces[0][0] is other else 0
        rows.append(logits[start : start + len(right)])
        if wrong:
            own.keep(len(right))
    found = np.concatenate(rows)
    exact = backend.startswith("cpu")  # promises the same bits; the others may round by the shape of a batch
    assert np.array_equal(found, expected) if exact else np.abs(found - expected).max() < 2e-4
