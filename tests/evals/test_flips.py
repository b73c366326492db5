"""Fields that two models read differently."""

from hypothesis import given
from hypothesis import strategies as st

from pagelift.evals.flips import flips, verdicts
from pagelift.evals.scoring import Scorer

TRUTH = {"number": "A-1", "total": 10.5, "note": None, "rows": [{"item": "Nut", "price": 1}, {"item": "Bolt", "price": 2}]}


def flipped(old: object, new: object, scorer: Scorer | None = None) -> dict[str, tuple[str, object, object, object]]:
    use = scorer or Scorer()
    found = flips("x", verdicts(use, TRUTH, old), verdicts(use, TRUTH, new))
    return {flip.pointer: (flip.kind, flip.expected, flip.reference, flip.other) for flip in found}


def test_every_kind_of_flip() -> None:
    old = TRUTH | {"total": 9, "note": "x"}
    new = {"number": "B", "total": 10.5, "note": "y", "rows": TRUTH["rows"]}
    assert flipped(old, new) == {
        "/number": ("right -> wrong", "A-1", "A-1", "B"),
        "/total": ("wrong -> right", 10.5, 9, 10.5),
        "/note": ("changed", None, "x", "y"),
    }
    assert flipped(old, old) == {}


def test_rows_are_paired_as_for_the_score() -> None:
    second = [TRUTH["rows"][1]]
    assert flipped(TRUTH, TRUTH | {"rows": second}) == {
        "/rows/0/item": ("right -> wrong", "Nut", "Nut", None),
        "/rows/0/price": ("right -> wrong", 1, 1, None),
    }
    extra = {"item": "Ghost", "price": 9}
    assert flipped(TRUTH, TRUTH | {"rows": [*TRUTH["rows"], extra]}) == {"/rows/+0": ("right -> wrong", None, None, extra)}
    assert flipped(TRUTH, None)["/number"] == ("right -> wrong", "A-1", "A-1", None)


def test_exceptions_of_the_scorer_hold() -> None:
    loose = Scorer(loose=frozenset(["number"]))
    assert flipped(TRUTH | {"number": "a 1"}, TRUTH, loose) == {}
    assert flipped(TRUTH | {"number": "a 1"}, TRUTH) == {"/number": ("wrong -> right", "A-1", "a 1", "A-1")}
    unordered = Scorer(unordered=frozenset(["tags"]))
    found = verdicts(unordered, {"tags": ["a", "b"]}, {"tags": ["b", "a"]})
    assert [v.right for v in found.values()] == [True, True]


VALUES = st.recursive(
    st.none() | st.integers(0, 3) | st.sampled_from(["a", "b"]),
    lambda inner: st.dictionaries(st.sampled_from("xyz"), inner, max_size=3) | st.lists(inner, max_size=3),
    max_leaves=8,
)


@given(VALUES, VALUES)
def test_verdicts_agree_with_the_score(truth: object, predicted: object) -> None:
    """A document is without mistakes exactly if every verdict is right."""
    right = all(verdict.right for verdict in verdicts(Scorer(), truth, predicted).values())
    mistakes = Scorer().score(truth, predicted).mistakes
    assert right == (not mistakes) or all(mistake.kind == "missing row" for mistake in mistakes)
