"""The checkpoint in models/: it reads the page, it does not guess."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from nano.evaluate import evaluate

from pagelift.evals.synthetic import Sample, make_samples
from pagelift.extract.vlm import VlmEngine

MODEL = Path(__file__).parents[2] / "models" / "pagelift-nano"
COUNT = 12


@pytest.fixture(scope="module")
def engine() -> VlmEngine:
    return VlmEngine(MODEL, "cpu")


@pytest.fixture(scope="module")
def documents() -> list[Sample]:
    return list(islice(make_samples(4, "test"), COUNT))


def test_it_reads_what_is_asked(engine: VlmEngine, documents: list[Sample]) -> None:
    shares = evaluate(engine, documents, control=False)
    assert shares["failed"] == {}
    assert shares["flat, not null"] > 0.4


def test_it_does_not_guess(engine: VlmEngine, documents: list[Sample]) -> None:
    shares = evaluate(engine, documents, control=True)
    assert shares["flat, not null"] < 0.1
