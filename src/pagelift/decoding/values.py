"""What may stand at each place of an answer: the effective schema as a graph of choices, ready to be written as a grammar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pagelift.core import Json


@dataclass(frozen=True, slots=True)
class Fixed:
    """One of these values, exactly."""

    values: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """JSON text that matches all of `patterns` in full, and none of `without`; both are regular expressions."""

    patterns: tuple[str, ...]
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ByGuidance:
    """A string with a pattern or a format, by the JSON Schema compiler of llguidance. schema: JSON text."""

    schema: str


@dataclass(frozen=True, slots=True)
class Anything:
    """Any JSON value, `depth` containers deep at most."""

    depth: int


Scalar: TypeAlias = Fixed | Pattern | ByGuidance


@dataclass(eq=False, slots=True)
class Choice:
    """One place: any of the options. possible: whether a finite value can stand here. fillable: whether one can be written
    without making anything up (null, an empty array, an object of such)."""

    options: list[Option] = field(default_factory=list)
    possible: bool = False
    fillable: bool = False


@dataclass(eq=False, slots=True)
class Member:
    """A property. free: it is not asked for, only admitted. skippable: it may be left out."""

    name: str
    value: Choice
    required: bool
    free: bool = False
    skippable: bool = False


@dataclass(eq=False, slots=True)
class ObjectValue:
    """An object. members: in order. extra: further keys with their values. min_extra, max_extra: how many of these.

    least, most: how many keys in all. apart: sets of members that may not all be there at once.
    """

    members: list[Member] = field(default_factory=list)
    extra: list[tuple[Scalar, Choice]] = field(default_factory=list)
    min_extra: int = 0
    max_extra: int | None = None
    least: int = 0
    most: int | None = None
    apart: list[frozenset[str]] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class ArrayValue:
    """An array. first: the places of the first entries. rest: all others, None when there are none.

    among, count: so many entries of this kind must be among the others (`contains`).
    """

    first: list[Choice] = field(default_factory=list)
    rest: Choice | None = None
    least: int = 0
    most: int | None = None
    among: Choice | None = None
    count: int = 0

    @property
    def needed(self) -> list[Choice]:
        """The places that every such array has."""
        named = self.first[: self.least]
        others = [self.rest] if self.least > len(self.first) and self.rest is not None else []
        return [*named, *others, *([self.among] if self.among is not None else [])]


Option: TypeAlias = Scalar | Anything | ObjectValue | ArrayValue


def settle(root: Choice, choices: list[Choice], write_optional: bool) -> None:
    """Decide what is possible, drop what is not, and which properties may be left out.

    write_optional: objects that are not required are written out all the same, unless that would never end.
    """
    _spread(choices, "possible", _option_possible)
    for choice in choices:
        choice.options = [option for option in choice.options if _option_possible(option)]
        for option in choice.options:
            if isinstance(option, ObjectValue):
                option.members = [m for m in option.members if m.value.possible]
                option.extra = [(key, value) for key, value in option.extra if value.possible]
            elif isinstance(option, ArrayValue):
                _cut(option)
    _spread(choices, "fillable", _option_fillable)
    for value in (option for choice in choices for option in choice.options if isinstance(option, ObjectValue)):
        crowded = value.most is not None and value.most < len(value.members)
        for member in value.members:
            plain = not any(isinstance(option, ObjectValue) for option in member.value.options)
            written = member.value.fillable and (write_optional or plain)
            free = member.free or crowded or any(member.name in names for names in value.apart)
            member.skippable = not member.required and (free or not written)
    _break_loops(root)
    for value in _objects(root):
        _enough(value)


def _enough(value: ObjectValue) -> None:
    """Keep as many members, first ones first, as the object has to have."""
    lacking = value.least - value.min_extra - sum(not member.skippable for member in value.members)
    for member in [m for m in value.members if m.skippable and not any(m.name in names for names in value.apart)]:
        if lacking > 0 and not any(_inside(member.value)):
            member.skippable = False
            lacking -= 1


def _option_possible(option: Option) -> bool:
    if isinstance(option, ObjectValue):
        enough = any(value.possible for _, value in option.extra) or sum(m.value.possible for m in option.members) >= option.least
        return enough and all(m.value.possible for m in option.members if m.required)
    if isinstance(option, ArrayValue):
        return (option.most is None or option.least <= option.most) and all(place.possible for place in option.needed)
    return not isinstance(option, Fixed) or bool(option.values)


def _spread(choices: list[Choice], mark: Literal["possible", "fillable"], holds: Callable[[Option], bool]) -> None:
    """Mark the places with an option for which something holds, which may depend on the marks of other places, until no more are found."""
    changed = True
    while changed:
        changed = False
        for choice in reversed(choices):
            if not getattr(choice, mark) and any(map(holds, choice.options)):
                setattr(choice, mark, True)
                changed = True


def _cut(array: ArrayValue) -> None:
    """Let the array end before the first place where nothing can stand."""
    if array.rest is not None and not array.rest.possible:
        array.rest = None
    bad = next((i for i, place in enumerate(array.first) if not place.possible), len(array.first))
    if bad < len(array.first) or array.rest is None:
        array.first, array.rest = array.first[:bad], None
        array.most = bad if array.most is None else min(array.most, bad)


def _option_fillable(option: Option) -> bool:
    if isinstance(option, ObjectValue):
        return option.min_extra == 0 and all(m.value.fillable for m in option.members if m.required)
    if isinstance(option, ArrayValue):
        return all(place.fillable for place in option.needed)
    return isinstance(option, Anything) or (isinstance(option, Fixed) and None in option.values)


def _inside(choice: Choice) -> Iterator[ObjectValue]:
    """The objects that stand at a place in any case; none when there is another way."""
    if all(isinstance(option, ObjectValue) for option in choice.options):
        yield from (option for option in choice.options if isinstance(option, ObjectValue))


def _written(value: ObjectValue) -> Iterator[tuple[Member, ObjectValue]]:
    """The objects that an object holds in any case. Members are looked at when their turn comes, as they may change."""
    for member in value.members:
        for inner in _inside(member.value):
            if not member.skippable:
                yield member, inner


def _break_loops(root: Choice) -> None:
    """Let a property be left out wherever an object would otherwise hold itself without end."""
    done: set[int] = set()
    for start in _objects(root):
        path: list[tuple[ObjectValue, Member | None]] = [(start, None)]
        steps = [_written(start)]
        while path:
            member, inner = next(steps[-1], (None, None))
            if inner is None or member is None:
                done.add(id(path.pop()[0]))
                steps.pop()
            elif any(inner is value for value, _ in path):
                at = next(i for i, (value, _) in enumerate(path) if value is inner)
                loop = [*(m for _, m in path[at + 1 :] if m is not None), member]
                optional = next((m for m in reversed(loop) if not m.required), None)
                if optional is not None:  # else another alternative on the way has an end, or it would not be possible
                    optional.skippable = True
            elif id(inner) not in done:
                path.append((inner, member))
                steps.append(_written(inner))


def _objects(root: Choice) -> list[ObjectValue]:
    """Every object below `root`."""
    seen: dict[int, Choice] = {id(root): root}
    pending = [root]
    found: list[ObjectValue] = []
    while pending:
        for option in pending.pop().options:
            inner: list[Choice] = []
            if isinstance(option, ObjectValue):
                found.append(option)
                inner = [*(m.value for m in option.members), *(value for _, value in option.extra)]
            elif isinstance(option, ArrayValue):
                inner = [*option.first, *([option.rest] if option.rest is not None else [])]
            pending += [place for place in inner if id(place) not in seen]
            seen |= {id(place): place for place in inner}
    return found
