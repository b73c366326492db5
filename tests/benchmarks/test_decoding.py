"""Passes over the weights for the fixed invoice, counted with the real loop and a real grammar; only the weights are missing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pagelift.models import load_config
from pagelift.runtime import RuntimeSettings
from pagelift.schema import Schema

GOLDEN = Path(__file__).parent.parent / "golden" / "document"


def count(scripts, monkeypatch: pytest.MonkeyPatch, seed: int, **changes: object) -> dict:
    """Counts of one job. changes: of the case."""
    decoding, cases = scripts("decoding"), scripts("invoice_case")
    config = load_config(GOLDEN)
    monkeypatch.setattr(decoding, "load_config", lambda _: replace(config, text=replace(config.text, max_positions=1 << 16)))
    case = replace(cases.invoice(seed=seed), **changes)
    return decoding.Job(decoding.opened(GOLDEN, "none", True, RuntimeSettings()), case).run(1)


def passes_per_token(found: dict) -> float:
    return (found["passes"] - found["prefill_passes"]) / found["output_tokens"]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_invoice_takes_a_tenth_of_a_pass_per_token(scripts, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    found = count(scripts, monkeypatch, seed)
    assert passes_per_token(found) < 0.1
    assert found["accepted"] > 0.8 * found["drafted"]


def test_words_without_lines_are_nearly_as_good(scripts, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = scripts("invoice_case").invoice().lines
    assert passes_per_token(count(scripts, monkeypatch, 0, lines=(" ".join(lines),))) < 0.15


def test_without_the_page_only_forced_tokens_and_the_answer_itself_help(scripts, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0.3 < passes_per_token(count(scripts, monkeypatch, 0, lines=())) < 0.8


def test_the_answer_of_another_engine_is_a_hint(scripts, monkeypatch: pytest.MonkeyPatch) -> None:
    case = scripts("invoice_case").invoice()
    assert passes_per_token(count(scripts, monkeypatch, 0, lines=(case.answer,))) < 0.1


def test_the_case_is_what_it_says(scripts) -> None:
    case = scripts("invoice_case").invoice()
    answer = json.loads(case.answer)
    assert len(answer) == 12 + 1
    assert len(answer["items"]) == 20
    assert Schema.load(case.schema).is_valid(answer)
    text = "\n".join(case.lines)
    assert all(str(row["description"]) in text and row["article"] in text for row in answer["items"])
