"""What the grammar had to leave wider and the validator rejects is generated again: just the offending value, in its place.

The new value is generated under the schema of its place and what the validator asked for in addition, without what was tried
before. After a few tries values are left out with a reason instead (`Schema.conform`), so that the result is valid in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import llguidance

from pagelift.core import Json
from pagelift.decoding.builder import ValueBuilder
from pagelift.decoding.constraint import Constraint
from pagelift.decoding.grammar import Grammar
from pagelift.decoding.guards import Guard
from pagelift.decoding.lark import LarkWriter
from pagelift.decoding.matching import GrammarConstraint
from pagelift.decoding.partial import parse_partial
from pagelift.decoding.scalar_values import excluding
from pagelift.decoding.values import Fixed, Pattern, settle
from pagelift.schema import Dropped
from pagelift.schema import keywords as kw
from pagelift.schema.repair import Path, Repair, lookup
from pagelift.schema.shaping import MISSING, Shaper

MAX_TRIES = 6
MAX_TRIES_EACH = 3
"""For one place."""

Generate: TypeAlias = Callable[[Sequence[int], Constraint], Sequence[int]]
"""Continues an answer: the tokens before the value, and what may follow. Returns the new tokens, fewer when a limit was met."""


@dataclass(frozen=True, slots=True)
class Finished:
    """An answer that is valid. text: its JSON, with numbers as printed unless values had to be left out.

    dropped: what was left out. regenerated: JSON Pointers of values that were generated again. never_reached: scalars and empty
    arrays that a cut-off answer did not get to.
    """

    data: Json
    text: str
    dropped: tuple[Dropped, ...] = ()
    regenerated: tuple[str, ...] = ()
    never_reached: tuple[str, ...] = ()


def finish_answer(grammar: Grammar, text: str, generate: Generate | None = None, tries: int = MAX_TRIES) -> Finished:
    """A valid answer from the text that a model wrote under `grammar`, also when it was cut off or breaks the schema.

    generate: runs the model again for single values; without it they are left out. tries: how often.
    Raises ExtractionError when leaving values out does not help.
    """
    schema = grammar.schema
    partial = parse_partial(text)
    if not partial.complete:
        conformed = schema.conform(partial.data)
        written = grammar.style.write(conformed.data)
        return Finished(conformed.data, written, conformed.dropped, never_reached=partial.never_reached(conformed.data))
    work = _Regeneration(grammar, text, partial.data)
    if generate is not None:
        work.run(generate, tries)
    if not work.errors:
        return Finished(work.data, work.text, regenerated=tuple(work.done))
    conformed = schema.conform(work.data)
    return Finished(conformed.data, grammar.style.write(conformed.data), conformed.dropped, tuple(work.done))


@dataclass(frozen=True, slots=True)
class _Target:
    """A value to generate again. demand: what the validator asked of it. instead_of: values that it must not be."""

    path: Path
    demand: Json
    instead_of: tuple[Json, ...] = ()


@dataclass(slots=True)
class _Regeneration:
    grammar: Grammar
    text: str
    data: Json
    done: list[str] = field(default_factory=list)
    _tried: dict[Path, list[Json]] = field(default_factory=dict)

    @property
    def errors(self) -> list[Any]:
        return list(self.grammar.schema.validator.iter_errors(self.data))

    def run(self, generate: Generate, tries: int) -> None:
        errors = self.errors
        for _ in range(tries):
            target = next(self._targets(errors), None)
            if target is None:
                return
            text = self._again(target, generate)
            if text is None:
                continue
            before = self.text, self.data
            self.text, self.data = text, parse_partial(text).data
            left = self.errors
            if len(left) < len(errors):
                errors = left
                self.done.append(kw.join("", *target.path))
            else:
                self._tried[target.path].append(lookup(self.data, target.path))
                self.text, self.data = before

    def _targets(self, errors: list[Any]) -> Iterator[_Target]:
        """Places where another value may help, inner ones first, none more often than MAX_TRIES_EACH."""
        found = [target for error in errors for target in self._blamed(error)]
        for target in sorted(found, key=lambda t: -len(t.path)):
            tried = self._tried.setdefault(target.path, [])
            if len(tried) < MAX_TRIES_EACH:
                value = lookup(self.data, target.path)
                if not any(_identical(value, known) for known in tried):
                    tried.append(value)
                yield target

    def _blamed(self, error: Any) -> Iterator[_Target]:
        branches = [list(branch) for branch in error.kind.as_dict().get("context", ())]
        for branch in sorted(branches, key=len)[:1]:
            for inner in branch:
                yield from self._blamed(inner)
        path: Path = tuple(error.instance_path)
        value = lookup(self.data, path)
        keyword = error.schema_path[-1] if error.schema_path else ""
        if keyword == "uniqueItems" and isinstance(value, list):
            twice = next((i for i, v in enumerate(value) if any(_identical(v, other) for other in value[:i])), None)
            if twice is not None:
                yield _Target((*path, twice), True, tuple(v for i, v in enumerate(value) if i != twice))
        elif not isinstance(value, dict | list) or keyword in ("required", "dependentRequired", "dependencies", "contains"):
            yield _Target(path, self._demand(error.schema_path))

    def _demand(self, place: Sequence[str | int]) -> Json:
        """The subschema whose keyword failed."""
        schema: Any = self.grammar.schema.effective
        try:
            for token in place[:-1]:
                schema = schema[token]
        except (KeyError, IndexError, TypeError):
            return True
        return schema if isinstance(schema, dict) else True

    def _again(self, target: _Target, generate: Generate) -> str | None:
        """The text with another value at the place, None when there is none or it was not finished."""
        begin, end = parse_partial(self.text).spans.get(kw.join("", *target.path), (0, 0))
        before, after = self.text[:begin], self.text[end:]
        kept = self._kept_tokens(begin)
        known = b"".join(self.grammar.vocabulary.token_bytes[t] for t in kept).decode(errors="strict")
        lark = self._rules(target, before[len(known) :], after[:1])
        if lark is None:
            self._tried[target.path] += [MISSING] * MAX_TRIES_EACH
            return None
        engine = self.grammar.vocabulary.engine
        matcher = llguidance.LLMatcher(engine, llguidance.LLMatcher.grammar_from_lark(lark), log_level=0)
        if matcher.is_error():
            self._tried[target.path] += [MISSING] * MAX_TRIES_EACH
            return None
        guard = Guard(self.grammar.vocabulary, self.grammar.limits)
        new = generate(kept, GrammarConstraint(matcher, self.grammar.vocabulary, guard))
        stop = self.grammar.vocabulary.stop_tokens
        written = b"".join(self.grammar.vocabulary.token_bytes[t] for t in new if t not in stop).decode(errors="replace")
        text = known + written + after[1:]
        return text if parse_partial(text).complete and text.startswith(before) else None

    def _kept_tokens(self, end: int) -> list[int]:
        """The tokens of the text that lie before character `end` as a whole, cut where a character ends."""
        vocabulary = self.grammar.vocabulary
        encoded = self.text.encode()
        limit = len(self.text[:end].encode())
        kept: list[int] = []
        length, whole = 0, 0
        for token in vocabulary.tokenizer.encode(self.text):
            length += len(vocabulary.token_bytes[token])
            if length > limit:
                break
            kept.append(token)
            if length == len(encoded) or encoded[length] & 0xC0 != 0x80:  # a character ends here
                whole = len(kept)
        return kept[:whole]

    def _rules(self, target: _Target, before: str, after: str) -> str | None:
        schema = self.grammar.schema
        shaper = Shaper(schema.views, schema.leaves)
        place = Repair(self.data, schema.effective, shaper, schema.validator).schema_at(target.path)
        builder = ValueBuilder(schema.views, schema.leaves)
        root = builder.build(schema.views.both(place, target.demand))
        denied = [*self._tried[target.path], *target.instead_of]
        root.options = [excluding(o, denied) if isinstance(o, Fixed | Pattern) else o for o in root.options]
        settle(root, builder.choices, schema.writes_everything)
        if not root.possible:
            return None
        in_array = any(isinstance(step, int) for step in target.path)
        return LarkWriter(self.grammar.style).write(root, len(target.path), before, after, in_array)


def _identical(a: Any, b: Any) -> bool:
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)
