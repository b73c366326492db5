"""/v1/responses through the openai client."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import openai
import pydantic
import pytest

from pagelift.extract.vlm import VlmEngine
from runtime.scripted import scripted
from server.running import DATA, SCHEMA, Running, running

FORMAT = {"format": {"type": "json_schema", "name": "invoice", "schema": SCHEMA}}


def file(content: bytes) -> dict[str, Any]:
    encoded = base64.b64encode(content).decode()
    return {"type": "input_file", "filename": "invoice.pdf", "file_data": f"data:application/pdf;base64,{encoded}"}


def asked(content: bytes, **more: Any) -> dict[str, Any]:
    parts = [file(content), {"type": "input_text", "text": "Extract."}]
    return {"model": "layout", "input": [{"role": "user", "content": parts}], "text": FORMAT, **more}


@pytest.fixture(scope="module")
def talking() -> Iterator[Running]:
    with running(engines=[VlmEngine(scripted("Hello there"))]) as server:
        yield server


def test_a_document_is_answered(layout_server: Running, invoice: bytes) -> None:
    response = layout_server.openai().responses.create(**asked(invoice))
    assert json.loads(response.output_text) == DATA
    assert (response.status, response.object) == ("completed", "response")
    assert response.usage
    assert response.usage.total_tokens == 0


def test_a_picture_and_a_pydantic_model(layout_server: Running, invoice: bytes) -> None:
    class Invoice(pydantic.BaseModel):
        invoice_number: str | None
        total: float | None

    url = "data:application/pdf;base64," + base64.b64encode(invoice).decode()
    parts = [{"type": "input_image", "image_url": url, "detail": "auto"}]
    given: list[Any] = [{"role": "user", "content": parts}]
    response = layout_server.openai().responses.parse(model="layout", input=given, text_format=Invoice)
    assert response.output_parsed == Invoice(**DATA)


def test_the_events_come_in_the_order_that_the_client_expects(layout_server: Running, invoice: bytes) -> None:
    events = list(layout_server.openai().responses.create(**asked(invoice, stream=True)))
    assert [event.type.removeprefix("response.") for event in events] == [
        "created", "in_progress", "output_item.added", "content_part.added", "output_text.delta",
        "output_text.done", "content_part.done", "output_item.done", "completed",
    ]  # fmt: skip
    assert [event.sequence_number for event in events] == list(range(9))
    assert json.loads(events[-1].response.output_text) == DATA


def test_the_clients_own_stream_helper_works(talking: Running) -> None:
    with talking.openai().responses.stream(model="scripted", input="Hi", instructions="Be short.") as stream:
        texts = [event.delta for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert "".join(texts) == final.output_text == "Hello there"
    assert len(texts) > 1
    assert final.usage
    assert final.usage.output_tokens == len(texts)
    assert final.usage.input_tokens > 5


def test_an_answer_may_be_given_back_as_it_came(talking: Running) -> None:
    responses = talking.openai().responses
    first = responses.create(model="scripted", input="Hi")
    conversation: list[Any] = [{"role": "user", "content": "Hi"}, *first.output, {"role": "user", "content": "And now?"}]
    assert responses.create(model="scripted", input=conversation).output_text == "Hello there"


def test_an_answer_that_is_cut_off_is_incomplete(talking: Running) -> None:
    response = talking.openai().responses.create(model="scripted", input="Hi", max_output_tokens=1)
    assert response.status == "incomplete"
    assert response.incomplete_details
    assert response.incomplete_details.reason == "max_output_tokens"
    last = list(talking.openai().responses.create(model="scripted", input="Hi", max_output_tokens=1, stream=True))[-1]
    assert last.type == "response.incomplete"


def test_logprobs(talking: Running) -> None:
    response = talking.openai().responses.create(model="scripted", input="Hi", include=["message.output_text.logprobs"], top_logprobs=2)
    logprobs = response.output[0].content[0].logprobs  # type: ignore[union-attr]
    assert logprobs
    assert "".join(token.token for token in logprobs) == "Hello there"
    assert all(len(token.top_logprobs) == 2 for token in logprobs)


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"store": True}, "store"),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"tools": [{"type": "web_search"}]}, "tools"),
        ({"reasoning": {"effort": "low"}}, "reasoning"),
        ({"background": True}, "background"),
        ({"truncation": "auto"}, "truncation"),
        ({"include": ["file_search_call.results"]}, "include.0"),
        ({"input": []}, "input"),
        ({"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]}, "input.0.content.0.file_id"),
        ({"input": [{"role": "user", "content": [{"type": "input_file"}]}]}, "input.0.content.0"),
        ({"input": [{"role": "assistant", "content": [{"type": "input_image", "image_url": "data:,x"}]}]}, "input.0.content"),
        ({"text": {"format": {"type": "json_schema", "name": "x"}}}, "text.format.schema"),
        ({"text": {"format": {"type": "text"}}}, "text.format"),
        ({"text": {"verbosity": "low"}}, "text.verbosity"),
        ({"max_output_tokens": 10**9}, "max_output_tokens"),
        ({"seed": 5}, "seed"),
    ],
)
def test_what_is_not_supported_is_a_400_that_names_it(layout_server: Running, invoice: bytes, change: dict[str, Any], param: str) -> None:
    with layout_server.http() as client:
        reply = client.post("/v1/responses", json=asked(invoice) | change)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param), reply.text


def test_errors_have_their_status_before_the_stream_begins(layout_server: Running) -> None:
    with pytest.raises(openai.UnprocessableEntityError):
        layout_server.openai().responses.create(**asked(b"%PDF-1.7 broken", stream=True))
    parts = [{"type": "input_file", "file_url": "http://example.com/a.pdf"}]
    with pytest.raises(openai.PermissionDeniedError):
        layout_server.openai().responses.create(**asked(b"") | {"input": [{"role": "user", "content": parts}]})
