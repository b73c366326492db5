"""/v1/chat/completions and /v1/models."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from pagelift.server.answering import Delta, End, Usage, answer
from pagelift.server.catalog import describe
from pagelift.server.chat_types import ChatRequest
from pagelift.server.docs import CHAT_EXAMPLES, ERRORS, STREAM
from pagelift.server.questions import Question
from pagelift.server.service import Service
from pagelift.server.streams import Streamed
from pagelift.server.wire import sse
from pagelift.server.work import Signal

if TYPE_CHECKING:
    from pagelift.runtime import Token

router = APIRouter(tags=["OpenAI"])


@router.get("/v1/models", responses=ERRORS)
async def models(request: Request) -> dict[str, Any]:
    """The models of this server and their aliases, the default first."""
    return {"object": "list", "data": _service(request).catalog.listing()}


@router.get("/v1/models/{model:path}", responses=ERRORS)
async def model(request: Request, model: str) -> dict[str, Any]:
    """One model."""
    return describe(model, _service(request).catalog.find(model))


@router.post("/v1/chat/completions", responses=ERRORS | STREAM, openapi_extra=CHAT_EXAMPLES)
async def chat(request: Request, body: ChatRequest) -> Response:
    """An answer to messages with texts, pictures and documents (PDF or image files), free or by a JSON Schema.

    Engines that only extract, such as `layout`, need a document and a json_schema; their answer is the extracted data.
    """
    service = _service(request)
    question = body.question(service.catalog, service.settings.limits.output_tokens)
    request.scope["state"]["log"].update(model=question.served.id, documents=len(question.attachments), stream=bool(body.stream))
    reply = _Reply(question, body.model, service.settings.version)
    if body.stream:
        usage = bool(body.stream_options and body.stream_options.include_usage)
        return Streamed(service, lambda signal: reply.chunks(service, signal, usage), "text/event-stream", lambda error: sse(error.body))
    async with service.watched(request.receive) as signal:
        return JSONResponse(await reply.whole(service, signal))


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


class _Reply:
    """Parts of answers in the words of the chat API."""

    def __init__(self, question: Question, model: str, version: str) -> None:
        self._question = question
        self._head = {"id": "chatcmpl-" + secrets.token_hex(12), "created": int(time.time()), "model": model}
        self._head["system_fingerprint"] = f"pagelift-{version}"

    async def whole(self, service: Service, signal: Signal) -> dict[str, Any]:
        count = self._question.count
        texts: list[list[str]] = [[] for _ in range(count)]
        tokens: list[list[Token]] = [[] for _ in range(count)]
        reasons = ["stop"] * count
        usage = Usage()
        async for part in answer(service, self._question, signal):
            if isinstance(part, Delta):
                texts[part.choice].append(part.text)
                tokens[part.choice] += part.tokens
            elif isinstance(part, End):
                reasons[part.choice] = part.reason
            else:
                usage = part
        choices = [
            {
                "index": k,
                "message": {"role": "assistant", "content": "".join(texts[k]), "refusal": None},
                "logprobs": self._logprobs(tokens[k]),
                "finish_reason": reasons[k],
            }
            for k in range(count)
        ]
        return {**self._head, "object": "chat.completion", "choices": choices, "usage": counts(usage)}

    async def chunks(self, service: Service, signal: Signal, with_usage: bool) -> AsyncIterator[bytes]:
        begun: set[int] = set()
        async for part in answer(service, self._question, signal):
            if isinstance(part, Usage):
                if with_usage:
                    yield self._chunk([], usage=counts(part))
                continue
            if part.choice not in begun:
                begun.add(part.choice)
                yield self._choice(part.choice, {"role": "assistant", "content": "", "refusal": None})
            if isinstance(part, Delta):
                yield self._choice(part.choice, {"content": part.text}, tokens=part.tokens)
            else:
                yield self._choice(part.choice, {}, part.reason)
        yield b"data: [DONE]\n\n"

    def _choice(self, index: int, delta: dict[str, Any], reason: str | None = None, tokens: tuple[Token, ...] = ()) -> bytes:
        return self._chunk([{"index": index, "delta": delta, "logprobs": self._logprobs(tokens), "finish_reason": reason}])

    def _chunk(self, choices: list[dict[str, Any]], **more: Any) -> bytes:
        return sse({**self._head, "object": "chat.completion.chunk", "choices": choices, **more})

    def _logprobs(self, tokens: list[Token] | tuple[Token, ...]) -> dict[str, Any] | None:
        loaded = self._question.served.loaded
        if not self._question.logprobs or loaded is None:
            return None
        return {"content": [logprob(token, loaded.tokenizer.token_bytes) for token in tokens], "refusal": None}


def logprob(token: Token, bytes_of: Any) -> dict[str, Any]:
    """A token with its log-probability and its likeliest rivals, as the OpenAI API gives them."""

    def one(index: int, value: float) -> dict[str, Any]:
        content = bytes_of(index)
        return {"token": content.decode(errors="replace"), "logprob": max(value, -9999.0), "bytes": list(content)}

    return {**one(token.id, token.logprob), "top_logprobs": [one(index, value) for index, value in token.top]}


def counts(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "total_tokens": usage.prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    }
