"""Rows of arrays to the lines that they are printed on.

The values of one row stand on one line or close to it, and rows follow each other down the pages. So the rows of an array are placed
together: each row has lines that could be its own, and the best path through them is found by dynamic programming.
"""

from __future__ import annotations

import re
import statistics
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pagelift.core import Json
from pagelift.evidence.places import PageIndex, Place

NEAR = 3
"""A row's values are looked for on so many lines around its own line."""
NEARBY = (1.0, 0.35, 0.2, 0.1)
"""What a value so many lines away speaks for a line; words nearby may belong to the row above or below."""
FAR = 8
"""Short values are not taken from lines farther away than this; they are printed everywhere."""
SHORT = 2
BACKWARD = 2.5
"""What it costs, in values on their line, when a row stands above the one before it."""
PER_LINE = 0.004
TAKEN = 12.0
SEARCHED = 16
"""Places are compared on so many lines around a row's own; beyond, only the nearest count."""
MOST_STEPS = 20_000_000
"""Slots times rows that are kept in memory at once; longer arrays are placed in parts."""


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


Scores = npt.NDArray[np.floating[Any]]
Indices = npt.NDArray[np.integer[Any]]
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
        self.count = count

    def line(self, place: Place) -> int:
        """The line of a place's first word."""
        return self._number.get(id(place.words[0]), 0)

    def across(self, place: Place) -> float:
        """Where on its line a place begins, from 0 to 1."""
        return place.words[0].box.x0 / self._width.get(place.page, 1.0)


class _Spots:
    """Where one value may be printed, ready to be asked for many rows that have it.

    gains: how well each slot holds the value. own: slots that it stands in itself.
    """

    def __init__(self, places: Sequence[Place], track: _Track) -> None:
        self.by_line: dict[int, list[Place]] = {}
        self.gains = np.zeros(len(track.slots), np.float32)
        self.own = np.zeros(len(track.slots), bool)
        weight = 1.0 if track.single else 1.0 / (1.0 + 0.02 * len(places))
        for place in places:
            self.by_line.setdefault(track.lines.line(place), []).append(place)
            slot = track.slot(place)
            self.own[slot] = True
            self.gains[slot] = max(self.gains[slot], weight * (1.0 - 0.1 * min(place.cost, 5.0)))
        self.numbers = sorted(self.by_line)
        if not track.single:
            self.gains = _spread(self.gains)

    def near(self, line: int) -> Iterable[Place]:
        """Places on lines around this one, at least those on the nearest lines before and behind it."""
        first, last = bisect_left(self.numbers, line - SEARCHED), bisect_left(self.numbers, line + SEARCHED + 1)
        for number in self.numbers[max(0, first - 1) : last + 1]:
            yield from self.by_line[number]


def _spread(gains: Scores) -> Scores:
    """Gains of lines with what the lines around them give."""
    spread = gains.copy()
    for distance in range(1, NEAR + 1):
        part = gains * np.float32(NEARBY[distance])
        np.maximum(spread[distance:], part[:-distance], out=spread[distance:])
        np.maximum(spread[:-distance], part[distance:], out=spread[:-distance])
    return spread


class _Track:
    """The positions that rows of one array can have: lines, or for arrays of single values places on lines, in order."""

    def __init__(self, values: Candidates, lines: Lines, single: bool) -> None:
        self.lines = lines
        self.single = single
        if single:
            self.slots = np.array(sorted({self._position(place) for _, places in values for place in places}))
        else:
            self.slots = np.arange(lines.count, dtype=np.float64)
        self._slot = {position: k for k, position in enumerate(self.slots.tolist())} if single else {}
        self._spots: dict[int, _Spots] = {}

    def spots(self, places: Sequence[Place]) -> _Spots:
        if id(places) not in self._spots:
            self._spots[id(places)] = _Spots(places, self)
        return self._spots[id(places)]

    def slot(self, place: Place) -> int:
        return self._slot[self._position(place)] if self.single else self.lines.line(place)

    def _position(self, place: Place) -> float:
        return self.lines.line(place) + 0.9 * min(self.lines.across(place), 1.0)


Row = Candidates
"""The values of one row with the places where each may be printed."""


def place_rows(candidates: Candidates, lines: Lines) -> dict[str, Place]:
    """Places of values in rows, by JSON Pointer. candidates: values inside of arrays, in their order, with all places of each."""
    found: dict[str, Place] = {}
    for rows in _sequences(candidates):
        track = _Track([value for row in rows for value in row], lines, all(len(row) == 1 for row in rows))
        found |= _choose(rows, _best_path(rows, track), track)
    return found


