"""Values that break the schema, asked for again: only where a grammar could not say all that the schema demands."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pagelift.core import ExtractionError, Json
from pagelift.decoding import Constraint, Grammar, Sampling, finish_answer
from pagelift.extract.answers import UNKNOWN, confidences, parse_answer, value_spans
from pagelift.extract.metadata import summed
from pagelift.extract.questions import Reply
from pagelift.models.positions import text_positions
from pagelift.models.prompt import Prompt

if TYPE_CHECKING:
    from pagelift.runtime import LoadedModel


def corrected(reply: Reply, grammar: Grammar, model: LoadedModel, prompt: Prompt, sampling: Sampling) -> Reply:
    """The reply with offending values generated again in their places; what cannot be met is left out, with a warning that says why."""
    if reply.truncated or grammar.schema.is_valid(parse_answer(reply.text)):
        return reply
    again = _Again(model, prompt, sampling)
    try:
        finished = finish_answer(grammar, reply.text, again)
    except ExtractionError:
        return reply  # the extractor has the last word and says what is wrong
    sure = confidences(value_spans(reply.text), reply.pieces)
    for pointer in finished.regenerated:
        sure |= {
            own: again.probability(finished.text[slice(*span)]) for own, span in value_spans(finished.text).items() if _below(own, pointer)
        }
    metadata: dict[str, Json] = summed([reply.metadata, *again.metadata])
    if finished.regenerated:
        metadata["regenerated"] = list(finished.regenerated)
    warnings = tuple(f"{drop.pointer or 'the value'}: {drop.value!r} was left out: {drop.reason}" for drop in finished.dropped)
    return replace(reply, text=finished.text, pieces=_pieces(finished.text, sure), metadata=metadata, warnings=(*reply.warnings, *warnings))


class _Again:
    """Runs the model on from a part of its answer. metadata: of each run."""

    def __init__(self, model: LoadedModel, prompt: Prompt, sampling: Sampling) -> None:
        self._model = model
        self._prompt = prompt
        self._sampling = sampling
        self._written: list[tuple[str, float]] = []
        self.metadata: list[Mapping[str, Json]] = []

    def __call__(self, before: Sequence[int], constraint: Constraint) -> Sequence[int]:
        answer = self._model.stream(behind(self._prompt, before), self._sampling, constraint=constraint)
        logprobs = [piece.token.logprob for piece in answer if piece.token and not piece.token.forced]
        self.metadata.append({name: value for name, value in answer.metadata.items() if name != "prompt_tokens"})
        self._written.append((answer.text, math.exp(sum(logprobs) / len(logprobs)) if logprobs else 1.0))
        return [token.id for token in answer.tokens]

    def probability(self, value: str) -> float:
        """Of a value that was generated again, by the last run that wrote it."""
        return next((sure for text, sure in reversed(self._written) if value in text), UNKNOWN)


def behind(prompt: Prompt, tokens: Sequence[int]) -> Prompt:
    """A prompt that goes on with the beginning of its answer."""
    positions = text_positions(prompt.next_position, len(tokens))
    return Prompt(
        np.concatenate([prompt.tokens, np.array(tokens, np.int64)]),
        np.concatenate([prompt.positions, positions], axis=1),
        prompt.next_position + len(tokens),
        prompt.pictures,
    )


def _pieces(text: str, sure: Mapping[str, float]) -> tuple[tuple[str, float | None], ...]:
    """A text as pieces that give each value the probability it has."""
    pieces: list[tuple[str, float | None]] = []
    at = 0
    for pointer, (start, end) in sorted(value_spans(text).items(), key=lambda item: item[1]):
        pieces += [(text[at:start], None), (text[start:end], math.log(max(sure.get(pointer, UNKNOWN), 1e-30)))]
        at = end
    return (*pieces, (text[at:], None))


def _below(pointer: str, top: str) -> bool:
    return pointer == top or pointer.startswith(top + "/")
