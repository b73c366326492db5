"""The scoring rules, each on its own, and agreement with an independent scorer where its data is at hand."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagelift.evals.scoring import Scorer, count_fields, same_value

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


def tally(expected: Any, predicted: Any, **rules: frozenset[str]) -> tuple[int, int]:
    score = Scorer(**rules).score(expected, predicted)
    return len(score.right), score.wrong


@pytest.mark.parametrize(
    ("expected", "predicted", "right"),
    [
        (10.0, 10.004, True),
        (10.0, 10.02, False),
        (2_000_000, 2_000_001, True),
        (3, "3", False),
        (1, True, False),
        (False, 0, False),
        (False, False, True),
        ("Müller  GmbH.", "müller gmbh", True),
        ("Gießen", "GIESSEN", True),
        ("ＡＢ１", "ab1", True),
        ("A-1", "A1", False),
        ("—", "—", True),
        ("—", "+", False),
        ("2024-02-29", "2024-02-29T00:00:00Z", True),
        ("2024-02-29", "2024-02-29T10:00:00Z", False),
        ("2024-02-29", "29/02/2024", False),
        ("2023-02-29", "2023-02-29", True),
        ("x", ["x"], False),
        ("x", {"x": 1}, False),
    ],
)
def test_scalars(expected: Any, predicted: Any, right: bool) -> None:
    assert same_value(expected, predicted) is right


def test_loose_keys_compare_letters_and_digits() -> None:
    truth, guess = {"address": "1, Main St. 5"}, {"address": "1 MAIN ST 5"}
    assert tally(truth, guess) == (0, 1)
    assert tally(truth, guess, loose=frozenset({"address"})) == (1, 0)
    assert tally({"address": "--"}, {"address": "++"}, loose=frozenset({"address"})) == (0, 1)


def test_null_is_right_only_when_null_or_absent() -> None:
    assert tally({"a": None}, {"a": None}) == (1, 0)
    assert tally({"a": None}, {}) == (1, 0)
    score = Scorer().score({"a": None, "b": 1}, {"a": "", "b": None})
    assert [m.kind for m in score.mistakes] == ["false fill", "not filled"]
    assert score.null_fields == 1


def test_surplus_keys_do_not_count_and_wrong_containers_lose_all() -> None:
    assert tally({"a": 1}, {"a": 1, "b": 2}) == (1, 0)
    assert tally({"a": {"b": 1, "c": 2}}, {"a": [1]}) == (0, 2)


ROWS = [{"k": "a", "v": 1}, {"k": "b", "v": 2}, {"k": "c", "v": 3}]


@pytest.mark.parametrize(
    ("predicted", "right", "wrong"),
    [
        (ROWS, 6, 0),
        (ROWS[1:], 4, 2),
        ([ROWS[0], {"k": "z", "v": 0}, *ROWS[1:]], 6, 2),
        ([ROWS[0], {"k": "b", "v": 0}, ROWS[2]], 5, 1),
        (ROWS[::-1], 2, 4),
        (None, 0, 6),
        (ROWS[0], 2, 4),
    ],
)
def test_rows(predicted: Any, right: int, wrong: int) -> None:
    assert tally({"rows": ROWS}, {"rows": predicted}) == (right, wrong)


def test_empty_arrays() -> None:
    assert tally({"rows": []}, {}) == (1, 0)
    assert tally({"rows": []}, {"rows": [1, 2, 3]}) == (0, 3)


def test_unordered_values() -> None:
    assert tally({"tags": ["a", "b", "c"]}, {"tags": ["c", "a", "x"]}, unordered=frozenset({"tags"})) == (2, 1)
    assert tally({"tags": ["a"]}, {"tags": ["b", "a"]}, unordered=frozenset({"tags"})) == (1, 1)


def test_a_missing_prediction_earns_nothing() -> None:
    score = Scorer().missing({"a": None, "rows": [{"b": 1, "c": 2}], "none": []})
    assert (len(score.right), score.wrong) == (0, 4)


TEXT = st.text("ab-. 1é", max_size=3)
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-3, 3) | TEXT | st.sampled_from(["2024-01-01", "2024-01-01T00:00:00Z"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4), max_leaves=12
)


@given(VALUES)
def test_the_truth_scores_full_marks(truth: Any) -> None:
    assert tally(truth, truth) == (count_fields(truth), 0)


@pytest.fixture(scope="module")
def other(load_script: Callable[[Path], Any]) -> Any:
    """The independent scorer."""
    if not (SHARED / "score.py").is_file():
        pytest.skip("the independent scorer is not on this machine")
    return load_script(SHARED / "score.py")


def check_agreement(other: Any, truth: Any, guess: Any, loose: frozenset[str], unordered: frozenset[str]) -> None:
    mine = Scorer(loose, unordered).score(truth, guess)
    theirs = other.compare(truth, guess, loose=loose, unordered=unordered)
    assert (len(mine.right), mine.wrong, mine.null_fields) == (theirs.right, theirs.wrong(), theirs.nulls)
    assert [(m.path, m.kind, m.count) for m in mine.mistakes] == [(b[0], b[1], b[4]) for b in theirs.bad]


@given(truth=VALUES, guess=VALUES, loose=st.sets(st.sampled_from("abcd")), unordered=st.sets(st.sampled_from("abcd")))
def test_agrees_with_the_independent_scorer(other: Any, truth: Any, guess: Any, loose: set[str], unordered: set[str]) -> None:
    check_agreement(other, truth, guess, frozenset(loose), frozenset(unordered))


def test_agrees_on_damaged_truths_of_real_documents(other: Any) -> None:
    chance = random.Random(7)
    for file in sorted((SHARED / "dev").glob("*/expected/*.json"))[::4]:
        truth = json.loads(file.read_text(encoding="utf-8"))
        check_agreement(other, truth, _damage(truth, chance), frozenset({"address"}), frozenset())


def _damage(value: Any, chance: random.Random) -> Any:
    if isinstance(value, dict):
        return {k: _damage(v, chance) for k, v in value.items() if chance.random() > 0.1}
    if isinstance(value, list):
        rows = [_damage(v, chance) for v in value if chance.random() > 0.1]
        return rows + rows[:1] if chance.random() < 0.3 else rows
    return chance.choice([value, value, value, None, "wrong", 17, str(value).upper()])
