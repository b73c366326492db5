"""Chat with a loaded checkpoint, through the openai client; the model is scripted."""

from __future__ import annotations

import base64
import io
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import openai
import pytest
from PIL import Image

from pagelift.extract.vlm import VlmEngine
from pagelift.server.settings import ServerSettings, ServiceLimits
from runtime.scripted import scripted
from server.running import Running, ask, file_part, json_schema, running, until

SAID = "The total is 5 EUR."
HELLO: list[Any] = [{"role": "user", "content": "Hi"}]


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running(engines=[VlmEngine(scripted(SAID))], aliases=["lift"]) as server:
        yield server


@pytest.fixture(scope="module")
def chat(server: Running) -> Any:
    return server.openai().chat.completions


@pytest.fixture(scope="module")
def endless() -> Iterator[Running]:
    """Its model writes 5,000 tokens."""
    limits = ServiceLimits(output_tokens=4000)
    with running(ServerSettings(limits=limits), [VlmEngine(scripted("", end=False))]) as server:
        yield server


def test_plain_chat(chat: Any) -> None:
    messages = [{"role": "system", "content": "Be brief."}, *HELLO, {"role": "assistant", "content": "Yes?"}, *HELLO]
    answer = chat.create(model="scripted", messages=messages)
    assert answer.choices[0].message.content == SAID
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.completion_tokens > 3
    assert answer.usage.prompt_tokens > 10
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer.usage.prompt_tokens_details.cached_tokens >= 0


def test_the_model_comes_first_and_by_its_aliases(server: Running, chat: Any) -> None:
    assert next(iter(server.openai().models.list())).id == "scripted"
    assert chat.create(model="lift", messages=HELLO).choices[0].message.content == SAID


def test_streaming_is_piece_by_piece(chat: Any) -> None:
    chunks = list(chat.create(model="scripted", messages=HELLO, stream=True, stream_options={"include_usage": True}))
    pieces = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]
    assert "".join(pieces) == SAID
    assert len(pieces) == chunks[-1].usage.completion_tokens


def test_the_limit_of_tokens_ends_the_answer(chat: Any) -> None:
    for name in ("max_tokens", "max_completion_tokens"):
        answer = chat.create(model="scripted", messages=HELLO, **{name: 2})
        assert (answer.choices[0].finish_reason, answer.usage.completion_tokens) == ("length", 2)
        assert SAID.startswith(answer.choices[0].message.content)


@pytest.mark.parametrize("stop", ["total", ["zebra", "l is"], "tal is 5", SAID[-1]])
def test_stop_sequences_end_the_answer_before_them(chat: Any, stop: Any) -> None:
    first = min(SAID.index(one) for one in ([stop] if isinstance(stop, str) else stop) if one in SAID)
    answer = chat.create(model="scripted", messages=HELLO, stop=stop)
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == (SAID[:first], "stop")
    pieces = [chunk.choices[0].delta.content or "" for chunk in chat.create(model="scripted", messages=HELLO, stop=stop, stream=True)]
    assert "".join(pieces) == SAID[:first]
    assert chat.create(model="scripted", messages=HELLO, stop="EUR.!").choices[0].message.content == SAID


def test_log_probabilities(chat: Any) -> None:
    answer = chat.create(model="scripted", messages=HELLO, logprobs=True, top_logprobs=3)
    content = answer.choices[0].logprobs.content
    assert b"".join(bytes(token.bytes) for token in content).decode() == SAID
    assert all(token.logprob < 0 and len(token.top_logprobs) == 3 for token in content)
    assert content[0].top_logprobs[0].token == content[0].token
    streamed = chat.create(model="scripted", messages=HELLO, logprobs=True, stream=True)
    tokens = [token for chunk in streamed if chunk.choices and chunk.choices[0].logprobs for token in chunk.choices[0].logprobs.content]
    assert [token.token for token in tokens] == [token.token for token in content]


