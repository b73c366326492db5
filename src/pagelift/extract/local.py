"""A loaded model as the one who is asked: prompt, grammar and drafts for each question."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from pagelift.core import EngineError, ExtractionError, Json, PageliftError
from pagelift.decoding import Grammar, GrammarLimits, JsonStyle, Sampling, compile_grammar
from pagelift.decoding.pages import bare
from pagelift.extract.fields import field_groups, restrict
from pagelift.extract.prompts import extraction_prompt, part_notes
from pagelift.extract.questions import Question, Reply, SeenPage
from pagelift.extract.regenerate import corrected
from pagelift.extract.telling import Tell, Teller, Told
from pagelift.extract.words_prompt import PAGE, WORDS_TOKENS, page_pieces, shown_marks, words_prompt
from pagelift.layout import extract_pages
from pagelift.models.pictures import picture_size
from pagelift.schema import Schema

if TYPE_CHECKING:
    from pagelift.models.prompt import Prompt
    from pagelift.runtime import LoadedModel, Piece

SPARE_ROWS, SPARE_CHARACTERS = 16, 256
"""What an answer may have more than the words of the pages account for, since recognition misses some."""


class LocalAsker:
    """Asks a loaded model, one question after the other; the grammar of the schema is always on.

    template: None for the prompt with the words of the pages. answer_tokens: the longest answer. style: how its JSON is laid out.
    tell: called with every value as the model writes it.
    """

    concurrency = 1

    def __init__(self, model: LoadedModel, template: str | None, answer_tokens: int, style: JsonStyle, tell: Tell | None = None) -> None:
        self._model = model
        self._template = template
        self._sampling = Sampling(max_tokens=answer_tokens)
        self.style = style
        self._tell = tell or _nothing

    @property
    def context(self) -> int:
        return self._model.model.config.text.max_positions

    @property
    def prompt_tokens(self) -> int | None:
        return None if self._template is not None else WORDS_TOKENS

    def prepare(self, schema: Schema, fields: int) -> None:
        """Begin, in a thread, to compile what asking about a schema needs. fields: so many values are asked for at once at most."""
        if self.style.marks:
            return  # the lines that a model may say are those of the pages

        def work() -> None:
            with contextlib.suppress(PageliftError):  # raised again when the grammar is needed
                for group in field_groups(schema, fields):
                    compile_grammar(restrict(schema, group), self._model.vocabulary, self.style)

        threading.Thread(target=work, name="pagelift-grammar", daemon=True).start()

    def prompt_text(self, question: Question) -> str:
        return question_text(question, self._template)

    def text_tokens(self, text: str) -> int:
        return len(self._model.tokenizer.encode(text))

    def page_tokens(self, page: SeenPage) -> int:
        if self._model.processor is None:
            raise EngineError(f"{self._model.name} is a text-only checkpoint; it cannot read pages")
        settings = self._model.processor.image
        width, height = page.size_px
        if settings.resize:
            height, width = picture_size(height, width, settings)
        words = 0 if self._template is not None else self.text_tokens("".join(piece.text for piece in page_pieces([page.content])))
        return height * width // settings.factor**2 + words

    def ask(self, question: Question) -> Reply:
        """The answer. The grammar is compiled and drafts are made while the pages are drawn. Raises SchemaRefused, EngineError."""
        with ThreadPoolExecutor(1, thread_name_prefix="pagelift-grammar") as beside:
            compiling = beside.submit(self.grammar, question)
            prompt = self.prompt(question)
            hints = list(_hints(question))
            start = time.perf_counter()
            grammar = compiling.result()
        waited_s = time.perf_counter() - start
        answer = self._model.stream(prompt, self._sampling, constraint=grammar.constraint(), hints=hints)
        teller = Teller(self._tell, question)
        pieces = tuple((piece.text, None if piece.token.forced else piece.token.logprob) for piece in _told(answer, teller) if piece.token)
        if answer.finish_reason == "cancelled":
            raise EngineError(f"{self._model.name} was closed before its answer was complete")
        metadata: dict[str, Json] = {**answer.metadata, "grammar_wait_s": round(waited_s, 4)}
        if grammar.compiled.notes:
            metadata["grammar_notes"] = list(grammar.compiled.notes)
        reply = Reply(answer.text, answer.finish_reason == "length", pieces, metadata)
        settled = corrected(reply, grammar, self._model, prompt, self._sampling)
        if settled.text != reply.text:
            teller.settle(settled.text)
        return settled

    def prompt(self, question: Question) -> Prompt:
        """What the model is shown. Raises EngineError."""
        return self._model.prompt(self.prompt_text(question), [page.picture() for page in question.pages])

    def grammar(self, question: Question) -> Grammar:
        """What the answer may look like. Raises SchemaRefused."""
        style, limits = self.style, answer_limits(question.pages)
        if style.marks:
            lines = tuple(shown_marks(page.content for page in question.pages))
            style = replace(style, marks=tuple(mark for mark in style.marks if mark == PAGE or mark in lines))
            limits = replace(limits, lines=lines)
        return compile_grammar(question.schema, self._model.vocabulary, style, limits)


def _told(answer: Iterable[Piece], teller: Teller) -> Iterator[Piece]:
    """The pieces of an answer, whose values are told as they pass."""
    for piece in answer:
        teller.put(piece.text)
        yield piece


def _nothing(_: Told) -> None:
    pass


def question_text(question: Question, template: str | None) -> str:
    """The text of the user's turn. template: see `read_template`; None for the prompt with the words of the pages."""
    notes = part_notes([page.number for page in question.pages], question.page_count, question.after)
    if template is None:
        return "\n".join([words_prompt([page.content for page in question.pages], question.schema), *notes])
    return extraction_prompt(question.schema.original, template, notes)


def answer_limits(pages: Sequence[SeenPage]) -> GrammarLimits:
    """The most that pages can give: no more rows than words, no longer texts than all of them, the same row hardly more often than its
    words. None known of pages without words."""
    words = [word.text for page in pages for word in page.content.words]
    if not words:
        return GrammarLimits()
    printed = Counter(bare(part) for word in words for part in word.split())
    return GrammarLimits(len(words) + SPARE_ROWS, sum(map(len, words)) + len(words) + SPARE_CHARACTERS, printed=printed)


def _hints(question: Question) -> Iterator[str]:
    """What the answer may be copied from: the lines of each page, and what the built-in engine reads, as JSON."""
    for page in question.pages:
        yield "\n".join(page.lines)
    try:
        read = extract_pages([page.content for page in question.pages], question.schema)
        yield json.dumps(question.schema.conform(read.data).data, ensure_ascii=False)
    except ExtractionError:
        return  # nothing that the schema admits; the lines remain
