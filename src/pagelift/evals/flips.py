"""Fields that another model reads otherwise, one by one: what one run has right and the next one wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pagelift.core import Json
from pagelift.evals.scoring import Scorer
from pagelift.schema.keywords import join

FlipKind = Literal["right -> wrong", "wrong -> right", "changed"]
FLIP_KINDS: tuple[FlipKind, ...] = ("right -> wrong", "wrong -> right", "changed")


@dataclass(frozen=True, slots=True)
class Verdict:
    """A field of the truth: what was predicted for it, and whether that is right."""

    expected: Json
    predicted: Json
    right: bool


@dataclass(frozen=True, slots=True)
class Flip:
    """A field whose value differs between two models. "changed": wrong both times, but another value. pointer: into the truth."""

    document: str
    pointer: str
    kind: FlipKind
    expected: Json
    reference: Json
    other: Json


def flips(document: str, reference: dict[str, Verdict], other: dict[str, Verdict]) -> Iterator[Flip]:
    """What changed between two predictions for one document; surplus rows of both are under their own pointers."""
    absent = Verdict(None, None, True)
    for pointer in dict.fromkeys([*reference, *other]):
        old, new = reference.get(pointer, absent), other.get(pointer, absent)
        if old.right != new.right:
            kind: FlipKind = "right -> wrong" if old.right else "wrong -> right"
        elif not old.right and old.predicted != new.predicted:
            kind = "changed"
        else:
            continue
        yield Flip(document, pointer, kind, (old if pointer in reference else new).expected, old.predicted, new.predicted)


def verdicts(scorer: Scorer, expected: Json, predicted: Json) -> dict[str, Verdict]:
    """Every field of the truth by JSON Pointer, and surplus rows by the pointer of their list with /+ and a number. Rows are paired as
    for the score."""
    return dict(_verdicts(scorer, expected, predicted, ("", "")))


def _verdicts(scorer: Scorer, expected: Json, predicted: Json, at: tuple[str, str]) -> Iterator[tuple[str, Verdict]]:
    """at: pointer and the key that it ends with."""
    pointer, key = at
    if isinstance(expected, dict):
        given = predicted if isinstance(predicted, dict) else {}
        for name, value in expected.items():
            yield from _verdicts(scorer, value, given.get(name), (join(pointer, name), name))
    elif isinstance(expected, list) and expected:
        rows = predicted if isinstance(predicted, list) else [] if predicted is None else [predicted]
        surplus = 0
        for step, row, number in scorer.rows(expected, rows, key):
            if step == "extra":
                yield f"{pointer}/+{surplus}", Verdict(None, row, False)
                surplus += 1
            else:
                yield from _verdicts(scorer, expected[number], row, (f"{pointer}/{number}", key))
    else:
        yield pointer, Verdict(expected, predicted, not scorer.value(expected, predicted, key).mistakes)
