"""One question to its end: the first answer, and further ones where it was cut off by a limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pagelift.core import Budget, Json
from pagelift.extract.answers import UNKNOWN, Cut, Step, confidences, inexact_numbers, parse_answer, parse_cut, value_spans
from pagelift.extract.fields import empty_pointers, missing, restrict, weight
from pagelift.extract.merge import repetitions
from pagelift.extract.questions import Asker, Question, Reply
from pagelift.schema.keywords import join
from pagelift.schema.nodes import Array, Node, Object

SHOWN_ENTRIES = 3
"""So many entries that are known already are shown to the model when a list is continued."""


@dataclass(slots=True)
class Reading:
    """What the answers to a question said.

    data: of all answers together. joints: by pointer of a list, where in it an answer was continued. inexact: numbers as written
    that lose digits. cut: the path to where the last answer was cut off, None when it is complete.
    """

    question: Question
    data: Json = None
    probabilities: dict[str, float] = field(default_factory=dict)
    inexact: dict[str, str] = field(default_factory=dict)
    joints: dict[str, list[int]] = field(default_factory=dict)
    replies: list[Reply] = field(default_factory=list)
    cut: tuple[Step, ...] | None = None

    @property
    def warnings(self) -> Iterator[str]:
        for reply in self.replies:
            yield from reply.warnings

    def repeated(self) -> Iterator[tuple[str, str]]:
        """Pointers of entries that a continued answer may repeat, by their values, and of those that they repeat."""
        for pointer, joints in self.joints.items():
            for joint, count in repetitions(_list_at(self.data, pointer), joints):
                yield from ((f"{pointer}/{k}", f"{pointer}/{k - count}") for k in range(joint, joint + count))

    def unreached(self) -> Iterator[tuple[str, bool]]:
        """JSON Pointers of the scalars and lists that no answer came to, and whether each is a list."""
        if self.cut is not None:
            yield from _unreached(self.question.schema.root, self.data, self.cut, "")


def read(question: Question, asker: Asker, budget: Budget) -> Reading:
    """Everything that is to be had about a question. Raises InvalidOutput with the answer when one is not JSON; EngineError."""
    reading = Reading(question)
    for left in range(budget.follow_ups, -1, -1):
        reply = asker.ask(question)
        reading.replies.append(reply)
        cut = _take(reading, question, reply)
        following = _follow_up(reading, question, cut) if cut.path is not None and left else None
        if following is None:
            break
        question = following
    return reading


def _take(reading: Reading, question: Question, reply: Reply) -> Cut:
    """Add an answer to what is known."""
    cut = parse_cut(reply.text) if reply.truncated else Cut(parse_answer(reply.text), None, value_spans(reply.text))
    offsets = question.offsets
    for pointer, offset in offsets.items():
        reading.joints.setdefault(pointer, []).append(offset)
    sure = confidences(cut.spans, reply.pieces) if reply.pieces else dict.fromkeys(cut.spans, UNKNOWN)
    reading.probabilities |= {_moved(pointer, offsets): probability for pointer, probability in sure.items()}
    reading.inexact |= {_moved(pointer, offsets): written for pointer, written in inexact_numbers(reply.text, cut.spans).items()}
    if cut.value is not None or cut.path is None:
        reading.data = _joined(reading.data, cut.value, offsets, "")
    reading.cut = None if cut.path is None else _moved_path(cut.path, offsets)
    return cut


def _follow_up(reading: Reading, question: Question, cut: Cut) -> Question | None:
    """The question about what an answer did not come to, None when it would get no further. What was half read is given up for it."""
    assert cut.path is not None
    assert reading.cut is not None
    names = _leading_names(cut.path)
    group = missing(question.schema, cut.value, names)
    if not group:
        reading.cut = None  # only the closing brackets were missing
        return None
    in_list = len(cut.path) > len(names) and (names in group or not names)
    fresh = int(cut.path[len(names)]) if in_list else 0  # entries of the list that this answer completed
    rest = restrict(question.schema, group)
    if not fresh and weight(rest.root) >= weight(question.schema.root):
        return None
    pointer = join("", *names)
    known = _list_at(reading.data, pointer)[: int(reading.cut[len(names)])] if in_list else []
    for path in group:
        reading.data = _without(reading.data, path)
    after, offsets = {}, {}
    if known:
        reading.data = _joined(reading.data, _nested(names, known), {}, "")
        after, offsets = {pointer: known[-SHOWN_ENTRIES:]}, {pointer: len(known)}
    return replace(question, schema=rest, after=after, offsets=offsets)


def _leading_names(path: Sequence[Step]) -> tuple[str, ...]:
    """The property names that a path begins with."""
    names: list[str] = []
    for step in path:
        if not isinstance(step, str):
            break
        names.append(step)
    return tuple(names)


def _list_at(data: Json, pointer: str) -> list[Json]:
    for step in pointer.split("/")[1:]:
        data = data.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(data, dict) else None
    return data if isinstance(data, list) else []


def _nested(names: Sequence[str], value: Json) -> Json:
    for name in reversed(names):
        value = {name: value}
    return value


def _without(data: Json, path: Sequence[str]) -> Json:
    """`data` without what stands at the path."""
    if not path:
        return None
    if not isinstance(data, dict) or path[0] not in data:
        return data
    if len(path) == 1:
        return {name: value for name, value in data.items() if name != path[0]}
    return {**data, path[0]: _without(data[path[0]], path[1:])}


def _joined(known: Json, new: Json, offsets: Mapping[str, int], pointer: str) -> Json:
    """What is known with an answer added; lists that were continued go on."""
    if isinstance(known, dict) and isinstance(new, dict):
        added = {name: _joined(known[name], value, offsets, join(pointer, name)) for name, value in new.items() if name in known}
        return {**known, **new, **added}
    if pointer in offsets and isinstance(known, list) and isinstance(new, list):
        return [*known, *new]
    return new


def _moved(pointer: str, offsets: Mapping[str, int]) -> str:
    """The pointer that a value of an answer has in the data of all answers."""
    for start, offset in offsets.items():
        if pointer.startswith(start + "/"):
            number, slash, behind = pointer[len(start) + 1 :].partition("/")
            return f"{start}/{int(number) + offset}{slash}{behind}"
    return pointer


def _moved_path(path: tuple[Step, ...], offsets: Mapping[str, int]) -> tuple[Step, ...]:
    names = _leading_names(path)
    offset = offsets.get(join("", *names), 0)
    if not offset or len(path) == len(names):
        return path
    return (*names, int(path[len(names)]) + offset, *path[len(names) + 1 :])


def _unreached(node: Node, data: Json, cut: Sequence[Step], pointer: str) -> Iterator[tuple[str, bool]]:
    """What an answer that was cut off at the path `cut` has nothing of."""
    if isinstance(node, Object):
        for name, child in node.properties.items():
            here = data.get(name) if isinstance(data, dict) else None
            if not isinstance(data, dict) or name not in data:
                yield from empty_pointers(child, join(pointer, name))
            elif cut and cut[0] == name:
                yield from _unreached(child, here, cut[1:], join(pointer, name))
    elif isinstance(node, Array):
        entries = data if isinstance(data, list) else []
        if not entries:
            yield pointer, True
        elif cut and isinstance(cut[0], int) and cut[0] < len(entries):
            yield from _unreached(node.items, entries[cut[0]], cut[1:], f"{pointer}/{cut[0]}")
    elif data is None:
        yield from empty_pointers(node, pointer)