def _sequences(candidates: Candidates) -> Iterable[list[Row]]:
    """The rows of each array; those of arrays inside rows make one sequence over all of these."""
    arrays: dict[str, dict[str, list[tuple[Leaf, Sequence[Place]]]]] = {}
    for leaf, places in candidates:
        array = leaf.column[: _column_of_row(leaf)]
        arrays.setdefault(array, {}).setdefault(leaf.row, []).append((leaf, places))
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


def _best_path(rows: Sequence[Row], track: _Track) -> list[float]:
    """One position per row: the most score, where going back or far costs."""
    far = PER_LINE * track.slots
    chosen: list[float] = []
    best: Scores = np.zeros(0)
    part = max(1, MOST_STEPS // max(1, len(far)))
    for first in range(0, len(rows), part):
        best = np.where(np.arange(len(best)) == int(np.argmax(best)), best, -np.inf) if len(best) else best  # what is chosen stays
        parents: list[Indices] = []
        for row in rows[first : first + part]:
            best, parent = _extend(best, row, track, far)
            parents.append(parent)
        at = int(np.argmax(best))
        path = []
        for parent in reversed(parents):
            path.append(float(track.slots[at]))
            at = int(parent[at])
        chosen += reversed(path)
    return chosen


def _extend(before: Scores, row: Row, track: _Track, far: Scores) -> tuple[Scores, Indices]:
    """The best score of a path that ends in each slot, and the slot before. before: the same of the row before, empty for the first."""
    spots = [track.spots(places) for _, places in row]
    own = np.logical_or.reduce([spot.own for spot in spots])
    score = np.where(own, np.sum([spot.gains for spot in spots], axis=0), -np.inf)
    if not len(before):
        return score - far * 0.001, np.full(len(score), -1)
    reach = before + far
    highest = np.maximum.accumulate(reach)
    where = np.maximum.accumulate(np.where(reach >= highest, np.arange(len(reach)), 0))  # the last of equals
    highest, where = np.concatenate([[-np.inf], highest[:-1]]), np.concatenate([[0], where[:-1]])
    anywhere = int(np.argmax(before))
    forward, back = highest - far, before[anywhere] - BACKWARD
    return score + np.maximum(forward, back), np.where(forward >= back, where, anywhere)


def _choose(rows: Sequence[Row], positions: Sequence[float], track: _Track) -> dict[str, Place]:
    """The place of each value near its row's position; columns that are sure say where the others stand."""
    found: dict[str, Place] = {}
    centers = _column_centers(rows, positions, track)
    taken: dict[str, set[tuple[int, ...]]] = {}
    seen: set[tuple[float, str]] = set()
    for row, position in zip(rows, positions, strict=True):
        said = position, repr([leaf.value for leaf, _ in row])
        repeated = said in seen  # it can only be the same row once more, so it has the same words
        seen.add(said)
        for leaf, places in row:
            used = set() if repeated else taken.setdefault(leaf.column, set())
            place = _nearest(track.spots(places), position, centers.get(leaf.column), used, track.lines)
            if not (_is_weak(leaf.value) and abs(track.lines.line(place) - int(position)) > FAR):
                found[leaf.pointer] = place
                used.add(_words(place))
    return found


def _nearest(spots: _Spots, position: float, center: float | None, used: set[tuple[int, ...]], lines: Lines) -> Place:
    line = int(position)

    def cost(place: Place) -> float:
        number, across = lines.line(place), lines.across(place)
        away = abs(number - line) + (abs(number + 0.9 * across - position) if position % 1 else 0)
        sideways = 0.0 if center is None else abs(across - center)
        return away + sideways + 0.5 * place.cost + (TAKEN if _words(place) in used else 0.0)

    return min(spots.near(line), key=cost)


def _column_centers(rows: Sequence[Row], positions: Sequence[float], track: _Track) -> Mapping[str, float]:
    """Where values of each column begin, by the rows on whose line there is one choice only."""
    starts: dict[str, list[float]] = {}
    for row, position in zip(rows, positions, strict=True):
        for leaf, places in row:
            here = {round(track.lines.across(place), 3) for place in track.spots(places).by_line.get(int(position), ())}
            if len(here) == 1:
                starts.setdefault(leaf.column, []).append(here.pop())
    return {column: statistics.median(values) for column, values in starts.items()}


def _words(place: Place) -> tuple[int, ...]:
    return tuple(map(id, place.words))


def _is_weak(value: Json) -> bool:
    """Values of a character or two, which stand on every page."""
    return len(re.sub(r"\W", "", str(value))) <= SHORT
