"""/v1/responses: the same answers in the words of OpenAI's newer API."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from pagelift.server.answering import Delta, End, Usage, answer
from pagelift.server.chat import logprob
from pagelift.server.docs import ERRORS, RESPONSES_EXAMPLES, STREAM
from pagelift.server.errors import ApiError
from pagelift.server.questions import Question
from pagelift.server.response_types import ResponsesRequest
from pagelift.server.service import Service
from pagelift.server.streams import Streamed
from pagelift.server.wire import sse
from pagelift.server.work import Signal

if TYPE_CHECKING:
    from pagelift.runtime import Token

router = APIRouter(tags=["OpenAI"])


@router.post("/v1/responses", responses=ERRORS | STREAM, openapi_extra=RESPONSES_EXAMPLES)
async def respond(request: Request, body: ResponsesRequest) -> Response:
    """As /v1/chat/completions, with `input`, `input_file`, `input_image` and `text.format`. Nothing is stored."""
    service: Service = request.app.state.service
    question = body.question(service.catalog, service.settings.limits.output_tokens)
    request.scope["state"]["log"].update(model=question.served.id, documents=len(question.attachments), stream=bool(body.stream))
    reply = _Reply(question, body)
    if body.stream:
        return Streamed(service, lambda signal: reply.events(service, signal), "text/event-stream", reply.failed)
    async with service.watched(request.receive) as signal:
        async for part in answer(service, question, signal):
            reply.take(part)
    return JSONResponse(reply.response(reply.status))


class _Reply:
    """One answer as it grows, in the words of the responses API."""

    def __init__(self, question: Question, body: ResponsesRequest) -> None:
        self._question = question
        self._body = body
        self._id = "resp_" + secrets.token_hex(12)
        self._item = "msg_" + secrets.token_hex(12)
        self._created = int(time.time())
        self._texts: list[str] = []
        self._tokens: list[Token] = []
        self._reason = "stop"
        self._usage = Usage()
        self._number = 0

    @property
    def status(self) -> str:
        return "incomplete" if self._reason == "length" else "completed"

    def take(self, part: Delta | End | Usage) -> None:
        if isinstance(part, Delta):
            self._texts.append(part.text)
            self._tokens += part.tokens
        elif isinstance(part, End):
            self._reason = part.reason
        else:
            self._usage = part

    async def events(self, service: Service, signal: Signal) -> AsyncIterator[bytes]:
        """In the order that clients expect; the first ones when the answer begins, so that earlier errors have their status."""
        begun = False
        async for part in answer(service, self._question, signal):
            if not begun:
                begun = True
                for event in self._opening():
                    yield event
            self.take(part)
            if isinstance(part, Delta):
                yield self._event("output_text.delta", **self._place(), delta=part.text, logprobs=self._logprobs(part.tokens))
        for event in self._closing():
            yield event

    def _opening(self) -> list[bytes]:
        empty = {"id": self._item, "type": "message", "role": "assistant", "status": "in_progress", "content": []}
        return [
            self._event("created", response=self.response("in_progress")),
            self._event("in_progress", response=self.response("in_progress")),
            self._event("output_item.added", output_index=0, item=empty),
            self._event("content_part.added", **self._place(), part=self._part("", ())),
        ]

    def _closing(self) -> list[bytes]:
        text = "".join(self._texts)
        whole = self._part(text, self._tokens)
        return [
            self._event("output_text.done", **self._place(), text=text, logprobs=self._logprobs(self._tokens)),
            self._event("content_part.done", **self._place(), part=whole),
            self._event("output_item.done", output_index=0, item=self._message()),
            self._event(self.status, response=self.response(self.status)),
        ]

    def failed(self, error: ApiError) -> bytes:
        """The event of an error in the middle."""
        detail = {"code": error.error.code or error.error.type, "message": error.error.message, "param": error.error.param}
        return self._event("", type="error", **detail)

    def response(self, status: str) -> dict[str, Any]:
        over = status != "in_progress"
        body = self._body
        form = body.text.format.model_dump(by_alias=True, exclude_none=True) if body.text and body.text.format else {"type": "text"}
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "status": status,
            "model": body.model,
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "instructions": body.instructions,
            "max_output_tokens": body.max_output_tokens,
            "metadata": {},
            "output": [self._message()] if over else [],
            "parallel_tool_calls": False,
            "previous_response_id": None,
            "temperature": self._question.sampling.temperature,
            "text": {"format": form},
            "tool_choice": "none",
            "tools": [],
            "top_p": self._question.sampling.top_p,
            "truncation": "disabled",
            "usage": _counts(self._usage) if over else None,
        }

    def _message(self) -> dict[str, Any]:
        content = [self._part("".join(self._texts), self._tokens)]
        return {"id": self._item, "type": "message", "role": "assistant", "status": self.status, "content": content}

    def _part(self, text: str, tokens: list[Token] | tuple[Token, ...]) -> dict[str, Any]:
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": self._logprobs(tokens)}

    def _place(self) -> dict[str, Any]:
        return {"item_id": self._item, "output_index": 0, "content_index": 0}

    def _logprobs(self, tokens: list[Token] | tuple[Token, ...]) -> list[dict[str, Any]]:
        loaded = self._question.served.loaded
        return [] if loaded is None else [logprob(token, loaded.tokenizer.token_bytes) for token in tokens]

    def _event(self, name: str, **fields: Any) -> bytes:
        kind = fields.pop("type", f"response.{name}")
        self._number += 1
        return sse({"type": kind, "sequence_number": self._number - 1, **fields}, kind)


def _counts(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt + usage.output,
    }