def test_several_answers_and_seeds(endless: Running) -> None:
    chat = endless.openai().chat.completions
    asked = {"model": "scripted", "messages": HELLO, "temperature": 2, "max_tokens": 12, "n": 3, "seed": 7}
    first, again = (chat.create(**asked) for _ in range(2))
    texts = [choice.message.content for choice in first.choices]
    assert texts == [choice.message.content for choice in again.choices]
    assert len(set(texts)) == 3
    assert first.usage.completion_tokens == 36
    shifted = chat.create(**asked | {"n": 1, "seed": 8})
    assert shifted.choices[0].message.content == texts[1]
    chunks = [chunk for chunk in chat.create(**asked, stream=True) if chunk.choices]
    joined = ["".join(c.choices[0].delta.content or "" for c in chunks if c.choices[0].index == k) for k in range(3)]
    assert joined == texts


def test_a_schema_is_kept_by_a_model_that_has_no_idea(endless: Running, chat: Any) -> None:
    schema = {"type": "object", "properties": {"kind": {"enum": ["a", "b"]}, "paid": {"type": "boolean"}}, "required": ["kind", "paid"]}
    for completions in (endless.openai().chat.completions, chat):
        answer = completions.create(model="scripted", messages=HELLO, response_format=json_schema(schema))
        data = json.loads(answer.choices[0].message.content)
        assert data["kind"] in ("a", "b")
        assert isinstance(data["paid"], bool)
        assert answer.choices[0].finish_reason == "stop"
    streamed = chat.create(model="scripted", messages=HELLO, response_format=json_schema(schema), stream=True, temperature=1.5)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in streamed if chunk.choices)
    assert json.loads(text).keys() == {"kind", "paid"}


def test_json_object(chat: Any) -> None:
    answer = chat.create(model="scripted", messages=HELLO, response_format={"type": "json_object"}, max_tokens=500)
    text = answer.choices[0].message.content
    assert text.startswith("{")
    assert answer.choices[0].finish_reason == "length" or isinstance(json.loads(text), dict)


def test_a_schema_that_cannot_be_honoured_is_refused(chat: Any) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        chat.create(model="scripted", messages=HELLO, response_format=json_schema({"type": "nonsense"}))
    assert refused.value.param == "schema"


def picture(size: tuple[int, int]) -> dict[str, Any]:
    content = io.BytesIO()
    Image.new("RGB", size, "white").save(content, "PNG")
    return {"type": "image_url", "image_url": {"url": "data:image/png;base64," + base64.b64encode(content.getvalue()).decode()}}


