"""Readings of neighbouring windows of pages as one: single values by how sure they are, lists without losses or doubles.

Windows share pages, so that a row which reaches over the end of a page is whole in one of them. Entries of a list that both windows
saw are found by their words on the shared pages, in order; the rest is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pagelift.core import Box, Field, Status
from pagelift.extract.evidence_tree import Rows, Tree, pages_of, position, scalars
from pagelift.schema.keywords import join

MOST_COMPARED = 400
"""Entries at the border of two windows that are compared with each other."""
_RANK: dict[Status, int] = {"found": 4, "unverified": 3, "unreadable": 2, "not_attempted": 1, "absent": 0}


@dataclass(slots=True)
class Border:
    """What two readings have in common.

    pages: numbers of those that both saw. row: the values compared are of one row. warnings: filled while merging.
    """

    pages: frozenset[int]
    row: bool = False
    warnings: list[str] = field(default_factory=list)


def merge(first: Tree | None, second: Tree | None, border: Border, pointer: str = "") -> Tree:
    """Two readings of the same schema as one. first: of the earlier pages."""
    if first is None or second is None:
        found = second if first is None else first
        assert found is not None
        return found
    if isinstance(first, dict) and isinstance(second, dict):
        return {name: merge(first.get(name), second.get(name), border, join(pointer, name)) for name in {**first, **second}}
    if isinstance(first, Rows) and isinstance(second, Rows):
        return merge_rows(first, second, border, pointer)
    if isinstance(first, Field) and isinstance(second, Field):
        return _better(first, second, border, pointer)
    if _is_nothing(first) or _is_nothing(second):
        return second if _is_nothing(first) else first
    border.warnings.append(f"{pointer or 'the value'} was read in two shapes on different pages; the first was kept")
    return first


def merge_rows(first: Rows, second: Rows, border: Border, pointer: str = "") -> Rows:
    """The entries of both, those that both saw once."""
    if not first.entries or not second.entries:
        kept = first if first.entries or (not second.entries and first.empty) else second
        return Rows(list(kept.entries), kept.empty)
    left = [k for k, row in enumerate(first.entries) if _may_be_shared(row, border)][-MOST_COMPARED:]
    right = [k for k, row in enumerate(second.entries) if _may_be_shared(row, border)][:MOST_COMPARED]
    pairs = [(left[a], right[b]) for a, b in _pair([first.entries[k] for k in left], [second.entries[k] for k in right])]
    return Rows(list(_interleave(first.entries, second.entries, pairs, border, pointer)))


def _interleave(
    first: Sequence[Tree], second: Sequence[Tree], pairs: Sequence[tuple[int, int]], border: Border, pointer: str
) -> Iterator[Tree]:
    """Entries in the order of both; between pairs those of one side only, by their place on the pages."""
    a = b = 0
    for left, right in [*pairs, (len(first), len(second))]:
        yield from _by_position(first[a:left], second[b:right])
        if left < len(first):
            yield merge(first[left], second[right], Border(border.pages, row=True), f"{pointer}/{left}")
        a, b = left + 1, right + 1


def _by_position(first: Sequence[Tree], second: Sequence[Tree]) -> list[Tree]:
    rows = [*first, *second]
    places = [place for row in rows if (place := position(row)) is not None]
    if not first or not second or len(places) < len(rows):
        return rows
    return [rows[k] for k in sorted(range(len(rows)), key=places.__getitem__)]


def _may_be_shared(row: Tree, border: Border) -> bool:
    """Whether a row can be one that the other window saw too: it stands on a shared page, or nobody knows where."""
    pages = pages_of(row)
    return bool(border.pages) and (not pages or bool(pages & border.pages))


def _pair(first: Sequence[Tree], second: Sequence[Tree]) -> list[tuple[int, int]]:
    """Which entries are the same ones, in order: the pairs with the most likeness together."""
    columns = [dict(scalars(row)) for row in first], [dict(scalars(row)) for row in second]
    best = [[0.0] * (len(second) + 1) for _ in range(len(first) + 1)]
    alike: dict[tuple[int, int], float] = {}
    for a in range(len(first) - 1, -1, -1):
        for b in range(len(second) - 1, -1, -1):
            best[a][b] = max(best[a + 1][b], best[a][b + 1])
            score = likeness(columns[0][a], columns[1][b])
            if score > 0:
                alike[a, b] = score
                best[a][b] = max(best[a][b], score + best[a + 1][b + 1])
    pairs, a, b = [], 0, 0
    while a < len(first) and b < len(second):
        if (a, b) in alike and best[a][b] == alike[a, b] + best[a + 1][b + 1]:
            pairs.append((a, b))
            a, b = a + 1, b + 1
        elif best[a][b] == best[a + 1][b]:
            a += 1
        else:
            b += 1
    return pairs


def likeness(first: dict[str, Field], second: dict[str, Field]) -> float:
    """How much speaks for two rows being one: the same words count most, other words or values against it."""
    score = 0.0
    for name in first.keys() & second.keys():
        a, b = first[name], second[name]
        if a.value is None or b.value is None:
            continue
        if a.page is not None and b.page is not None:
            score += 2.0 if _touch(a, b) else -1.5
        elif a.value == b.value and type(a.value) is type(b.value):
            score += 1.0
        else:
            score -= 0.0 if _holds(a, b) else 1.0
    return score


def drop_repeated(rows: Rows, joints: Sequence[int]) -> None:
    """Leave out entries that a continued answer repeats: those with which it begins, where they say what the last ones before the
    joint say, in their order and by the very same words."""
    for joint, count in repetitions([_identity(row) or object() for row in rows.entries], joints):
        del rows.entries[joint : joint + count]


def repetitions(said: Sequence[object], joints: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Joints behind which the last entries before them are said once more, in their order, and how many; the last joint first."""
    starts = sorted(joints)
    for joint, end in reversed(list(zip(starts, [*starts, len(said)][1:], strict=True))):
        for count in range(min(joint, end - joint), 0, -1):
            if said[joint : joint + count] == said[joint - count : joint]:
                yield joint, count
                break


