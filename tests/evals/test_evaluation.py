"""An evaluation from a folder to its numbers, with an engine whose answers are known."""

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from pagelift import ConfigError, DocumentNotFound
from pagelift.cli import main
from pagelift.core import Proposal
from pagelift.evals import runner
from pagelift.evals.cache import cached_contents, cached_pages
from pagelift.evals.cases import load_cases
from pagelift.evals.report import macro_average, page_seconds, summarize, table
from pagelift.evals.runner import Run, run_cases
from pagelift.extract import ENGINES, ExtractOptions, LocalModel, ReadablePage
from pagelift.schema import Schema

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}


class Reader:
    """Gives the words of a page as a and b."""

    name = "reader"

    def extract(self, pages: Iterable[ReadablePage], schema: Schema, options: ExtractOptions) -> Proposal:  # noqa: ARG002
        words = [word.text for page in pages for word in page.content.words]
        return Proposal(dict(zip("ab", words, strict=False)))


@pytest.fixture
def folder(tmp_path: Path, pdf: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two collections. In x one document is right in both fields and one in the first only; in y one is broken."""
    monkeypatch.setitem(ENGINES, "reader", Reader)
    documents = {
        "x/one": (pdf(["A B"]), {"a": "A", "b": "B"}),
        "x/two": (pdf(["A C"]), {"a": "A", "b": None}),
        "y/bad": (b"%PDF-", {"a": "A", "b": "B"}),
        "y/good": (pdf(["A"], []), {"a": "A"}),
    }
    for name, (content, truth) in documents.items():
        collection, stem = name.split("/")
        for path, text in (
            (f"{collection}/documents/{stem}.pdf", content),
            (f"{collection}/expected/{stem}.json", json.dumps(truth).encode()),
            (f"{collection}/schema.json", json.dumps(SCHEMA).encode()),
        ):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_bytes(text)
    return tmp_path


def test_cases_with_and_without_a_manifest(folder: Path) -> None:
    assert [case.id for case in load_cases(folder)] == ["x/one", "x/two", "y/bad", "y/good"]
    assert [case.id for case in load_cases(folder, only=["y"], limit=1)] == ["y/bad"]
    row = {"id": "x/two", "collection": "x", "document": "x/documents/two.pdf", "schema": "x/schema.json", "loose": ["a"]}
    lines = [json.dumps(row | {"expected": "x/expected/two.json"}), "", json.dumps(row | {"id": "x/unlabelled"})]
    (folder / "manifest.jsonl").write_text("\n".join(lines))
    (case,) = load_cases(folder)
    assert (case.id, case.scorer.loose, case.truth()) == ("x/two", {"a"}, {"a": "A", "b": None})


@pytest.mark.parametrize("line", ["{", "[]", '{"expected": "x"}', '"text"'])
def test_a_broken_manifest_is_named_with_its_line(folder: Path, line: str) -> None:
    (folder / "manifest.jsonl").write_text("\n" + line)
    with pytest.raises(ConfigError, match="line 2 is no case"):
        load_cases(folder)


def test_wrong_folders(folder: Path) -> None:
    with pytest.raises(ConfigError, match="is no folder"):
        load_cases(folder / "missing")
    with pytest.raises(ConfigError, match="holds no case"):
        load_cases(folder / "x")
    with pytest.raises(ConfigError, match="no collection z; it has x, y"):
        load_cases(folder, only=["z"])


def test_numbers(folder: Path) -> None:
    outcomes = list(run_cases(load_cases(folder), Run("reader")))
    total = summarize(outcomes)
    assert (total.documents, total.errors, total.complete, total.pages) == (4, 1, 2, 4)
    assert (total.fields, total.right, total.null_fields, total.wrong["false fill"], total.wrong["not filled"]) == (7, 4, 1, 1, 2)
    assert macro_average(outcomes) == ((3 / 4 + 1 / 3) / 2, 1 / 2)
    assert total.false_fill_rate == 1.0
    assert 0 < page_seconds(outcomes)[0] <= page_seconds(outcomes)[1] < 30
    assert "CorruptDocument" in outcomes[2].error
    assert "macro average over 2 collections: field accuracy 54.17%, document accuracy 50.00%" in table(outcomes)


def test_the_cache_gives_the_same_results_and_pages(folder: Path, tmp_path: Path) -> None:
    document = folder / "y/documents/good.pdf"
    fresh = cached_contents(document, tmp_path / "cache")
    assert [content.number for content in fresh] == [1, 2]
    assert cached_contents(document, tmp_path / "cache") == fresh
    (entry,) = (tmp_path / "cache").iterdir()
    entry.write_text("{}")
    assert cached_contents(document, tmp_path / "cache") == fresh
    plain = [outcome.data for outcome in run_cases(load_cases(folder), Run("reader"))]
    for _ in range(2):
        assert [outcome.data for outcome in run_cases(load_cases(folder), Run("reader", tmp_path / "cache"))] == plain
    with pytest.raises(DocumentNotFound):
        cached_contents(folder / "missing.pdf", tmp_path / "cache")
    (page, _) = cached_pages(document, tmp_path / "cache")
    assert page.picture_words == page.picture_words == ()
    assert (tmp_path / "cache" / f"{page.entry.name}-pictures-1.json").read_text() == "[]"
    assert page.image(72).size == (400, 300)
    assert page.native_dpi is page.native_dpi is None


def test_several_processes_give_the_same_as_one(folder: Path) -> None:
    one, two = (list(run_cases(load_cases(folder), Run("layout"), jobs)) for jobs in (1, 2))
    assert [(o.case.id, o.data, o.error) for o in one] == [(o.case.id, o.data, o.error) for o in two]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_model_is_loaded_once_for_all_schemas(folder: Path, monkeypatch: pytest.MonkeyPatch, jobs: int) -> None:
    loaded: list[tuple[str, LocalModel]] = []
    monkeypatch.setattr(runner, "load_engine", lambda *asked: loaded.append(asked) or Reader())
    run = Run("vlm", model=LocalModel(f"model-{jobs}"))
    outcomes = list(run_cases(load_cases(folder), run, jobs))
    assert loaded == [("vlm", LocalModel(f"model-{jobs}"))]
    assert [o.data for o in outcomes] == [o.data for o in run_cases(load_cases(folder), Run("reader"))]


def test_the_command(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*arguments: str) -> tuple[Any, str, str]:
        monkeypatch.setattr(sys, "argv", ["pagelift", "eval", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return ended.value.code, captured.out, captured.err

    files = ("--json", str(tmp_path / "n.json"), "--predictions", str(tmp_path / "out"))
    code, out, err = run(str(folder), "--engine", "reader", "--fields", "--wrong", "9", *files)
    assert code == 4
    assert "y/bad" in err
    assert 'x/two b [false fill] expected null got "C"' in out
    assert "ms per page" in out
    numbers = json.loads((tmp_path / "n.json").read_text())
    assert numbers["all"]["right"] == 4
    assert numbers["fields"]["x"] == {"a": [2, 0], "b": [1, 1]}
    assert sorted(str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*.json")) == [
        "x/one.json",
        "x/two.json",
        "y/good.json",
    ]
    assert json.loads((tmp_path / "out/x/two.json").read_text()) == {"a": "A", "b": "C"}
    assert run(str(folder), "--engine", "reader", "--only", "x")[0] == 0
    assert run(str(folder), "--engine", "magic")[0] == 1
    assert run(str(folder / "missing"))[0] == 1