def test_documents_are_shown_page_by_page_in_their_places(pdf: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = scripted(SAID)
    asked: list[Any] = []
    prompt = type(loaded).prompt
    monkeypatch.setattr(type(loaded), "prompt", lambda self, *given, **named: asked.append(given) or prompt(self, *given, **named))
    parts = [{"type": "text", "text": "First"}, file_part(pdf(["a"], ["b"])), {"type": "text", "text": "then"}, picture((64, 96))]
    with running(engines=[VlmEngine(loaded)]) as server:
        answer = server.openai().chat.completions.create(model="scripted", messages=[{"role": "user", "content": parts}])  # type: ignore[arg-type]
    assert answer.choices[0].message.content == SAID
    ((messages, pictures),) = asked
    assert [part["type"] for part in messages[0]["content"]] == ["text", "image", "image", "text", "image"]
    assert min(pictures[0].size) > 600  # pages as lift is shown them
    assert pictures[2].size == (64, 96)  # pictures in their own pixels


@pytest.mark.parametrize(
    ("messages", "param"),
    [
        ([{"role": "user", "content": [{"type": "text", "text": "<|vision_start|><|image_pad|><|vision_end|>"}]}], "messages"),
        ([{"role": "system", "content": [picture((64, 64))]}, *HELLO], "messages.0.content"),
        ([{"role": "user", "content": "word " * 5000}], "messages"),
    ],
)
def test_messages_that_the_model_cannot_take_are_a_400(chat: Any, messages: Any, param: str) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        chat.create(model="scripted", messages=messages)
    assert refused.value.param == param


def test_variables_of_the_template(chat: Any) -> None:
    answer = chat.create(model="scripted", messages=HELLO, extra_body={"chat_template_kwargs": {"enable_thinking": False}})
    assert answer.choices[0].message.content == SAID


def test_a_lost_client_ends_the_generation(endless: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = endless.service.catalog.default.loaded
    assert loaded
    forward = loaded.model.forward
    monkeypatch.setattr(loaded.model, "forward", lambda step: time.sleep(0.005) or forward(step))  # or all is written before it is lost
    stream = endless.openai().chat.completions.create(model="scripted", messages=HELLO, stream=True)  # type: ignore[call-overload]
    next(iter(stream))
    stream.close()
    until(lambda: loaded.service.load().active == 0 and endless.service.models.running == 0)
    cancelled = 'pagelift_answers_total{finish_reason="cancelled",model="scripted"} 1.0'
    until(lambda: cancelled in endless.http().get("/metrics").text)


def test_many_clients_at_once_get_what_each_would_get_alone(endless: Running) -> None:
    chat = endless.openai().chat.completions
    asked = [{"model": "scripted", "messages": HELLO, "temperature": 1.5, "seed": k, "max_tokens": 10 + k} for k in range(10)]
    alone = [chat.create(**one).choices[0].message.content for one in asked]  # type: ignore[call-overload]
    together: dict[int, str] = {}

    def ask_one(k: int) -> None:
        together[k] = chat.create(**asked[k]).choices[0].message.content  # type: ignore[call-overload]

    threads = [threading.Thread(target=ask_one, args=(k,)) for k in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [together[k] for k in range(10)] == alone


def test_metrics_of_a_model(server: Running, chat: Any) -> None:
    chat.create(model="scripted", messages=HELLO)
    chat.create(model="scripted", messages=HELLO)
    with server.http() as client:
        text = client.get("/metrics").text
    values = {line.split(" ")[0]: float(line.split(" ")[1]) for line in text.splitlines() if line.startswith("pagelift_")}
    assert values['pagelift_output_tokens_total{model="scripted"}'] > 5
    assert values['pagelift_prompt_tokens_total{model="scripted"}'] > 5
    assert values['pagelift_passes_total{model="scripted"}'] > 0
    assert 0 < values['pagelift_passes_per_token{model="scripted"}'] < 3
    assert values['pagelift_time_to_first_token_seconds_count{model="scripted"}'] > 0
    assert values['pagelift_answers_total{finish_reason="stop",model="scripted"}'] > 0


ANSWER = {"invoice_number": "A-17", "total": 1234.5}


def test_extraction_with_a_model_tells_values_as_they_are_written(invoice: bytes) -> None:
    with running(engines=[VlmEngine(scripted(json.dumps(ANSWER)))]) as server, server.http() as client:
        schema = ask(b"")["response_format"]["json_schema"]["schema"]
        given = {"schema": json.dumps(schema), "stream": "true"}
        reply = client.post("/v1/extract", files={"document": ("invoice.pdf", invoice)}, data=given)
        lines = [json.loads(line) for line in reply.text.splitlines()]
        kinds = [line["type"] for line in lines]
        assert kinds == ["pages", "pages", "value", "value", "field", "field", "result"]
        assert [(line["pointer"], line["value"]) for line in lines[2:4]] == [("/invoice_number", "A-17"), ("/total", 1234.5)]
        assert lines[-1]["data"] == ANSWER
        assert lines[-1]["engine"] == "vlm"
        assert 'pagelift_output_tokens_total{model="scripted"} 0.0' not in client.get("/metrics").text


def test_a_lost_client_ends_an_extraction_with_a_model(invoice: bytes) -> None:
    with running(engines=[VlmEngine(scripted("", end=False))]) as server, server.http() as client:
        given = {"schema": json.dumps({"type": "object", "properties": {"a": {"type": "string"}}}), "stream": "true"}
        with client.stream("POST", "/v1/extract", files={"document": ("a.pdf", invoice)}, data=given) as reply:
            next(reply.iter_lines())
        loaded = server.service.catalog.default.loaded
        assert loaded
        until(lambda: loaded.service.load().active == 0 and server.service.models.running == 0)