def _identity(row: Tree) -> tuple[object, ...] | None:
    """Values and places of a row, None when one has no place."""
    values = [(name, f) for name, f in scalars(row) if f.value is not None]
    if not values or any(f.box is None for _, f in values if not isinstance(f.value, bool)):
        return None
    return tuple((name, str(f.value), f.page, f.box) for name, f in values)


def _better(first: Field, second: Field, border: Border, pointer: str) -> Field:
    """The value to keep of two: found before unverified before null; of two values of one kind the surer one."""
    if first.value is not None and second.value is not None:
        if _holds(first, second) and (border.row or _touch(first, second)):
            return max(first, second, key=lambda f: len(str(f.value)))  # one of them was cut off by the end of a page
        if first.value != second.value or type(first.value) is not type(second.value):
            kept = max(first, second, key=lambda f: (_RANK[f.status], f.confidence))
            border.warnings.append(f"{pointer}: pages state {_told(first)} and {_told(second)}; {kept.value!r} was kept")
            return kept
    return max(first, second, key=lambda f: (_RANK[f.status], f.confidence if f.value is None else -(f.page or 0), f.confidence))


def _told(evidence: Field) -> str:
    return f"{evidence.value!r} (page {evidence.page})" if evidence.page else f"{evidence.value!r}"


def _touch(first: Field, second: Field) -> bool:
    """Whether two values were read from the same words, or partly so."""
    if first.page != second.page or first.page is None or first.box is None or second.box is None:
        return False
    pairs = ((a, b) for a in first.boxes or (first.box,) for b in second.boxes or (second.box,))
    return any(_same_words(a, b) for a, b in pairs)


def _same_words(first: Box, second: Box) -> bool:
    across, down = first.overlap_x(second), first.overlap_y(second)
    return across > 0.5 * min(first.width, second.width) and down > 0.5 * min(first.height, second.height)


def _holds(first: Field, second: Field) -> bool:
    """Whether one of two different texts is a part of the other."""
    a, b = first.value, second.value
    return isinstance(a, str) and isinstance(b, str) and a != b and (a in b or b in a)


def _is_nothing(tree: Tree) -> bool:
    if isinstance(tree, Field):
        return tree.value is None
    return not tree if isinstance(tree, dict) else not tree.entries
