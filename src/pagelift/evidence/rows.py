"""Rows of arrays to the lines that they are printed on.

The values of one row stand on one line or close to it, and rows follow each other down the pages. So the rows of an array are placed
together: each row has lines that could be its own, and the best path through them is found by dynamic programming.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pagelift.core import Json
from pagelift.evidence.places import PageIndex, Place

NEAR = 3
"""A row's values are looked for on so many lines around its own line."""
NEARBY = (1.0, 0.35, 0.2, 0.1)
"""What a value so many lines away speaks for a line; words nearby may belong to the row above or below."""
FAR = 8
"""Short values are not taken from lines farther away than this; they are printed everywhere."""
SHORT = 2
BACKWARD = 1.2
"""What it costs, in values on their line, when a row stands above the one before it."""
PER_LINE = 0.004
TAKEN = 12.0


@dataclass(frozen=True, slots=True)
class Leaf:
    """A scalar of a JSON value.

    parent: pointer of what it stands in. key: the name of its property, also for entries of arrays. row: pointer of the innermost
    array entry around it, "" outside of arrays. column: its pointer with * for all numbers of entries.
    """

    pointer: str
    value: Json
    parent: str
    key: str
    row: str = ""
    column: str = ""


Candidates = Sequence[tuple[Leaf, Sequence[Place]]]


class Lines:
    """The printed lines of all pages, numbered from top to bottom and page to page."""

    def __init__(self, indexes: Sequence[PageIndex]) -> None:
        self._number: dict[int, int] = {}
        self._width: dict[int, float] = {}
        count = 0
        for index in indexes:
            self._width[index.number] = max(index.width_pt, 1.0)
            for line in index.lines:
                self._number |= dict.fromkeys(map(id, line), count)
                count += 1
            count += NEAR + 1  # rows do not reach over the end of a page

    def line(self, place: Place) -> int:
        """The line of a place's first word."""
        return self._number.get(id(place.words[0]), 0)

    def across(self, place: Place) -> float:
        """Where on its line a place begins, from 0 to 1."""
        return place.words[0].box.x0 / self._width.get(place.page, 1.0)


@dataclass(slots=True)
class _Row:
    """values: with the places where each may be printed. anchors: positions where the row could stand, rising, each with its score."""

    values: list[tuple[Leaf, Sequence[Place]]] = field(default_factory=list)
    anchors: list[tuple[float, float]] = field(default_factory=list)


def place_rows(candidates: Candidates, lines: Lines) -> dict[str, Place]:
    """Places of values in rows, by JSON Pointer. candidates: values inside of arrays, in their order, with all places of each."""
    found: dict[str, Place] = {}
    for rows in _sequences(candidates):
        single = all(len(row.values) == 1 for row in rows)
        for row in rows:
            row.anchors = _anchors(row, lines, single)
        found |= _choose(rows, _best_path([row.anchors for row in rows]), lines)
    return found


def _sequences(candidates: Candidates) -> Iterable[list[_Row]]:
    """The rows of each array; those of arrays inside rows make one sequence over all of these."""
    arrays: dict[str, dict[str, _Row]] = {}
    for leaf, places in candidates:
        array = leaf.column[: _column_of_row(leaf)]
        arrays.setdefault(array, {}).setdefault(leaf.row, _Row()).values.append((leaf, places))
    return [list(rows.values()) for rows in arrays.values()]


def _column_of_row(leaf: Leaf) -> int:
    """Where in `leaf.column` the part ends that stands for the row."""
    depth = leaf.row.count("/")
    end = 0
    for _ in range(depth):
        end = leaf.column.find("/", end + 1)
        if end < 0:
            return len(leaf.column)
    return end


def _anchors(row: _Row, lines: Lines, single: bool) -> list[tuple[float, float]]:
    """Positions (a line, for single values with the place across it as fraction) that hold values of a row, with how well they hold it."""
    if single:
        ((_, places),) = row.values
        best: dict[float, float] = {}
        for place in places:
            position = lines.line(place) + 0.9 * min(lines.across(place), 1.0)
            best[position] = max(best.get(position, 0.0), 1.0 - 0.1 * min(place.cost, 5.0))
        return sorted(best.items())
    scores: dict[int, float] = {}
    for _, places in row.values:
        weight = 1.0 / (1.0 + 0.02 * len(places))
        here: dict[int, float] = {}
        for place in places:
            line, gain = lines.line(place), weight * (1.0 - 0.1 * min(place.cost, 5.0))
            for distance in range(-NEAR, NEAR + 1):
                part = gain * NEARBY[abs(distance)]
                if part > here.get(line + distance, 0.0):
                    here[line + distance] = part
        for line, part in here.items():
            scores[line] = scores.get(line, 0.0) + part
    own = {lines.line(place) for _, places in row.values for place in places}
    return sorted((float(line), score) for line, score in scores.items() if line in own)


