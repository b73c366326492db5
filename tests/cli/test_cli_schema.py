"""`pagelift schema` and `pagelift --version` from the outside."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pagelift
from pagelift.cli import main
from pagelift.schema import Schema


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., tuple[Any, str, str]]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))

    def call(*arguments: str) -> tuple[Any, str, str]:
        monkeypatch.setattr(sys, "argv", ["pagelift", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return ended.value.code or 0, captured.out, captured.err

    return call


def test_check(run: Callable[..., tuple[Any, str, str]]) -> None:
    code, out, _ = run("schema", "check", '{"type": "string", "format": "invoice-code"}')
    assert code == 0
    assert "advisory" in out
    code, out, _ = run("schema", "check", "--strict", "--json", '{"type": "string", "format": "invoice-code"}')
    assert code == 3
    assert json.loads(out)["accepted"] is False
    code, out, err = run("schema", "check", "missing-schema")
    assert (code, out) == (3, "")
    assert "missing-schema" in err


def test_infer(run: Callable[..., tuple[Any, str, str]], tmp_path: Path) -> None:
    for k, value in enumerate(({"a": 1, "b": "x"}, {"a": 2.5, "b": None})):
        (tmp_path / f"{k}.json").write_text(json.dumps(value))
    code, out, _ = run("schema", "infer", str(tmp_path / "0.json"), str(tmp_path / "1.json"), "--title", "Things")
    assert code == 0
    assert json.loads(out)["title"] == "Things"
    assert Schema.load(json.loads(out), nulls="declared").errors({"a": 2.5, "b": None}) == []
    (tmp_path / "bad.json").write_text("{")
    code, out, err = run("schema", "infer", str(tmp_path / "bad.json"))
    assert (code, out) == (1, "")
    assert "bad.json" in err


def test_saved_schemas(run: Callable[..., tuple[Any, str, str]], tmp_path: Path) -> None:
    code, out, err = run("schema", "list")
    assert (code, out) == (0, "")
    assert "pagelift schema save" in err
    (tmp_path / "s.json").write_text('{"type": "object", "properties": {"a": {"type": "string"}}}')
    assert run("schema", "save", "thing", str(tmp_path / "s.json"))[0] == 0
    assert run("schema", "list")[1].startswith("thing\t")
    assert run("schema", "check", "thing")[0] == 0
    assert run("schema", "save", "../thing", str(tmp_path / "s.json"))[0] == 3
    (tmp_path / "bad.json").write_text('{"type": "nothing"}')
    assert run("schema", "save", "bad", str(tmp_path / "bad.json"))[0] == 3


@pytest.mark.parametrize(
    ("arguments", "code"), [([], 1), (["schema"], 1), (["nonsense"], 1), (["--help"], 0), (["schema", "check", "-h"], 0)]
)
def test_usage(run: Callable[..., tuple[Any, str, str]], arguments: list[str], code: int) -> None:
    assert run(*arguments)[0] == code


def test_version(run: Callable[..., tuple[Any, str, str]]) -> None:
    assert run("--version") == (0, f"pagelift {pagelift.__version__}\n", "")
