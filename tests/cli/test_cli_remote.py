"""`extract --engine remote` from the outside: where the server's address, model and key come from, and what goes wrong."""

from __future__ import annotations

import itertools
import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from extract.fake_server import FakeServer, completion, failure
from pagelift.cli import main
from pagelift.extract import settings

pytest.importorskip("openai")
SCHEMA = '{"type": "object", "properties": {"total": {"type": "number"}}}'
Run = Callable[..., tuple[Any, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    for name in ("VLLM_API_BASE", "VLLM_API_KEY", "VLLM_MODEL_NAME"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: object) -> tuple[Any, str, str]:
        monkeypatch.setattr(sys, "argv", ["pagelift", "extract", *map(str, arguments), "-s", SCHEMA])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return ended.value.code, captured.out, captured.err

    return call


@pytest.fixture
def document(tmp_path: Path, pdf: Callable[..., bytes]) -> Path:
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf(["Total 5"]))
    return path


def test_options_environment_and_config_file_name_the_server(
    run: Run, document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.toml"
    monkeypatch.setattr(settings, "config_file", lambda: config)
    with FakeServer(lambda _: completion('{"total": 5}')) as server:
        config.write_text(f'[remote]\napi_base = "{server.api_base}"\nmodel = "of-file"\napi_key = "file"\nretries = 0\n')
        code, out, _ = run(document, "--engine", "remote")
        assert (code, json.loads(out)) == (0, {"total": 5})
        config.write_text("[remote]\nretries = 0\n")
        monkeypatch.setenv("VLLM_API_BASE", server.api_base)
        monkeypatch.setenv("VLLM_MODEL_NAME", "of-environment")
        monkeypatch.setenv("VLLM_API_KEY", "environment")
        monkeypatch.setenv("PAGELIFT_MODEL", "some/model")
        run(document, "--engine", "remote")
        run(document, "--engine", "remote", "--model", "of-option", "--api-key", "option", "--max-tokens", 99)
        monkeypatch.setenv("VLLM_API_BASE", "http://127.0.0.1:1/v1")
        run(document, "--engine", "remote", "--api-base", server.api_base)
    assert [request["model"] for request in server.requests] == ["of-file", "of-environment", "of-option", "of-environment"]
    assert list(dict.fromkeys(server.keys)) == ["Bearer file", "Bearer environment", "Bearer option"]
    assert server.requests[2]["max_tokens"] == 99


def test_other_engines_send_nothing(run: Run, document: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeServer(lambda _: completion("{}")) as server:
        monkeypatch.setenv("VLLM_API_BASE", server.api_base)
        for engine in ("auto", "layout"):
            assert run(document, "--engine", engine)[0] == 0
        code, _, err = run(document, "--engine", "layout", "--api-base", server.api_base)
        assert code == 1
        assert "--engine remote" in err
    assert server.requests == []
    assert server.keys == []


def test_documents_at_the_same_time_come_out_in_order(run: Run, document: Path, tmp_path: Path, pdf: Callable[..., bytes]) -> None:
    others = [tmp_path / f"{name}.pdf" for name in "bcdef"]
    for number, other in enumerate(others):
        other.write_bytes(pdf([f"Total {number}"] * (number + 1)))
    together, count = threading.Barrier(3, timeout=30), itertools.count(1)

    def answer(_: dict[str, Any]) -> tuple[int, Any]:
        together.wait()
        return completion(json.dumps({"total": next(count)}))

    with FakeServer(answer) as server:
        code, out, _ = run(document, *others, "--engine", "remote", "--api-base", server.api_base, "-j", 3, "--format", "jsonl")
    assert code == 0
    rows = [json.loads(line) for line in out.splitlines()]
    assert [Path(row["source"]).name for row in rows] == ["a.pdf", "b.pdf", "c.pdf", "d.pdf", "e.pdf", "f.pdf"]
    assert sorted(row["data"]["total"] for row in rows) == [1, 2, 3, 4, 5, 6]


def test_errors_end_one_document_with_a_message(run: Run, document: Path) -> None:
    with FakeServer(lambda _: failure(401, "wrong key")) as server:
        code, _, err = run(document, "--engine", "remote", "--api-base", server.api_base)
    assert code == 2
    assert "--api-key" in err
    assert "Traceback" not in err
    code, _, err = run(document, "--engine", "remote", "--api-base", "localhost")
    assert code == 1
    assert "api_base" in err
    code, _, err = run(document, "--engine", "remote", "--backend", "cpu")
    assert code == 1
    assert "--backend" in err
