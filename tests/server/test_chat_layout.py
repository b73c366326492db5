"""/v1/chat/completions with the built-in engine, through the openai client."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import openai
import pydantic
import pytest

from server.running import DATA, Running, ask, file_part, json_schema


def test_a_pdf_and_a_schema_give_the_data(layout_server: Running, invoice: bytes) -> None:
    answer = layout_server.openai().chat.completions.create(**ask(invoice))
    assert json.loads(answer.choices[0].message.content or "") == DATA
    assert answer.choices[0].finish_reason == "stop"
    assert (answer.object, answer.model) == ("chat.completion", "layout")
    assert answer.usage
    assert answer.usage.total_tokens == 0


@pytest.mark.parametrize("key", ["filename", "file_name"])
def test_both_names_of_a_file_are_taken(layout_server: Running, invoice: bytes, key: str) -> None:
    messages = [{"role": "user", "content": [file_part(invoice, key=key), {"type": "text", "text": "Extract."}]}]
    answer = layout_server.openai().chat.completions.create(**ask(invoice) | {"messages": messages})
    assert json.loads(answer.choices[0].message.content or "") == DATA


def test_a_pdf_may_come_as_bare_base64_and_as_an_image_url(layout_server: Running, invoice: bytes) -> None:
    encoded = base64.b64encode(invoice).decode()
    for part in (
        {"type": "file", "file": {"file_data": encoded}},
        {"type": "image_url", "image_url": {"url": f"data:application/pdf;base64,{encoded}"}},
    ):
        answer = layout_server.openai().chat.completions.create(**ask(invoice) | {"messages": [{"role": "user", "content": [part]}]})
        assert json.loads(answer.choices[0].message.content or "") == DATA


def test_streaming_gives_the_same_and_usage_when_asked(layout_server: Running, invoice: bytes) -> None:
    stream = layout_server.openai().chat.completions.create(**ask(invoice, stream=True, stream_options={"include_usage": True}))
    chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert json.loads(text) == DATA
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage
    assert not chunks[-1].choices
    assert len({chunk.id for chunk in chunks}) == 1


def test_a_pydantic_model_comes_back_as_an_instance(layout_server: Running, invoice: bytes) -> None:
    class Invoice(pydantic.BaseModel):
        invoice_number: str | None
        total: float | None

    asked = ask(invoice)
    del asked["response_format"]
    answer = layout_server.openai().chat.completions.parse(response_format=Invoice, **asked)
    assert answer.choices[0].message.parsed == Invoice(**DATA)


def test_several_documents_are_read_as_one(layout_server: Running, pdf: Any) -> None:
    parts = [file_part(pdf(["Invoice number: A-17"]), "1.pdf"), file_part(pdf(["nothing"], ["Total: 1,234.50 EUR"]), "2.pdf")]
    answer = layout_server.openai().chat.completions.create(**ask(b"") | {"messages": [{"role": "user", "content": parts}]})
    assert json.loads(answer.choices[0].message.content or "") == DATA


def test_n_answers_are_alike(layout_server: Running, invoice: bytes) -> None:
    answer = layout_server.openai().chat.completions.create(**ask(invoice, n=3, temperature=0.7, seed=5, max_tokens=50))
    assert [json.loads(choice.message.content or "") for choice in answer.choices] == [DATA] * 3
    assert [choice.index for choice in answer.choices] == [0, 1, 2]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
    ({"presence_penalty": 0.5}, "presence_penalty"),
    ({"logit_bias": {"5": 1}}, "logit_bias"),
    ({"user": "me"}, "user"),
    ({"store": True}, "store"),
    ({"metadata": {"a": "b"}}, "metadata"),
    ({"temperature": -1}, "temperature"),
    ({"top_p": 0}, "top_p"),
    ({"n": 0}, "n"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"max_tokens": 10_000_000}, "max_tokens"),
    ({"max_tokens": 5, "max_completion_tokens": 5}, "max_tokens"),
    ({"logprobs": True}, "logprobs"),
    ({"top_logprobs": 3}, "top_logprobs"),
    ({"stop": "x"}, "stop"),
    ({"stop": [""]}, "stop.0"),
    ({"stream_options": {"include_usage": True}}, "stream_options"),
    ({"response_format": {"type": "text"}}, "response_format"),
    ({"response_format": {"type": "json_object"}}, "response_format"),
    ({"response_format": {"type": "json_schema"}}, "response_format"),
    ({"response_format": {"type": "grammar"}}, "response_format.type"),
    ({"messages": []}, "messages"),
    ({"messages": [{"role": "user", "content": "What is the total?"}]}, "messages"),
    ({"messages": [{"role": "tool", "content": "x"}]}, "messages.0.role"),
    ({"messages": [{"role": "user", "content": [{"type": "audio"}]}]}, "messages.0.content.0"),
    ({"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}]}, "messages.0.content.0.file.file_data"),
]


@pytest.mark.parametrize(("change", "param"), WRONG, ids=lambda value: str(value)[:60])
def test_what_is_not_supported_is_a_400_that_names_it(layout_server: Running, invoice: bytes, change: dict[str, Any], param: str) -> None:
    asked = ask(invoice) | change
    with layout_server.http() as client:
        reply = client.post("/v1/chat/completions", json=asked)
    assert reply.status_code == 400, reply.text
    error = reply.json()["error"]
    assert error["param"] == param
    assert error["type"] == "invalid_request_error"
    assert param.split(".", maxsplit=1)[0] in error["message"]


def test_neutral_values_of_unsupported_parameters_are_taken(layout_server: Running, invoice: bytes) -> None:
    neutral = {"presence_penalty": 0, "frequency_penalty": 0.0, "logit_bias": {}, "tools": [], "store": False, "n": 1, "top_p": 0.1}
    answer = layout_server.openai().chat.completions.create(**ask(invoice, **neutral))
    assert json.loads(answer.choices[0].message.content or "") == DATA


def test_errors_reach_the_client_as_its_own_exceptions(layout_server: Running, invoice: bytes) -> None:
    chat = layout_server.openai().chat.completions
    with pytest.raises(openai.NotFoundError, match="there is no model 'gpt-4'"):
        chat.create(**ask(invoice, model="gpt-4"))
    with pytest.raises(openai.BadRequestError, match="base64") as wrong:
        chat.create(**ask(b"") | {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_data": "%%%"}}]}]})
    assert wrong.value.param == "messages.0.content.0"
    with pytest.raises(openai.APIStatusError, match="neither a PDF nor") as kind:
        chat.create(**ask(b"plain text"))
    assert kind.value.status_code == 415
    with pytest.raises(openai.UnprocessableEntityError):
        chat.create(**ask(b"%PDF-1.7 broken"))
    with pytest.raises(openai.BadRequestError, match="no-such-type"):
        chat.create(**ask(invoice, response_format=json_schema({"type": "no-such-type"})))
    with pytest.raises(openai.UnprocessableEntityError):  # before the stream begins, so with its status
        chat.create(**ask(b"%PDF-1.7 broken", stream=True))


def test_a_schema_that_forbids_null_is_kept_or_the_answer_is_an_error(layout_server: Running, pdf: Any) -> None:
    strict = {"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}
    with pytest.raises(openai.UnprocessableEntityError, match="total"):
        layout_server.openai().chat.completions.create(**ask(pdf(["nothing here"]), response_format=json_schema(strict)))
    loose = {**strict, "required": []}
    answer = layout_server.openai().chat.completions.create(**ask(pdf(["nothing here"]), response_format=json_schema(loose)))
    assert json.loads(answer.choices[0].message.content or "") == {}


@pytest.mark.parametrize(
    "url",
    ["http://example.com/a.pdf", "https://127.0.0.1/a.pdf", "file:///etc/passwd", "ftp://example.com/a", "/etc/passwd", "../a.pdf"],
)
def test_urls_and_paths_are_refused(layout_server: Running, url: str) -> None:
    for part in ({"type": "image_url", "image_url": {"url": url}}, {"type": "file", "file": {"file_data": url}}):
        with pytest.raises((openai.PermissionDeniedError, openai.BadRequestError)) as refused:
            layout_server.openai().chat.completions.create(**ask(b"") | {"messages": [{"role": "user", "content": [part]}]})
        assert refused.value.status_code in (400, 403)
        assert refused.value.param == "messages.0.content.0"


def test_models_are_listed_with_their_aliases(layout_server: Running) -> None:
    client = layout_server.openai()
    assert [model.id for model in client.models.list()] == ["layout", "auto"]
    assert client.models.retrieve("auto").id == "auto"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("other")


def test_a_picture_is_read(layout_server: Running) -> None:
    from documents.making import paper

    content = io.BytesIO()
    paper(["Invoice number: A-17", "Total: 1,234.50 EUR"]).save(content, "PNG")
    url = "data:image/png;base64," + base64.b64encode(content.getvalue()).decode()
    messages = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url, "detail": "high"}}]}]
    answer = layout_server.openai().chat.completions.create(**ask(b"") | {"messages": messages})
    assert json.loads(answer.choices[0].message.content or "") == DATA
