"""Values to words: which of the places where a value may be printed is the one it was read from.

A place is taken from the words of the pages or not at all; no box is ever made up. Where a value is printed more than once, its
neighbours in the JSON value and the name of its key beside it decide; rows of arrays are placed together (`rows`).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pagelift.core import Box, Json, PageContent, Word
from pagelift.evidence.places import PageIndex, Place, normalise
from pagelift.evidence.rows import Leaf, Lines, place_rows

OTHER_PAGE = 2000.0
TAKEN = 400.0
COST = 500.0
LABEL = 300.0
BESIDE_PT, ABOVE_PT = 250.0, 30.0
MOST_NEAR, MOST_COMPARED = 8, 300


def align(data: Json, pages: Sequence[PageContent | PageIndex], again: Mapping[str, str] | None = None) -> dict[str, Place]:
    """Where the scalars of `data` are printed, by JSON Pointer (RFC 6901); values that are not found have no entry.

    pages: in order; who asks several times makes the indexes once. again: pointers of rows that may be earlier ones said once more,
    with those of the earlier ones, where they stand too if no words are left that only they can be.
    Tolerant of number and date formats, white space, case, hyphenation, punctuation in texts and line ends. Booleans and nulls have
    no place.
    """
    indexes = [page if isinstance(page, PageIndex) else PageIndex(page) for page in pages]
    known: dict[tuple[str, str], list[Place]] = {}
    choices: list[tuple[Leaf, list[Place]]] = []
    for leaf in leaves(data):
        key = (type(leaf.value).__name__, str(leaf.value))
        if key not in known:
            known[key] = [place for index in indexes for place in index.places(leaf.value)]
        if known[key]:
            choices.append((leaf, known[key]))
    lines = Lines(indexes)
    repeated = [choice for choice in choices if again and choice[0].row in again]
    chosen = _choose([choice for choice in choices if not again or choice[0].row not in again], indexes, lines)
    if again and not _words_left(repeated, choices, chosen, lines):
        for leaf, _ in repeated:
            before = again[leaf.row] + leaf.pointer[len(leaf.row) :]
            chosen |= {leaf.pointer: chosen[before]} if before in chosen else {}
    elif repeated:
        chosen = _choose(choices, indexes, lines)
    return {leaf.pointer: chosen[leaf.pointer] for leaf, _ in choices if leaf.pointer in chosen}


Choices = Sequence[tuple[Leaf, Sequence[Place]]]


def _choose(choices: Choices, indexes: Sequence[PageIndex], lines: Lines) -> dict[str, Place]:
    """One place for each value, by pointer, from all that it may be printed at."""
    chooser = _Chooser(indexes)
    in_rows = [choice for choice in choices if choice[0].row]
    rows = place_rows(in_rows, lines) if in_rows else {}
    for leaf, _ in in_rows:
        if leaf.pointer in rows:
            chooser.take(leaf, rows[leaf.pointer])
    alone = [choice for choice in choices if not choice[0].row]
    for leaf, places in sorted(alone, key=lambda choice: len(choice[1]) > 1):  # what is printed once anchors the rest
        chooser.choose(leaf, places)
    return chooser.chosen


def _words_left(repeated: Choices, choices: Choices, chosen: Mapping[str, Place], lines: Lines) -> bool:
    """Whether a value of repeated rows is printed more often than others say it. chosen: the places of all others."""
    on_lines: dict[str, set[int]] = {}
    for leaf, _ in choices:
        if leaf.pointer in chosen:
            on_lines.setdefault(leaf.row or leaf.pointer, set()).add(lines.line(chosen[leaf.pointer]))
    uses: dict[int, set[tuple[str, tuple[int, ...]]]] = {}
    for leaf, places in choices:
        if len(on_lines.get(leaf.row or leaf.pointer, ())) == 1 and leaf.pointer in chosen:  # rows on several may have others' words
            uses.setdefault(id(places), set()).add(_use(leaf, chosen[leaf.pointer]))
    return any(_printed(places) > len(uses.get(id(places), ())) for _, places in repeated)


def _printed(places: Sequence[Place]) -> int:
    """How often a value is printed, leaving aside places that are much less likely than the likeliest, such as a part of a word."""
    least = min(place.cost for place in places)
    return sum(place.cost < least + 1 for place in places)


def leaves(data: Json) -> Iterator[Leaf]:
    """The scalars of a JSON value, in its order."""
    return _leaves(data, Leaf("", None, "", ""))


def _leaves(data: Json, at: Leaf) -> Iterator[Leaf]:
    """The scalars below a place. at: the place, as if it were a scalar."""
    if isinstance(data, dict):
        for name, value in data.items():
            step = "/" + name.replace("~", "~0").replace("/", "~1")
            yield from _leaves(value, Leaf(at.pointer + step, None, at.pointer, name, at.row, at.column + step))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            pointer = f"{at.pointer}/{index}"
            yield from _leaves(value, Leaf(pointer, None, at.pointer, at.key, pointer, at.column + "/*"))
    else:
        yield replace(at, value=data)


class _Chooser:
    """Chooses places one value after the other, each with regard to those before."""

    def __init__(self, indexes: Sequence[PageIndex]) -> None:
        self._labels = {index.number: _Labels(index) for index in indexes}
        self._taken: set[tuple[str, tuple[int, ...]]] = set()
        self._by_parent: dict[str, list[Place]] = {}
        self.chosen: dict[str, Place] = {}

    def choose(self, leaf: Leaf, places: Sequence[Place]) -> None:
        near = self._by_parent.setdefault(leaf.parent, [])
        best = self._best(leaf, places, near[-MOST_NEAR:]) if len(places) > 1 else places[0]
        self.take(leaf, best)

    def take(self, leaf: Leaf, place: Place) -> None:
        """Settle the place of a value."""
        self.chosen[leaf.pointer] = place
        self._by_parent.setdefault(leaf.parent, []).append(place)
        self._taken.add(_use(leaf, place))

    def _best(self, leaf: Leaf, places: Sequence[Place], near: Sequence[Place]) -> Place:
        pages = {place.page for place in near}
        same_page = [place for place in places if place.page in pages] or places
        names = frozenset(normalise(part) for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+|[^\W\d_a-zA-Z]+", leaf.key))
        return min(same_page[:MOST_COMPARED], key=lambda place: self._score(leaf, names, place, near))

    def _score(self, leaf: Leaf, names: frozenset[str], place: Place, near: Sequence[Place]) -> float:
        score = COST * place.cost + (TAKEN if _use(leaf, place) in self._taken else 0.0)
        score += min((_distance(place, other) for other in near), default=0.0)
        return score - LABEL * len(names & self._labels[place.page].around(place.words[0])) / max(1, len(names))


class _Labels:
    """The words of a page that may be the label of another: before it on its line, or just above."""

    def __init__(self, index: PageIndex) -> None:
        words = sorted((word for line in index.lines for word in line), key=lambda word: word.box.center_y)
        self._heights = [word.box.center_y for word in words]
        self._words = [(word.box, normalise(word.text.strip(".,:;#"))) for word in words]
        self._known: dict[int, frozenset[str]] = {}

    def around(self, word: Word) -> frozenset[str]:
        """The normalised texts of a word's possible labels."""
        if id(word) not in self._known:
            y = word.box.center_y
            first, last = bisect_left(self._heights, y - ABOVE_PT), bisect_right(self._heights, y + word.box.height)
            self._known[id(word)] = frozenset(text for box, text in self._words[first:last] if _before(box, word.box))
        return self._known[id(word)]


def _use(leaf: Leaf, place: Place) -> tuple[str, tuple[int, ...]]:
    """What two rows of an array must not share: the same words for the same property."""
    return leaf.column, tuple(id(word) for word in place.words)


def _before(label: Box, box: Box) -> bool:
    beside = label.overlap_y(box) > 0.3 * min(label.height, box.height) and 0 <= box.x0 - label.x0 <= BESIDE_PT and label.x1 <= box.x0 + 1
    above = label.overlap_x(box) > -20 and 0 < box.center_y - label.center_y <= ABOVE_PT
    return beside or above


def _distance(a: Place, b: Place) -> float:
    """Points between two places; a line apart weighs more than a column."""
    first, second = a.box, b.box
    apart = abs(first.center_y - second.center_y) + 0.1 * abs(first.center_x - second.center_x)
    return OTHER_PAGE * abs(a.page - b.page) + (apart if a.page == b.page else 0.0)