def _best_path(rows: Sequence[Sequence[tuple[float, float]]]) -> list[float | None]:
    """One position per row, None for rows without any: the most score, where going back or far costs."""
    steps: list[list[tuple[float, float, int]]] = []  # position, score of the best path to it, index in the step before
    kept: list[int] = []
    for number, anchors in enumerate(rows):
        if not anchors:
            continue
        before = steps[-1] if steps else []
        steps.append(_extend(before, anchors))
        kept.append(number)
    chosen: list[float | None] = [None] * len(rows)
    at = max(range(len(steps[-1])), key=lambda k: steps[-1][k][1]) if steps else 0
    for number, step in zip(reversed(kept), reversed(steps), strict=True):
        chosen[number], _, at = step[at]
    return chosen


def _extend(before: Sequence[tuple[float, float, int]], anchors: Sequence[tuple[float, float]]) -> list[tuple[float, float, int]]:
    """The best way to each anchor (rising positions) from the step before."""
    if not before:
        return [(position, score - PER_LINE * position * 0.001, -1) for position, score in anchors]
    anywhere = max(range(len(before)), key=lambda k: before[k][1])
    best, cursor = -1, 0
    out = []
    for position, score in anchors:
        while cursor < len(before) and before[cursor][0] < position:
            if best < 0 or before[cursor][1] + PER_LINE * before[cursor][0] >= before[best][1] + PER_LINE * before[best][0]:
                best = cursor
            cursor += 1
        back = before[anywhere][1] - BACKWARD
        forward = before[best][1] - PER_LINE * (position - before[best][0]) if best >= 0 else back - 1
        out.append((position, score + max(forward, back), best if forward >= back else anywhere))
    return out


def _choose(rows: Sequence[_Row], positions: Sequence[float | None], lines: Lines) -> dict[str, Place]:
    """The place of each value near its row's position; columns that are sure say where the others stand."""
    found: dict[str, Place] = {}
    centers = _column_centers(rows, positions, lines)
    taken: dict[str, set[tuple[int, ...]]] = {}
    for row, position in zip(rows, positions, strict=True):
        if position is None:
            continue
        for leaf, places in row.values:
            used = taken.setdefault(leaf.column, set())
            place = _nearest(places, position, centers.get(leaf.column), used, lines)
            if place is not None and not (_is_weak(leaf.value) and abs(lines.line(place) - int(position)) > FAR):
                found[leaf.pointer] = place
                used.add(_words(place))
    return found


def _nearest(places: Sequence[Place], position: float, center: float | None, used: set[tuple[int, ...]], lines: Lines) -> Place | None:
    def cost(place: Place) -> float:
        away = abs(lines.line(place) - int(position)) + (
            abs(lines.line(place) + 0.9 * lines.across(place) - position) if position % 1 else 0
        )
        sideways = 0.0 if center is None else abs(lines.across(place) - center)
        return away + sideways + 0.5 * place.cost + (TAKEN if _words(place) in used else 0.0)

    return min(places, key=cost, default=None)


def _column_centers(rows: Sequence[_Row], positions: Sequence[float | None], lines: Lines) -> Mapping[str, float]:
    """Where values of each column begin, by the rows on whose line there is one choice only."""
    starts: dict[str, list[float]] = {}
    for row, position in zip(rows, positions, strict=True):
        for leaf, places in row.values if position is not None else ():
            here = {round(lines.across(place), 3) for place in places if lines.line(place) == int(position or 0)}
            if len(here) == 1:
                starts.setdefault(leaf.column, []).append(here.pop())
    return {column: statistics.median(values) for column, values in starts.items()}


def _words(place: Place) -> tuple[int, ...]:
    return tuple(map(id, place.words))


def _is_weak(value: Json) -> bool:
    """Values of a character or two, which stand on every page."""
    return len(re.sub(r"\W", "", str(value))) <= SHORT
