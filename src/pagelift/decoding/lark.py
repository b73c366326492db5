"""The graph of values written as a grammar in the Lark dialect of llguidance."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, field

from pagelift.decoding.number_patterns import NumberRange, number_patterns
from pagelift.decoding.scalar_values import plain_string
from pagelift.decoding.style import JsonStyle
from pagelift.decoding.values import Anything, ArrayValue, ByGuidance, Choice, Fixed, Member, ObjectValue, Option, Pattern, Scalar

MARK = "mark"
MAX_INLINE = 8
"""Fixed values that are written as alternatives of a rule; more become one terminal."""
MAX_LEVELS = 40
"""Levels of indentation; below, a value is null."""


@dataclass(slots=True)
class LarkWriter:
    """Writes rules, one for each place (and level, where lines are indented). optional_marks: those of the style may be left out."""

    style: JsonStyle
    optional_marks: bool = False
    _lines: list[str] = field(default_factory=list)
    _names: dict[object, str] = field(default_factory=dict)
    _followers: dict[tuple[str, int, bool, int, bool], str] = field(default_factory=dict)
    _inner: dict[int, Choice] = field(default_factory=dict)
    _pending: list[tuple[str, Choice | Anything, int, bool]] = field(default_factory=list)
    _unmarked: bool = False
    """Whether what is being written stands in an array, or marks are not used at all."""

    def write(self, root: Choice, level: int = 0, before: str = "", after: str = "", in_array: bool = False) -> str:
        """The grammar of one value, between two fixed texts. level: containers around it. in_array: one of them is an array."""
        self._unmarked = in_array or not self.style.marks
        parts = [_literal(before)] * bool(before) + [self._place(root, level)] + [_literal(after)] * bool(after)
        self._add("start", " ".join(parts))
        while self._pending:
            name, place, level, self._unmarked = self._pending.pop()
            if isinstance(place, Anything):
                self._add(name, self._anything(place.depth, level))
            else:
                scalars, others = _divided(place.options)
                self._add(name, self._alternatives([self.scalar(s, level) for s in scalars], [self._other(o, level) for o in others]))
        if self.style.marks:
            self._add(MARK, " | ".join(self.style.marks))
        return "\n".join(["%llguidance {}", *self._lines, ""])

    def _add(self, name: str, body: str) -> None:
        self._lines.append(f"{name}: {body}")

    def _named(self, key: object, prefix: str) -> tuple[str, bool]:
        """The name for a key, and whether it is new."""
        if key in self._names:
            return self._names[key], False
        name = self._names[key] = f"{prefix}{len(self._names)}"
        return name, True

    def _place(self, place: Choice | Anything, level: int) -> str:
        level = level if self.style.indent else 0
        if level > MAX_LEVELS:
            return '"null"'
        name, new = self._named((id(place) if isinstance(place, Choice) else place, level, self._unmarked), "v")
        if new:
            self._pending.append((name, place, level, self._unmarked))
        return name

    @property
    def _mark(self) -> str:
        return f"{MARK}?" if self.optional_marks else MARK

    def _entry(self, place: Choice, level: int) -> str:
        """A place in an array."""
        outer, self._unmarked = self._unmarked, True
        name = self._place(place, level)
        self._unmarked = outer
        return name if outer else f"{self._mark} {name}"

    def _alternatives(self, scalars: list[str], others: list[str]) -> str:
        if scalars and not self._unmarked:
            scalars = [f"{self._mark} ({' | '.join(dict.fromkeys(scalars))})"]
        return " | ".join(dict.fromkeys([*scalars, *others]))

    def _rule(self, body: str) -> str:
        """A rule for a body that may be written again."""
        name, new = self._named(body, "r")
        if new:
            self._add(name, body)
        return name

    def _other(self, option: Option, level: int) -> str:
        if isinstance(option, ObjectValue):
            return self._object(option, level)
        if isinstance(option, ArrayValue):
            return self._array(option, level)
        return self._place(option, level) if isinstance(option, Anything) else self.scalar(option, level)

    def scalar(self, option: Scalar, level: int = 0) -> str:
        if isinstance(option, ByGuidance):
            return self._rule(f"%json {option.schema}")
        if isinstance(option, Pattern):
            return self._terminal(" & ".join([*map(_regex, option.patterns), *(f"~{_regex(p)}" for p in option.without)]))
        written = [_literal(self.style.write(value, level)) for value in option.values]
        if len(written) <= MAX_INLINE or any(isinstance(v, dict | list) for v in option.values):
            return " | ".join(written)
        return self._terminal(" | ".join(written))

    def _terminal(self, body: str) -> str:
        name, new = self._named(("terminal", body), "T")
        if new:
            self._add(name, body)
        return name

    def _object(self, value: ObjectValue, level: int) -> str:
        between = _literal(self.style.between(level))
        most = None if value.max_extra is None else max(value.max_extra, value.min_extra)
        extra = ""
        if value.extra and most != 0:
            pairs = [f"{self._key(self.scalar(key))} {self._place(inner, level + 1)}" for key, inner in value.extra]
            extra = self._rule(" | ".join(pairs))
        solid = next((i for i, m in enumerate(value.members) if not m.skippable), None)
        if solid is None:
            body = self._loose(value.members, extra, (value.min_extra, most), level)
        else:
            parts = [f"({self._pair(m, level)} {between})?" for m in value.members[:solid]]
            parts.append(self._pair(value.members[solid], level))
            parts += [self._follower(m, level) for m in value.members[solid + 1 :]]
            body = " ".join(parts + ([_repeated(f"{between} {extra}", value.min_extra, most)] if extra else []))
        return self._bracketed("{", body, "}", level, optional=solid is None and value.min_extra == 0)

    def _loose(self, members: list[Member], extra: str, counts: tuple[int, int | None], level: int) -> str:
        """Members that may all be left out: whichever comes first, then any of those after it."""
        least, most = counts
        between = _literal(self.style.between(level))
        tail = _repeated(f"{between} {extra}", least, most) if extra else ""
        ways = []
        if extra:
            ways.append(f"{extra} {_repeated(f'{between} {extra}', max(0, least - 1), None if most is None else most - 1)}")
        for member in reversed(members):
            ways.append(f"{self._pair(member, level)} {tail}".rstrip())
            tail = self._rule(f"{self._follower(member, level)} {tail}".rstrip())
        return " | ".join(reversed(ways))

    def _follower(self, member: Member, level: int) -> str:
        """A member with the separator before it: a rule, since large schemas repeat the same ones in many objects."""
        key = (member.name, id(member.value), member.skippable, level if self.style.indent else 0, self._unmarked)
        if key not in self._followers:
            pair = self._rule(f"{_literal(self.style.between(level))} {self._pair(member, level)}")
            self._followers[key] = self._rule(f"{pair}?") if member.skippable else pair
        return self._followers[key]

    def _pair(self, member: Member, level: int) -> str:
        return f"{self._key(_literal(self.style.write(member.name)))} {self._place(member.value, level + 1)}"

    def _key(self, key: str) -> str:
        return f"({key}) {_literal(self.style.colon)}" if " | " in key else f"{key} {_literal(self.style.colon)}"

    def _array(self, value: ArrayValue, level: int) -> str:
        between = _literal(self.style.between(level))
        places = [self._entry(place, level + 1) for place in value.first]
        rest = self._entry(value.rest, level + 1) if value.rest is not None else ""
        body = ""
        if value.among is not None and rest:
            body = self._containing(rest, self._entry(value.among, level + 1), value.count, between)
            body = f"{between} {body}" if places else body
        elif rest:
            least, most = max(0, value.least - len(places)), None if value.most is None else max(0, value.most - len(places))
            if places:
                body = _repeated(f"{between} {rest}", least, most)
            elif most != 0:
                body = f"{rest} {_repeated(f'{between} {rest}', max(0, least - 1), None if most is None else most - 1)}"
        for i in reversed(range(len(places))):
            body = f"{between if i else ''} {places[i]} {body}".strip()
            body = f"({body})?" if i >= value.least and i else body
        return self._bracketed("[", body, "]", level, optional=value.least == 0 and value.among is None)

    def _containing(self, rest: str, among: str, count: int, between: str) -> str:
        """Entries with `count` of a kind among them."""
        further = f"(({between} {rest})* {between} {among}){{{count - 1}}}" if count > 1 else ""
        return f"({rest} {between})* {among} {further} ({between} {rest})*"

    def _bracketed(self, opening: str, body: str, closing: str, level: int, optional: bool) -> str:
        if not body:
            return f'"{opening}" "{closing}"'
        start, end = self.style.opening(level), self.style.closing(level)
        inside = f"{_literal(start)} ({body}) {_literal(end)}" if start else f"({body})"
        return f'"{opening}" ({inside})? "{closing}"' if optional else f'"{opening}" {inside} "{closing}"'

    def _anything(self, depth: int, level: int) -> str:
        plain = [self.scalar(Fixed((None, True, False))), self.scalar(plain_string())]
        plain.append(self.scalar(Pattern(tuple(number_patterns(NumberRange(), whole=False) or ()))))
        if depth == 0:
            return self._alternatives(plain, [])
        inner = self._inner.setdefault(depth, Choice([Anything(depth - 1)]))
        array = self._array(ArrayValue(rest=inner), level)
        return self._alternatives(plain, [array, self._object(ObjectValue(extra=[(plain_string(1, 100), inner)]), level)])


def _divided(options: list[Option]) -> tuple[list[Scalar], list[Option]]:
    """Options that are scalars, and all others; fixed values are divided, too."""
    scalars: list[Scalar] = []
    others: list[Option] = []
    for option in options:
        if isinstance(option, Fixed):
            single = tuple(value for value in option.values if not isinstance(value, dict | list))
            whole = tuple(value for value in option.values if isinstance(value, dict | list))
            scalars += [Fixed(single)] * bool(single)
            others += [Fixed(whole)] * bool(whole)
        elif isinstance(option, Scalar):
            scalars.append(option)
        else:
            others.append(option)
    return scalars, others


def _repeated(body: str, least: int, most: int | None) -> str:
    if most is not None and most <= 0:
        return ""
    if most is None:
        return f"({body})*" if least == 0 else f"({body}){{{least},}}"
    return f"({body})?" if (least, most) == (0, 1) else f"({body}){{{least},{most}}}"


def _regex(pattern: str) -> str:
    return "/" + pattern.replace("/", "\\/") + "/"


@functools.lru_cache(maxsize=10_000)
def _literal(text: str) -> str:
    """Fixed text as a string of the grammar, which is written as in JSON."""
    return json.dumps(text, ensure_ascii=False)
