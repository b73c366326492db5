"""A model shown the true answers to all questions that a document takes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from pagelift.backends import open_backend
from pagelift.core import Budget, Json, PageliftError
from pagelift.evals.answers import TokenKind, answer_text, answer_tokens
from pagelift.evals.cases import Case
from pagelift.evals.hidden_rows import hidden_rows
from pagelift.evals.traces import Trace, no_trace, said
from pagelift.extract.engines import ReadablePage
from pagelift.extract.plan import Plan, make_plan
from pagelift.extract.questions import Question, SeenPage
from pagelift.extract.vlm import VlmEngine
from pagelift.runtime.prefixes import picture_key
from pagelift.schema import Schema


class Tracer:
    """Shows one engine's model true answers."""

    def __init__(self, engine: VlmEngine, budget: Budget) -> None:
        self._model = engine.model
        self._asker = engine.asker(budget)
        self._budget = budget
        self._backend = open_backend(engine.model.backend)

    def trace(self, case: Case, pages: Sequence[ReadablePage]) -> Trace:
        """The true answers to every question that the document takes, one behind the other; nothing where one of them fails."""
        if not case.expected.is_file():
            return no_trace("there is no true answer")
        try:
            plan = make_plan([SeenPage(page) for page in pages], Schema.load(case.schema), self._asker, self._budget)
            truth = case.truth()
            parts = [self._ask(plan, plan.question(window, group), truth) for window in plan.windows for group in plan.groups]
        except PageliftError as failure:
            return no_trace(said(failure))
        return Trace(
            np.concatenate([part.hidden for part in parts]),
            np.concatenate([part.targets for part in parts]),
            np.concatenate([part.kinds for part in parts]),
            tuple(digest for part in parts for digest in part.prompts),
            any(part.cut for part in parts),
        )

    def _ask(self, plan: Plan, question: Question, truth: Json) -> Trace:
        """One question with its true answer."""
        numbers = None if len(plan.windows) == 1 else [page.number for page in question.pages]
        marked = [page.content for page in question.pages] if self._asker.style.marks else None
        answer = answer_text(truth, question.schema, [page.index for page in plan.pages], numbers, marked)
        forced = answer_tokens(answer, self._asker.grammar(question).constraint(), self._model.vocabulary)
        prompt = self._asker.prompt(question)
        chosen = np.flatnonzero((forced.kinds == TokenKind.VALUE) | (forced.kinds == TokenKind.PUNCTUATION))
        rows = hidden_rows(self._model, self._backend, prompt, forced.tokens, chosen)
        seen = b"".join([prompt.tokens.tobytes(), *(picture_key(placed.picture) for placed in prompt.pictures)])
        digest = hashlib.sha256(seen).hexdigest()[:16]
        return Trace(rows, forced.tokens[chosen], forced.kinds[chosen], (digest,), not forced.complete)
