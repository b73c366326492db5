"""From a question to its answers, piece by piece: by generation with the loaded model, or by extraction."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pagelift.core import EngineError
from pagelift.decoding import Grammar, compile_grammar
from pagelift.extract.prompts import page_picture
from pagelift.extract.questions import SeenPage
from pagelift.server.attachments import Attachment, Opened, Reading, check_count
from pagelift.server.errors import ApiError
from pagelift.server.extraction import Order, extract
from pagelift.server.questions import ANY_OBJECT, Question, load_schema
from pagelift.server.service import Service
from pagelift.server.stopping import StopText
from pagelift.server.work import Signal, in_loop

if TYPE_CHECKING:
    from PIL.Image import Image

    from pagelift.documents import Page
    from pagelift.models.prompt import Prompt
    from pagelift.runtime import Generation, LoadedModel, Piece, Sampling, Token

MAX_DPI = 2400.0


@dataclass(frozen=True, slots=True)
class Delta:
    """More text of answer `choice`. tokens: those that the text came with, when they were asked for."""

    choice: int
    text: str
    tokens: tuple[Token, ...] = ()


@dataclass(frozen=True, slots=True)
class End:
    """The end of answer `choice`. reason: stop or length."""

    choice: int
    reason: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of the prompt, those of it that were in the cache, and of all answers. Extraction has none."""

    prompt: int = 0
    cached: int = 0
    output: int = 0


Part = Delta | End | Usage


@dataclass(frozen=True, slots=True)
class Prepared:
    """prompt: with the pages as pictures. grammar: None for free text. hints: lines of the pages, which the answer may copy from."""

    prompt: Prompt
    grammar: Grammar | None
    hints: tuple[str, ...]


async def answer(service: Service, question: Question, signal: Signal) -> AsyncIterator[Part]:
    """The parts of all answers as they come, `Usage` last. Raises ApiError, PageliftError."""
    check_count(question.attachments, service.settings.limits)
    if question.served.loaded is None:
        async for part in _extracted(service, question, signal):
            yield part
        return
    start = time.perf_counter()
    loaded = question.served.loaded
    prepared = await service.engines.run(lambda: _prepare(service, question, loaded, signal), signal)
    parts: asyncio.Queue[Part | Exception] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def put(part: Part) -> None:
        in_loop(loop, lambda: parts.put_nowait(part))

    tasks = [
        asyncio.ensure_future(_generate(service, _Writer(question, loaded, prepared, choice), put, signal))
        for choice in range(question.count)
    ]
    for task in tasks:
        task.add_done_callback(lambda done: parts.put_nowait(_ended(done)))
    first = True
    async for part in _until_all_ended(parts, len(tasks)):
        if first and isinstance(part, Delta):
            service.metrics.first_token.labels(question.served.id).observe(time.perf_counter() - start)
            first = False
        yield part


async def _until_all_ended(parts: asyncio.Queue[Part | Exception], answers: int) -> AsyncIterator[Part]:
    prompt = cached = output = 0
    while answers:
        part = await parts.get()
        if isinstance(part, Exception):
            raise part
        if isinstance(part, Usage):
            prompt, cached, output, answers = part.prompt, max(cached, part.cached), output + part.output, answers - 1
        else:
            yield part
    yield Usage(prompt, cached, output)


def _ended(task: asyncio.Future[Usage]) -> Usage | Exception:
    if task.cancelled():
        return EngineError("the generation was cancelled")
    error = task.exception()
    return error if isinstance(error, Exception) else task.result()


async def _extracted(service: Service, question: Question, signal: Signal) -> AsyncIterator[Part]:
    reading = Reading(service.settings.limits, service.settings.access)
    order = Order(question.served, question.schema, question.attachments, reading, nulls="declared")
    result = await service.lane(question.served).run(lambda: extract(order, signal, lambda _: None), signal)
    service.metrics.pages.labels(question.served.id).inc(result.pages)
    text = json.dumps(result.data, ensure_ascii=False)
    for choice in range(question.count):
        yield Delta(choice, text)
        yield End(choice, "stop")
    yield Usage()


