"""Requests to /v1/chat/completions. Every parameter is here or refused by name; of those without effect only the neutral value is taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from pagelift.runtime import Sampling
from pagelift.server.attachments import Attachment
from pagelift.server.catalog import Catalog
from pagelift.server.errors import ApiError
from pagelift.server.questions import Question

MAX_STOPS = 16
MAX_ANSWERS = 16
Stop = Annotated[str, StringConstraints(min_length=1, max_length=1000)]


class Strict(BaseModel):
    """Unknown parameters are errors."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class TextPart(Strict):
    type: Literal["text"]
    text: str


class ImageUrl(Strict):
    """url: a data URI; http, https and file URLs only where the server allows them. Pictures are always read in full detail."""

    url: str = Field(min_length=1)
    detail: Literal["auto", "high"] | None = None


class ImagePart(Strict):
    type: Literal["image_url"]
    image_url: ImageUrl


class FileData(Strict):
    """file_data: a data URI or base64 of a PDF or image file."""

    file_data: str = Field(min_length=1)
    filename: str | None = None
    file_name: str | None = None


class FilePart(Strict):
    type: Literal["file"]
    file: FileData


Part = Annotated[TextPart | ImagePart | FilePart, Field(discriminator="type")]


class ChatMessage(Strict):
    """content: text, or parts; documents and pictures only from the user."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[Part]


class JsonSchemaFormat(Strict):
    """strict makes no difference: the answer always conforms."""

    name: str = Field(default="answer", max_length=200)
    json_schema: dict[str, Any] | bool = Field(alias="schema")
    description: str | None = None
    strict: bool | None = None


class ResponseFormat(Strict):
    """json_schema: given with type json_schema, and only then."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchemaFormat | None = None

    @model_validator(mode="after")
    def _complete(self) -> ResponseFormat:
        if (self.type == "json_schema") != (self.json_schema is not None):
            raise ValueError("json_schema must be given with type json_schema, and only then")
        return self


class StreamOptions(Strict):
    include_usage: bool | None = None


class ChatRequest(Strict):
    """temperature: 0 if not given, so that the same document gives the same answer. n: with a seed, answer k has seed + k."""

    model: str
    messages: list[ChatMessage] = Field(min_length=1, max_length=1000)
    response_format: ResponseFormat | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: int | None = Field(None, ge=1, description="The older name of max_completion_tokens.")
    max_completion_tokens: int | None = Field(None, ge=1)
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, gt=0, le=1)
    seed: int | None = Field(None, ge=0, lt=2**63)
    stop: Stop | list[Stop] | None = Field(None, description=f"Up to {MAX_STOPS} texts before which the answer ends.")
    n: int | None = Field(None, ge=1, le=MAX_ANSWERS)
    logprobs: bool | None = None
    top_logprobs: int | None = Field(None, ge=0, le=20)
    chat_template_kwargs: dict[str, Any] | None = Field(None, description="Variables of the checkpoint's chat template.")
    presence_penalty: Literal[0] | None = None
    frequency_penalty: Literal[0] | None = None
    logit_bias: dict[str, float] | None = Field(None, max_length=0, description="Only empty.")
    tools: list[Any] | None = Field(None, max_length=0, description="Only empty.")
    tool_choice: Literal["none"] | None = None
    store: Literal[False] | None = None

    def question(self, catalog: Catalog, most_tokens: int) -> Question:
        """The checked question. Raises ApiError, SchemaError."""
        if self.max_tokens is not None and self.max_completion_tokens is not None:
            raise ApiError(400, "max_tokens and max_completion_tokens are two names of one limit; give one of them", "max_tokens")
        if self.top_logprobs is not None and not self.logprobs:
            raise ApiError(400, "top_logprobs needs logprobs: true", "top_logprobs")
        if self.stream_options is not None and not self.stream:
            raise ApiError(400, "stream_options needs stream: true", "stream_options")
        stops = [self.stop] if isinstance(self.stop, str) else self.stop or []
        if len(stops) > MAX_STOPS:
            raise ApiError(400, f"stop has {len(stops)} sequences; give up to {MAX_STOPS}", "stop")
        wanted = self.max_completion_tokens or self.max_tokens
        messages, attachments = read_messages(self.messages)
        form = self.response_format
        question = Question(
            catalog.find(self.model),
            messages,
            attachments,
            sampling(
                checked_tokens(wanted, most_tokens, "max_tokens"), self.temperature, self.top_p, seed=self.seed, top=self.top_logprobs or 0
            ),
            form.type if form else "text",
            form.json_schema.json_schema if form and form.json_schema else None,
            tuple(stops),
            self.n or 1,
            bool(self.logprobs),
            self.chat_template_kwargs or {},
        )
        question.check()
        return question


def checked_tokens(wanted: int | None, most: int, param: str) -> int:
    """How long an answer may be. Raises ApiError 400."""
    if wanted is not None and wanted > most:
        raise ApiError(400, f"{param} is {wanted}; this server gives up to {most}", param, "invalid_value")
    return wanted or most


def sampling(tokens: int, temperature: float | None, top_p: float | None, seed: int | None = None, top: int = 0) -> Sampling:
    """Our own defaults for what is not given."""
    return Sampling(temperature or 0.0, 1.0 if top_p is None else top_p, seed, tokens, top)


def read_messages(messages: Sequence[ChatMessage]) -> tuple[tuple[dict[str, Any], ...], tuple[Attachment, ...]]:
    """Messages for the chat template, and the documents in them in order."""
    attachments: list[Attachment] = []
    out = []
    for number, message in enumerate(messages):
        role = "system" if message.role == "developer" else message.role
        content: Any = message.content
        if not isinstance(content, str):
            content = [_part(part, f"messages.{number}.content.{place}", attachments) for place, part in enumerate(content)]
            if role != "user":
                content = _text_alone(content, role, f"messages.{number}.content")
        out.append({"role": role, "content": content})
    return tuple(out), tuple(attachments)


def _part(part: TextPart | ImagePart | FilePart, param: str, attachments: list[Attachment]) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, ImagePart):
        attachments.append(Attachment(part.image_url.url, f"image {len(attachments) + 1}", param, picture=True))
    else:
        name = part.file.filename or part.file.file_name or f"file {len(attachments) + 1}"
        attachments.append(Attachment(part.file.file_data, name, param))
    return {"type": "document", "index": len(attachments) - 1}


def _text_alone(content: list[dict[str, Any]], role: str, param: str) -> str:
    if any(part["type"] != "text" for part in content):
        raise ApiError(400, f"a {role} message holds a document; documents come from the user", param)
    return "\n".join(part["text"] for part in content)
