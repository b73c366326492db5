"""The remote engine against a server in the same process: what it sends, what it makes of answers and failures, what it never does."""

from __future__ import annotations

import base64
import io
import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from extract.fake_server import FakeServer, completion, failure
from pagelift import ConfigError, EngineError, Extraction, Extractor, InvalidOutput
from pagelift.core import Budget
from pagelift.extract import LocalModel, RemoteServer, load_engine
from pagelift.extract import settings as extract_settings
from pagelift.extract.remote import RemoteEngine
from pagelift.extract.remote_protocol import reply_pieces, served_schema, unwrapped
from pagelift.schema import Schema

pytest.importorskip("openai")

SCHEMA = {
    "type": "object",
    "properties": {
        "number": {"type": "string"},
        "total": {"type": "number"},
        "rows": {"type": "array", "items": {"type": "object", "properties": {"item": {"type": "string"}}}},
    },
}
ANSWER = {"number": "A-17", "total": 1234.5, "rows": [{"item": "Nut"}, {"item": "Ghost"}]}
LINES = ["Invoice number: A-17", "Nut", "Total: 1.234,50 EUR"]
Pdf = Callable[..., bytes]


def run(server: FakeServer, document: bytes, budget: Budget | None = None, schema: Any = SCHEMA, **settings: Any) -> Extraction:
    remote = RemoteServer(api_base=server.api_base, **{"retries": 0, **settings})
    return Extractor(schema, RemoteEngine(remote), budget=budget).extract(document)


def test_the_same_result_as_of_a_local_model(pdf: Pdf) -> None:
    with FakeServer(lambda _: completion(json.dumps(ANSWER))) as server:
        result = run(server, pdf(LINES))
        assert result.metadata["server"] == server.api_base
    assert result.data == ANSWER
    assert result.engine == "remote"
    assert [field.status for field in result.fields.values()] == ["found", "found", "found", "unverified"]
    assert result.fields["/total"].raw == "1.234,50"
    assert all(field.confidence == pytest.approx(2.718281828**-0.1) for field in result.fields.values())
    assert (result.metadata["model"], result.metadata["constraint"], result.metadata["prompt_tokens"]) == ("lift", "json_schema", 100)
    assert result.warnings == ("/rows: 2 entries were given, but only 1 are seen on the pages; the others may be made up",)


def test_the_request_is_what_servers_of_lift_expect(pdf: Pdf) -> None:
    with FakeServer(lambda _: completion("{}")) as server:
        run(server, pdf(["a"], ["b"]), Budget(answer_tokens=77), api_key="secret")
    (request,) = server.requests
    assert (request["model"], request["max_tokens"], request["temperature"], request["logprobs"]) == ("lift", 77, 0.0, True)
    (message,) = request["messages"]
    first, second, text = message["content"]
    assert json.dumps(SCHEMA, indent=2) in text["text"]
    picture = Image.open(io.BytesIO(base64.b64decode(first["image_url"]["url"].removeprefix("data:image/png;base64,"))))
    assert picture.size == (924, 700)
    assert second["type"] == "image_url"
    sent = request["response_format"]["json_schema"]["schema"]
    assert sent["required"] == list(SCHEMA["properties"])
    assert sent["properties"]["total"]["type"] == ["number", "null"]
    assert sent["additionalProperties"] is False
    assert server.keys == ["Bearer secret"]