def _prepare(service: Service, question: Question, loaded: LoadedModel, signal: Signal) -> Prepared:
    """Read the documents, and compile the schema. Raises DocumentError, SchemaError, ApiError."""
    grammar = _grammar(question, loaded)
    reading = Reading(service.settings.limits, service.settings.access, ocr="never")
    with reading.open(question.attachments) as opened:
        pictures = _pictures(opened, question.attachments, signal)
        hints = tuple(_lines(opened)) if grammar else ()
        service.metrics.pages.labels(question.served.id).inc(opened.count)
    messages = [_with_pages(message, [len(pages) for pages in opened.pages]) for message in question.messages]
    try:
        prompt = loaded.prompt(messages, pictures, variables=question.variables)
    except EngineError as error:  # the template does not take these messages, or there are pictures that the model cannot read
        raise ApiError(400, str(error), "messages", "invalid_messages") from error
    return Prepared(prompt, grammar, hints)


def _lines(opened: Opened) -> Iterator[str]:
    """The lines of text layers; pages without one are not read for this."""
    for pages in opened.pages:
        for page in pages:
            yield from SeenPage(page).lines


def _grammar(question: Question, loaded: LoadedModel) -> Grammar | None:
    """What the answer may look like, None for free text. Raises SchemaError when no grammar can be made."""
    if question.shape == "text":
        return None
    schema = load_schema(question.schema if question.shape == "json_schema" else ANY_OBJECT)
    return compile_grammar(schema, loaded.vocabulary)


def _pictures(opened: Opened, attachments: tuple[Attachment, ...], signal: Signal) -> list[Image]:
    pictures = []
    for attachment, pages in zip(attachments, opened.pages, strict=True):
        for page in pages:
            signal.check()
            pictures.append(_picture(page, attachment.picture))
    return pictures


def _picture(page: Page, as_it_is: bool) -> Image:
    """Pictures of `image_url` in their own pixels, as other servers show them; pages of files as the vlm engine draws them."""
    native = page.native_dpi if as_it_is else None
    return page.image(min(MAX_DPI, max(1.0, native))) if native else page_picture(page)


def _with_pages(message: dict[str, Any], counts: list[int]) -> dict[str, Any]:
    """The message with a picture part for each page in the places of its documents."""
    if isinstance(message["content"], str):
        return message
    parts: list[dict[str, Any]] = []
    for part in message["content"]:
        parts += [{"type": "image"}] * counts[part["index"]] if part["type"] == "document" else [part]
    return {**message, "content": parts}


async def _generate(service: Service, writer: _Writer, put: Callable[[Part], None], signal: Signal) -> Usage:
    numbers = await service.models.run(lambda: writer.run(put, signal, service), signal)
    return Usage(numbers["prompt_tokens"], int(numbers.get("cached_tokens", 0)), numbers["output_tokens"])


class _Writer:
    """Writes one answer in a worker thread."""

    def __init__(self, question: Question, loaded: LoadedModel, prepared: Prepared, choice: int) -> None:
        self._question = question
        self._loaded = loaded
        self._prepared = prepared
        self._choice = choice
        self._stop = StopText(question.stop)
        self._held: list[Token] = []

    def run(self, put: Callable[[Part], None], signal: Signal, service: Service) -> Any:
        """Hand on the parts; the numbers of the generation."""
        signal.check()
        sampling = self._question.sampling
        if sampling.seed is not None:
            sampling = replace(sampling, seed=(sampling.seed + self._choice) % 2**64)
        generation = self._start(sampling)
        signal.when_set(generation.cancel)
        try:
            for piece in generation:
                signal.check()
                self._put(piece, put)
                if self._stop.hit:
                    generation.cancel()
                    break
        finally:
            generation.cancel()  # an answer that has ended stays as it is
            service.metrics.answered(self._question.served.id, self._reason(generation), generation.metadata)
        signal.check()
        rest = self._stop.finish()
        if rest or self._held:
            put(Delta(self._choice, rest, tuple(self._held)))
        put(End(self._choice, self._reason(generation)))
        return generation.metadata

    def _start(self, sampling: Sampling) -> Generation:
        given = self._prepared
        try:
            constraint = given.grammar.constraint() if given.grammar else None
            return self._loaded.stream(given.prompt, sampling, constraint=constraint, hints=given.hints)
        except EngineError as error:
            raise ApiError(400, str(error), "messages", "context_length_exceeded") from error

    def _put(self, piece: Piece, put: Callable[[Part], None]) -> None:
        if piece.token is not None and self._question.logprobs:
            self._held.append(piece.token)
        text = self._stop.put(piece.text)
        if text or (self._held and self._stop.hit):
            put(Delta(self._choice, text, tuple(self._held)))
            self._held.clear()

    def _reason(self, generation: Generation) -> str:
        return "stop" if self._stop.hit else str(generation.finish_reason or "error")  # an error is raised before that gets out
