"""How a predicted JSON value is scored against the true one, field by field.

The rules:
- Numbers are equal within 0.005 or one part in a million. Booleans and strings are not numbers.
- A true value that is an ISO date is compared as a date.
- Strings are compared after Unicode NFKC, case folding, collapsing white space and trimming punctuation at both ends;
  under keys that are declared loose, letters and digits decide.
- A true null is right only if the prediction is null or lacks the key; otherwise it is a false fill.
- In objects only the keys of the truth count.
- The rows of arrays are paired in order so that the fewest fields are wrong. A row that is missing has all its fields
  wrong; a surplus row counts as many wrong fields as the largest true row. Plain values under keys that are declared
  unordered may come in any order.
"""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pagelift.core import Json

Kind = Literal["wrong value", "not filled", "false fill", "missing row", "extra row"]
RowStep = Literal["pair", "missing", "extra"]
KINDS: tuple[Kind, ...] = ("wrong value", "not filled", "false fill", "missing row", "extra row")
_ABSENT: Any = object()  # a key that the prediction lacks; null counts the same


@dataclass(frozen=True, slots=True)
class Mistake:
    """Something the prediction has wrong. path: dotted, rows as []. count: the number of fields that are wrong by it."""

    path: str
    kind: Kind
    expected: Json
    predicted: Json
    count: int = 1


@dataclass(slots=True)
class Score:
    """right: paths of the fields that are right. null_fields: how many true values are null or an empty array."""

    right: list[str] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)
    null_fields: int = 0

    @property
    def wrong(self) -> int:
        return sum(mistake.count for mistake in self.mistakes)

    def include(self, other: Score) -> None:
        self.right += other.right
        self.mistakes += other.mistakes
        self.null_fields += other.null_fields


@dataclass(frozen=True, slots=True)
class Scorer:
    """The rules with their two exceptions. loose, unordered: names of the keys that they hold for."""

    loose: frozenset[str] = frozenset()
    unordered: frozenset[str] = frozenset()

    def score(self, expected: Json, predicted: Json) -> Score:
        """Score one document."""
        return self._compare(expected, predicted, "", "")

    def value(self, expected: Json, predicted: Json, key: str) -> Score:
        """Score one value that stands under a key."""
        return self._compare(expected, predicted, "", key)

    def missing(self, expected: Json) -> Score:
        """The score of a document without a prediction: everything is wrong, true nulls too."""
        return Score(mistakes=[Mistake("", "not filled", expected, None, count_fields(expected))])

    def _compare(self, expected: Json, predicted: Json, path: str, key: str) -> Score:
        if isinstance(expected, dict):
            given = predicted if isinstance(predicted, dict) else {}
            total = Score()
            for name, value in expected.items():
                total.include(self._compare(value, given.get(name, _ABSENT), f"{path}.{name}" if path else name, name))
            return total
        empty = predicted is None or predicted is _ABSENT
        if isinstance(expected, list):
            rows = predicted if isinstance(predicted, list) else [] if empty else [predicted]
            return self._compare_rows(expected, rows, path, key)
        if expected is None:
            if empty:
                return Score(right=[path], null_fields=1)
            return Score(mistakes=[Mistake(path, "false fill", None, predicted)], null_fields=1)
        if empty:
            return Score(mistakes=[Mistake(path, "not filled", expected, None)])
        if same_value(expected, predicted, loose=key in self.loose):
            return Score(right=[path])
        return Score(mistakes=[Mistake(path, "wrong value", expected, predicted)])

    def _compare_rows(self, expected: list[Json], predicted: list[Json], path: str, key: str) -> Score:
        if not expected:
            if not predicted:
                return Score(right=[path], null_fields=1)
            return Score(mistakes=[Mistake(path, "false fill", expected, predicted, len(predicted))], null_fields=1)
        row_path = path + "[]"
        predicted, pairs, sizes = self._pairs(expected, predicted, row_path, key)
        total = Score()
        for step, i, j in _align([[pair.wrong for pair in row] for row in pairs], sizes, len(predicted)):
            if step == "pair":
                total.include(pairs[i][j])
            elif step == "missing":
                total.mistakes.append(Mistake(row_path, "missing row", expected[i], None, sizes[i]))
            else:
                total.mistakes.append(Mistake(row_path, "extra row", None, predicted[j], max(sizes)))
        return total

    def rows(self, expected: list[Json], predicted: list[Json], key: str) -> Iterator[tuple[RowStep, Json, int]]:
        """How the rows of an array under a key are paired: "pair" or "extra" with the predicted row, "missing" with null; and the number
        of the true row."""
        predicted, pairs, sizes = self._pairs(expected, predicted, "", key)
        for step, i, j in _align([[pair.wrong for pair in row] for row in pairs], sizes, len(predicted)):
            yield step, None if step == "missing" else predicted[j], i

    def _pairs(self, expected: list[Json], predicted: list[Json], path: str, key: str) -> tuple[list[Json], list[list[Score]], list[int]]:
        """The predicted rows in the order in which they count, the score of each true row with each of them, and the sizes of the true."""
        if key in self.unordered and not any(isinstance(row, dict | list) for row in expected):
            predicted = _reorder(expected, predicted, loose=key in self.loose)
        pairs = [[self._compare(e, p, path, key) for p in predicted] for e in expected]
        return predicted, pairs, [count_fields(row) for row in expected]