def test_nothing_of_the_environment_goes_along(pdf: Pdf, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "VLLM_API_KEY"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    with FakeServer(lambda _: completion(json.dumps(ANSWER))) as server:
        run(server, pdf(LINES))
    assert server.keys == ["Bearer none"]
    assert "authorization" in server.seen_headers
    assert not {"openai-organization", "openai-project"} & server.seen_headers


def test_objects_inside_themselves_may_end() -> None:
    schema = Schema.load({"type": "object", "properties": {"a": {"type": "string"}, "b": {"$ref": "#"}}})
    assert served_schema(schema)["required"] == ["a"]
    declared = Schema.load(SCHEMA, nulls="declared")
    assert "required" not in served_schema(declared)


@pytest.mark.parametrize(
    ("refused", "used", "warns"),
    [
        (["json_schema"], "structured_outputs", False),
        (["json_schema", "structured_outputs"], "guided_json", False),
        (["json_schema", "structured_outputs", "guided_json"], "json_object", True),
        (["json_schema", "structured_outputs", "guided_json", "json_object"], "none", True),
    ],
)
def test_weaker_constraints_where_the_server_refuses(refused: list[str], used: str, warns: bool, pdf: Pdf) -> None:
    def answer(request: dict[str, Any]) -> tuple[int, Any]:
        asked = request.get("response_format", {}).get("type") or next(
            (k for k in ("structured_outputs", "guided_json") if k in request), "none"
        )
        return failure(400, f"{asked} is not supported") if asked in refused else completion(json.dumps(ANSWER))

    with FakeServer(answer) as server:
        engine = RemoteEngine(RemoteServer(api_base=server.api_base, retries=0))
        result = Extractor(SCHEMA, engine).extract(pdf(LINES))
        count = len(server.requests)
        Extractor(SCHEMA, engine).extract(pdf(LINES))
        assert len(server.requests) == count + 1  # it is remembered
    assert (result.data, result.metadata["constraint"]) == (ANSWER, used)
    assert any("only checked afterwards" in warning for warning in result.warnings) == warns


def test_without_log_probabilities_the_confidence_says_nothing(pdf: Pdf) -> None:
    def refuses(request: dict[str, Any]) -> tuple[int, Any]:
        return failure(422, "unknown field logprobs") if "logprobs" in request else completion(json.dumps(ANSWER), logprob=None)

    for answer in (refuses, lambda _: completion(json.dumps(ANSWER), logprob=None)):
        with FakeServer(answer) as server:
            result = run(server, pdf(LINES))
        assert {field.confidence for field in result.fields.values()} == {0.5}
        assert any("log-probabilities" in warning for warning in result.warnings)
        assert result.metadata["constraint"] == "json_schema"


@pytest.mark.parametrize("before", ["```json\n", "<think>The total is\n</think>\n\n", "<think></think>```\n"])
def test_what_free_models_put_around_their_answer(before: str, pdf: Pdf) -> None:
    text = before + json.dumps(ANSWER, ensure_ascii=False) + ("\n```" if "`" in before else "")
    with FakeServer(lambda _: completion(text, size=2)) as server:
        result = run(server, pdf(LINES), constraint="none")
    assert result.data == ANSWER
    assert result.fields["/total"].confidence == pytest.approx(2.718281828**-0.1)


def test_pieces_are_the_answer_whatever_bytes_tokens_hold() -> None:
    text = '```json\n{"a": "Größe 金額"}\n```'
    inner, begin = unwrapped(text)
    for size in (1, 2, 3, 7, 100):
        from openai.types.chat import ChatCompletion

        choice = ChatCompletion.model_validate(completion(text, size=size)[1]).choices[0]
        pieces = reply_pieces(choice.logprobs, text, begin, len(inner))
        assert "".join(piece for piece, _ in pieces) == inner == '{"a": "Größe 金額"}'
        assert reply_pieces(choice.logprobs, text + "x", begin, len(inner)) == ()


def test_what_breaks_the_schema_does_not_come_through(pdf: Pdf) -> None:
    with FakeServer(lambda _: completion('{"total": "many"}')) as server:
        result = run(server, pdf(LINES))
    assert result.data == {"number": None, "total": None, "rows": []}
    assert result.fields["/total"].status == "unreadable"


def test_an_answer_that_is_cut_off_is_continued(pdf: Pdf) -> None:
    texts = iter(['{"number": "A-17", "total": 1234.5, "rows": [{"item": "Nut"}, {"item": "Gh', '{"rows": [{"item": "Ghost"}]}'])
    with FakeServer(lambda _: completion(text := next(texts), "stop" if text.endswith("}") else "length")) as server:
        result = run(server, pdf(LINES))
    assert result.data == ANSWER
    assert "truncated" not in result.metadata
    assert result.metadata["plan"]["answers"] == 2
    text = server.requests[1]["messages"][0]["content"][-1]["text"]
    assert '"number"' not in text
    assert '[{"item": "Nut"}]' in text


def test_an_answer_that_cannot_be_continued_is_marked(pdf: Pdf) -> None:
    with FakeServer(lambda _: completion('{"number": "A-1', "length")) as server:
        result = run(server, pdf(LINES))
    assert result.data["number"] is None
    assert result.metadata["truncated"] is True
    assert {field.status for field in result.fields.values()} == {"not_attempted"}


def test_windows_are_asked_at_the_same_time(pdf: Pdf) -> None:
    together = threading.Barrier(3, timeout=20)

    def answer(request: dict[str, Any]) -> tuple[int, Any]:
        together.wait()
        text = request["messages"][0]["content"][-1]["text"]
        assert "of a longer document" in text
        return completion(json.dumps({"rows": [{"item": "Nut"}]} if "pages 1 to 2" in text else {}))

    with FakeServer(answer) as server:
        result = run(server, pdf(["a"], ["Nut"], ["c"], ["d"]), Budget(prompt_tokens=1600))
    assert result.data["rows"] == [{"item": "Nut"}]
    assert result.metadata["plan"]["windows"] == [[1, 2], [2, 3], [3, 4]]


def test_the_context_that_a_server_states_counts(pdf: Pdf) -> None:
    with FakeServer(lambda _: completion("{}"), models=[{"id": "lift", "object": "model", "max_model_len": 4000}]) as server:
        result = run(server, pdf(*[["x"]] * 6), Budget(answer_tokens=1000))
    assert result.metadata["plan"]["prompt_tokens_limit"] == 3000
    assert len(server.requests) > 1


def test_failures_that_may_pass_are_tried_again(pdf: Pdf) -> None:
    answers = iter([failure(500, "busy"), failure(429, "later"), completion(json.dumps(ANSWER))])
    with FakeServer(lambda _: next(answers), headers={"Retry-After-Ms": "10"}) as server:
        assert run(server, pdf(LINES), retries=2).data == ANSWER


@pytest.mark.parametrize(
    ("response", "told"),
    [
        (failure(401, "wrong key"), "--api-key"),
        (failure(404, "no model x"), "--model"),
        (failure(500, "out of memory"), "out of memory"),
        (failure(400, "This model's maximum context length is 10 tokens"), "--max-prompt-tokens"),
        (failure(400, "bad request"), "bad request"),
        (completion("", "content_filter"), "content filter"),
    ],
)
def test_failures_are_told_with_the_remedy(response: Any, told: str, pdf: Pdf) -> None:
    with FakeServer(lambda _: response) as server, pytest.raises(EngineError, match=told) as caught:
        run(server, pdf(LINES))
    assert "127.0.0.1" in str(caught.value)


@pytest.mark.parametrize("text", ["", "I cannot do that.", '{"total": NaN}'])
def test_answers_that_are_no_json_are_kept_in_the_error(text: str, pdf: Pdf) -> None:
    with FakeServer(lambda _: completion(text)) as server, pytest.raises(InvalidOutput) as caught:
        run(server, pdf(LINES))
    assert caught.value.raw == text


def test_a_server_that_is_not_there_or_slow(pdf: Pdf) -> None:
    with FakeServer(lambda _: (time.sleep(1), completion("{}"))[1]) as server:
        with pytest.raises(EngineError, match=r"within 0\.2 s"):
            run(server, pdf(LINES), timeout_s=0.2)
        gone = server.api_base
    with pytest.raises(EngineError, match="cannot be reached"):
        Extractor(SCHEMA, RemoteEngine(RemoteServer(gone, retries=0))).extract(pdf(LINES))


def test_a_server_without_a_list_of_models_needs_the_name(pdf: Pdf) -> None:
    with FakeServer(lambda _: completion("{}"), models=None) as server:
        assert run(server, pdf(LINES), model="mine").metadata["model"] == "mine"
        with pytest.raises(EngineError, match="--model"):
            run(server, pdf(LINES))
        server.models = []
        with pytest.raises(EngineError, match="lists no model"):
            run(server, pdf(LINES))


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "config.toml"
    monkeypatch.setattr(extract_settings, "config_file", lambda: file)
    return file


def test_only_who_asks_for_the_engine_gets_it(config: Path) -> None:
    config.write_text('[remote]\napi_base = "http://example.org/v1"\nmodel = "lift"\ntimeout_s = 5\n')
    assert load_engine("auto").name == "layout"
    engine = load_engine("remote")
    assert isinstance(engine, RemoteEngine)
    assert engine.server == RemoteServer("http://example.org/v1", "lift", timeout_s=5)
    named = load_engine("remote", LocalModel("other"))
    assert isinstance(named, RemoteEngine)
    assert named.server == replace(engine.server, model="other")
    for name in ("auto", "vlm", "layout"):
        with pytest.raises(ConfigError, match="engine remote"):
            load_engine(name, engine.server)


@pytest.mark.parametrize(
    "settings",
    [
        {"api_base": "localhost:8000"},
        {"api_base": "ftp://x/v1"},
        {"api_base": ""},
        {"model": ""},
        {"api_key": 3},
        {"timeout_s": 0},
        {"concurrency": 0},
        {"retries": -1},
        {"constraint": "strict"},
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], config: Path) -> None:
    with pytest.raises(ConfigError, match=next(iter(settings))):
        RemoteServer(**settings)
    config.write_text("[remote]\nbase = 'x'\n")
    with pytest.raises(ConfigError, match=r"unknown key remote\.base"):
        load_engine("remote")


def test_the_key_is_not_shown() -> None:
    assert "secret" not in repr(RemoteServer(api_key="secret"))
