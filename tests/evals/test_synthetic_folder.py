"""`pagelift synth` writes folders that `pagelift eval` reads."""

import json
import sys
from pathlib import Path

import pytest

from pagelift.cli import main
from pagelift.documents import open_document
from pagelift.evals.cases import load_cases
from pagelift.evals.synthetic import make_sample
from pagelift.evals.synthetic.folder import write_folder


def command(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["pagelift", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def test_synth_and_eval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "made"
    assert command(monkeypatch, "synth", out, "--count", 4, "--seed", 3, "--split", "test", "--kinds", "letter", "--kinds", "receipt") == 0
    cases = load_cases(out)
    assert [case.collection for case in cases] == ["letter", "receipt"] * 2
    assert all(case.document.is_file() and case.schema.is_file() for case in cases)
    row = json.loads((out / "manifest.jsonl").read_text(encoding="utf-8").splitlines()[0])
    places = json.loads((out / row["evidence"]).read_text(encoding="utf-8"))
    assert all({"page", "box", "raw"} == set(place) for place in places.values())
    capsys.readouterr()
    assert command(monkeypatch, "eval", out) == 0
    assert "macro average over 2 collections" in capsys.readouterr().out


def test_synth_refuses_a_folder_in_use_and_unknown_kinds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").write_text("x")
    assert command(monkeypatch, "synth", tmp_path) == 1
    assert "not an empty folder" in capsys.readouterr().err
    assert command(monkeypatch, "synth", tmp_path / "new", "--kinds", "poem") == 1
    assert "no kind of document" in capsys.readouterr().err


def test_pictures_have_all_pages(tmp_path: Path) -> None:
    one = make_sample(0, "test", "receipt")
    several = next(s for s in (make_sample(seed, "test", "statement") for seed in range(40)) if len(s.pages) == 2)
    assert write_folder(tmp_path, [one, several], pictures=True) == 2
    files = sorted(path for path in tmp_path.rglob("documents/*"))
    assert [path.suffix for path in files] == [".jpg", ".tiff"]
    for path, sample in zip(files, (one, several), strict=True):
        with open_document(path) as document:
            assert document.page_count == len(sample.pages)
            assert document.size_pt(1)[0] == pytest.approx(sample.pages[0].width_pt, abs=1)
