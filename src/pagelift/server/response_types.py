"""Requests to /v1/responses. Every parameter is here or refused by name, as for chat completions."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from pagelift.server.attachments import Attachment
from pagelift.server.catalog import Catalog
from pagelift.server.chat_types import Strict, checked_tokens, sampling
from pagelift.server.errors import ApiError
from pagelift.server.questions import Question


class InputText(Strict):
    type: Literal["input_text", "text"]
    text: str


class OutputText(Strict):
    """An answer of before, as it was given; only its text counts."""

    type: Literal["output_text"]
    text: str
    annotations: list[Any] | None = None
    logprobs: list[Any] | None = None


class InputImage(Strict):
    """image_url: a data URI; http, https and file URLs only where the server allows them."""

    type: Literal["input_image"]
    image_url: str = Field(min_length=1)
    detail: Literal["auto", "high"] | None = None


class InputFile(Strict):
    """file_data: a data URI or base64 of a PDF or image file. file_url: only where the server allows it."""

    type: Literal["input_file"]
    file_data: str | None = Field(None, min_length=1)
    file_url: str | None = Field(None, min_length=1)
    filename: str | None = None
    file_name: str | None = None


InputPart = Annotated[InputText | OutputText | InputImage | InputFile, Field(discriminator="type")]


class InputMessage(Strict):
    """id, status: of an answer of before, which may be given as it came."""

    id: str | None = None
    status: str | None = None
    type: Literal["message"] = "message"
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[InputPart]


class TextFormat(Strict):
    """json_schema, name, description: with type json_schema only. strict makes no difference: the answer always conforms."""

    type: Literal["text", "json_object", "json_schema"]
    name: str | None = Field(None, max_length=200)
    json_schema: dict[str, Any] | bool | None = Field(None, alias="schema")
    description: str | None = None
    strict: bool | None = None


class TextSettings(Strict):
    format: TextFormat | None = None


class ResponsesRequest(Strict):
    """temperature: 0 if not given. Nothing is stored: there is no previous response to go on from."""

    model: str
    input: str | list[InputMessage]
    instructions: str | None = None
    text: TextSettings | None = None
    stream: bool | None = None
    max_output_tokens: int | None = Field(None, ge=1)
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, gt=0, le=1)
    top_logprobs: int | None = Field(None, ge=0, le=20)
    include: list[Literal["message.output_text.logprobs"]] | None = None
    store: Literal[False] | None = None
    background: Literal[False] | None = None
    truncation: Literal["disabled"] | None = None
    tools: list[Any] | None = Field(None, max_length=0, description="Only empty.")
    tool_choice: Literal["none"] | None = None

    def question(self, catalog: Catalog, most_tokens: int) -> Question:
        """The checked question. Raises ApiError, SchemaError."""
        tokens = checked_tokens(self.max_output_tokens, most_tokens, "max_output_tokens")
        form = self._format()
        messages, attachments = self._messages()
        question = Question(
            catalog.find(self.model),
            messages,
            attachments,
            sampling(tokens, self.temperature, self.top_p, top=self.top_logprobs or 0),
            form.type,
            form.json_schema,
            logprobs=bool(self.include) or self.top_logprobs is not None,
            shape_param="text.format",
        )
        question.check()
        return question

    def _format(self) -> TextFormat:
        form = self.text.format if self.text and self.text.format else TextFormat.model_validate({"type": "text"})
        if (form.type == "json_schema") != (form.json_schema is not None):
            raise ApiError(400, "text.format.schema must be given with type json_schema, and only then", "text.format.schema")
        return form

    def _messages(self) -> tuple[tuple[dict[str, Any], ...], tuple[Attachment, ...]]:
        """Messages for the chat template, and the documents in them in order."""
        given = [InputMessage(role="user", content=self.input)] if isinstance(self.input, str) else self.input
        if not given:
            raise ApiError(400, "input is empty; give a text or messages", "input")
        attachments: list[Attachment] = []
        out = [{"role": "system", "content": self.instructions}] if self.instructions is not None else []
        for number, message in enumerate(given):
            role = "system" if message.role == "developer" else message.role
            content: Any = message.content
            if not isinstance(content, str):
                content = [_part(part, f"input.{number}.content.{place}", attachments) for place, part in enumerate(content)]
                if role != "user" and any(part["type"] != "text" for part in content):
                    raise ApiError(400, f"a {role} message holds a document; documents come from the user", f"input.{number}.content")
                if role != "user":
                    content = "\n".join(part["text"] for part in content)
            out.append({"role": role, "content": content})
        return tuple(out), tuple(attachments)


def _part(part: InputText | OutputText | InputImage | InputFile, param: str, attachments: list[Attachment]) -> dict[str, Any]:
    if isinstance(part, InputText | OutputText):
        return {"type": "text", "text": part.text}
    if isinstance(part, InputImage):
        attachments.append(Attachment(part.image_url, f"image {len(attachments) + 1}", param, picture=True))
    else:
        reference = part.file_data or part.file_url
        if reference is None or (part.file_data and part.file_url):
            raise ApiError(400, "an input_file needs file_data or file_url, one of them", param)
        if part.file_url and "://" not in part.file_url[:16]:
            raise ApiError(400, "file_url is no URL; send the content as file_data", f"{param}.file_url", "invalid_url")
        attachments.append(Attachment(reference, part.filename or part.file_name or f"file {len(attachments) + 1}", param))
    return {"type": "document", "index": len(attachments) - 1}
