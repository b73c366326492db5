"""`compile_grammar`: a schema as a grammar over the tokens of one model."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import llguidance

from pagelift.core import SchemaRefused
from pagelift.decoding.builder import ValueBuilder
from pagelift.decoding.constraint import Constraint
from pagelift.decoding.guards import Guard
from pagelift.decoding.lark import LarkWriter
from pagelift.decoding.matching import GrammarConstraint
from pagelift.decoding.style import GrammarLimits, JsonStyle
from pagelift.decoding.values import Anything, Choice, settle
from pagelift.decoding.vocabulary import Vocabulary
from pagelift.schema import Schema

COMPILE_LIMIT_S = 2.0
"""After this time a grammar is made wider instead of more precise."""
WIDE_DEPTH = 6
OUTER_PLACES = 500

_log = logging.getLogger(__name__)
LINE = JsonStyle()
NO_LIMITS = GrammarLimits()


@dataclass(frozen=True, slots=True)
class Compiled:
    """A grammar over a vocabulary. notes: what had to be left wider than the schema. matcher: at the beginning; to be copied."""

    lark: str
    matcher: Any
    notes: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Grammar:
    """What answers for one schema may look like. limits: those of one document."""

    schema: Schema
    vocabulary: Vocabulary
    style: JsonStyle
    limits: GrammarLimits
    compiled: Compiled

    def constraint(self) -> Constraint:
        """The state at the beginning of an answer."""
        return GrammarConstraint(self.compiled.matcher.deep_copy(), self.vocabulary, Guard(self.vocabulary, self.limits), self._wide)

    def _wide(self) -> Any:
        """A matcher of any JSON in this style; fixed objects have no marks."""
        make = functools.partial(_matcher, self.vocabulary, LarkWriter(self.style, True).write(Choice([Anything(WIDE_DEPTH)])))
        return self.vocabulary.cached(("any JSON", self.style), make).deep_copy()


def compile_grammar(schema: Schema, vocabulary: Vocabulary, style: JsonStyle = LINE, limits: GrammarLimits = NO_LIMITS) -> Grammar:
    """The grammar of a schema for a model; kept with the vocabulary, so that the same schema is compiled once.

    Properties come in schema order and are all written, unless one cannot be (no value without making it up, or an object inside
    itself). What a grammar cannot say is left wider: `Grammar.compiled.notes`, and the validator has the last word.
    Raises SchemaRefused when no value could satisfy the schema.
    """
    compiled = vocabulary.cached((schema.fingerprint, style), lambda: _compile(schema, vocabulary, style))
    return Grammar(schema, vocabulary, style, limits, compiled)


def _matcher(vocabulary: Vocabulary, lark: str) -> Any:
    return llguidance.LLMatcher(vocabulary.engine, llguidance.LLMatcher.grammar_from_lark(lark), log_level=0)


def _compile(schema: Schema, vocabulary: Vocabulary, style: JsonStyle) -> Compiled:
    """The most precise of several grammars that can be compiled, within the limit of time for trying."""
    _ = vocabulary.engine  # built once per model, not part of this grammar's time
    start = time.monotonic()
    notes: list[str] = []
    for attempt, builder in enumerate(_builders(schema)):
        late = time.monotonic() - start > COMPILE_LIMIT_S / 2 and attempt > 0
        root = None if builder is None or late else _root(schema, builder)
        lark = LarkWriter(style).write(root or Choice([Anything(WIDE_DEPTH)]))
        matcher = _matcher(vocabulary, lark)
        if not matcher.is_error():
            notes += builder.widened if builder is not None else []
            break
        notes.append(f"{_LEFT_OUT[attempt]}, because the grammar is too large: {matcher.get_error().splitlines()[0][:120]}")
    compiled = Compiled(lark, matcher, tuple(dict.fromkeys(notes)), time.monotonic() - start)
    for note in compiled.notes:
        _log.warning("schema %s: %s; the validator checks the finished answer", schema.fingerprint[:12], note)
    if compiled.seconds > COMPILE_LIMIT_S:
        _log.warning("schema %s: the grammar took %.1f s to compile", schema.fingerprint[:12], compiled.seconds)
    return compiled


_LEFT_OUT = (
    "patterns and formats of strings are left out",
    f"only the {OUTER_PLACES} outermost values are written",
    "any JSON is allowed",
    "nothing is left",
)


def _builders(schema: Schema) -> Iterator[ValueBuilder | None]:
    yield ValueBuilder(schema.views, schema.leaves)
    yield ValueBuilder(schema.views, schema.leaves, strings=False)
    yield ValueBuilder(schema.views, schema.leaves, max_choices=OUTER_PLACES, strings=False)
    yield None


def _root(schema: Schema, builder: ValueBuilder) -> Choice:
    root = builder.build(schema.effective)
    settle(root, builder.choices, schema.writes_everything)
    if not root.possible:
        raise SchemaRefused("no value satisfies the schema: its demands on one value contradict each other")
    return root