def count_fields(expected: Json) -> int:
    """The number of fields that a true value holds; an empty array is one."""
    if isinstance(expected, dict):
        return sum(count_fields(value) for value in expected.values())
    if isinstance(expected, list) and expected:
        return sum(count_fields(value) for value in expected)
    return 1


def same_value(expected: Json, predicted: Json, loose: bool = False) -> bool:
    """Whether a predicted scalar is the true one by the rules above. expected: not null."""
    if isinstance(expected, bool) or isinstance(predicted, bool):
        return expected is predicted
    if isinstance(expected, int | float):
        close = max(0.005, abs(expected) * 1e-6)
        return isinstance(predicted, int | float) and (expected == predicted or abs(expected - predicted) <= close)
    if not isinstance(expected, str) or not isinstance(predicted, str):
        return False
    day = _iso_day(expected)
    if day is not None:
        return day == _iso_day(predicted)
    if _plain(expected) == _plain(predicted):
        return True
    return loose and _alphanumeric(expected) == _alphanumeric(predicted) != ""


_ISO_DAY = re.compile(r"(\d{4}-\d\d-\d\d)([T ]00:00(:00(\.0+)?)?(Z|[+-]\d\d:?\d\d)?)?")


def _iso_day(text: str) -> datetime.date | None:
    """The day of an ISO date or of midnight on it, None for any other text."""
    match = _ISO_DAY.fullmatch(text.strip())
    try:
        return datetime.date.fromisoformat(match[1]) if match else None
    except ValueError:
        return None


def _plain(text: str) -> str:
    text = " ".join(unicodedata.normalize("NFKC", text).split()).casefold()
    inner = text
    while inner and _is_edge(inner[0]):
        inner = inner[1:]
    while inner and _is_edge(inner[-1]):
        inner = inner[:-1]
    return inner or text  # a value of punctuation alone stays itself


def _is_edge(character: str) -> bool:
    return character.isspace() or unicodedata.category(character).startswith("P")


def _alphanumeric(text: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


def _reorder(expected: Sequence[Json], predicted: Sequence[Json], loose: bool) -> list[Json]:
    """Bring the predicted values that are right to the positions where the truth has them; others fill the gaps."""
    rest = list(predicted)
    slots: list[Json] = []
    for value in expected:
        match = next((k for k, candidate in enumerate(rest) if value is not None and same_value(value, candidate, loose)), None)
        slots.append(_ABSENT if match is None else rest.pop(match))
    filled = [rest.pop(0) if slot is _ABSENT and rest else slot for slot in slots]
    return [slot for slot in filled if slot is not _ABSENT] + rest


def _align(wrong: list[list[int]], sizes: list[int], columns: int) -> Iterator[tuple[RowStep, int, int]]:
    """Pair true rows with predicted rows in order so that the fewest fields are wrong.

    wrong[i][j]: wrong fields when true row i is paired with predicted row j. sizes: fields of each true row.
    Yields steps with their row numbers; on a tie a pair comes before a missing row before a surplus row.
    """
    surplus = max(sizes)
    rows = len(sizes)
    cost = [[0] * (columns + 1) for _ in range(rows + 1)]  # cost[i][j]: fewest wrong fields of all rows from i and j on
    for i in range(rows, -1, -1):
        for j in range(columns, -1, -1):
            options = []
            if i < rows and j < columns:
                options.append(wrong[i][j] + cost[i + 1][j + 1])
            if i < rows:
                options.append(sizes[i] + cost[i + 1][j])
            if j < columns:
                options.append(surplus + cost[i][j + 1])
            cost[i][j] = min(options, default=0)
    i = j = 0
    while i < rows or j < columns:
        if i < rows and j < columns and cost[i][j] == wrong[i][j] + cost[i + 1][j + 1]:
            yield "pair", i, j
            i, j = i + 1, j + 1
        elif i < rows and cost[i][j] == sizes[i] + cost[i + 1][j]:
            yield "missing", i, j
            i += 1
        else:
            yield "extra", i, j
            j += 1
