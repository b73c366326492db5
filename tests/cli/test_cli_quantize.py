"""`pagelift quantize` from the command line, on the golden checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pagelift.cli import main
from pagelift.models import load_config
from pagelift.weights.summary import summarise

DOCUMENT = Path(__file__).parent.parent / "golden" / "document"


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["pagelift", "quantize", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def test_plan_of_oq(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    out, picture = tmp_path / "out", tmp_path / "bits.png"
    assert run(monkeypatch, str(DOCUMENT), str(out), "--target", "oQ6", "--method", "oq", "--plot", str(picture)) == 0
    assert "bits per weight" in capsys.readouterr().err
    summary = summarise(out, load_config(out).quantization)
    assert summary.layout == "mlx"
    assert any(key.startswith("6 bits") for key in summary.formats)
    card = (out / "README.md").read_text(encoding="utf-8")
    assert f"pagelift quantize {DOCUMENT} {out} --target oQ6 --method oq" in card
    assert json.loads((out / "config.json").read_text())["quantization"]["mode"] == "affine"
    assert picture.is_file()
    assert not (out / ".quantize").exists()
    assert run(monkeypatch, str(DOCUMENT), str(out), "--method", "oq") == 1
    assert "not an empty folder" in capsys.readouterr().err


@pytest.mark.parametrize(("options", "named"), [(["--target", "oQ2"], "oQ2"), (["--calibration", "/nowhere"], "/nowhere")])
def test_wrong_options(
    options: list[str], named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, str(DOCUMENT), str(tmp_path / "out"), *options) == 1
    assert named in capsys.readouterr().err


def test_a_size_is_never_exceeded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, str(DOCUMENT), str(tmp_path / "out"), "--size-gb", "0.0002", "--method", "oq") == 0
    size = summarise(tmp_path / "out", load_config(tmp_path / "out").quantization).size
    assert 190_000 < size <= 200_000
