"""`compile_grammar`: a schema as a grammar over the tokens of one model."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import Any

import llguidance

from pagelift.core import SchemaRefused
from pagelift.decoding.builder import ValueBuilder
from pagelift.decoding.constraint import Constraint
from pagelift.decoding.lark import LarkWriter
from pagelift.decoding.matching import GrammarConstraint
from pagelift.decoding.scalar_values import plain_string
from pagelift.decoding.style import GrammarLimits, JsonStyle
from pagelift.decoding.values import Anything, ByGuidance, Choice, settle
from pagelift.decoding.vocabulary import Vocabulary
from pagelift.schema import Schema

COMPILE_LIMIT_S = 2.0
"""After this time a grammar is made wider instead of more precise."""
WIDE_DEPTH = 6

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
        return GrammarConstraint(self.compiled.matcher.deep_copy(), self.vocabulary)


def compile_grammar(schema: Schema, vocabulary: Vocabulary, style: JsonStyle = LINE, limits: GrammarLimits = NO_LIMITS) -> Grammar:
    """The grammar of a schema for a model; kept with the vocabulary, so that the same schema is compiled once.

    Properties come in schema order and are all written, unless one cannot be (no value without making it up, or an object inside
    itself). What a grammar cannot say is left wider: `Grammar.compiled.notes`, and the validator has the last word.
    Raises SchemaRefused when no value could satisfy the schema.
    """
    compiled = vocabulary.cached((schema.fingerprint, style), lambda: _compile(schema, vocabulary, style))
    return Grammar(schema, vocabulary, style, limits, compiled)


def _compile(schema: Schema, vocabulary: Vocabulary, style: JsonStyle) -> Compiled:
    start = time.monotonic()
    builder = ValueBuilder(schema.views, schema.leaves)
    root = builder.build(schema.effective)
    settle(root, builder.choices, schema.writes_everything)
    if not root.possible:
        raise SchemaRefused("no value satisfies the schema: its demands on one value contradict each other")
    notes = list(dict.fromkeys(builder.widened))
    fault = ""
    for step in ("", "patterns and formats of strings", "everything but JSON itself"):
        if step:
            notes.append(f"{step} checked at the end, because the grammar was too large: {fault}")
            root = _wider(root, builder.choices, step)
        lark = LarkWriter(style).write(root)
        matcher = llguidance.LLMatcher(vocabulary.engine, llguidance.LLMatcher.grammar_from_lark(lark), log_level=0)
        fault = str(matcher.get_error())
        if not fault:
            break
    seconds = time.monotonic() - start
    for note in notes:
        _log.warning("schema %s: %s", schema.fingerprint[:12], note)
    return Compiled(lark, matcher, tuple(notes), seconds)


def _wider(root: Choice, choices: list[Choice], step: str) -> Choice:
    if "patterns" not in step:
        return Choice([Anything(WIDE_DEPTH)])
    for choice in choices:
        choice.options = [plain_string() if isinstance(option, ByGuidance) else option for option in choice.options]
    return root
