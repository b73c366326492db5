"""`pagelift bench` and the controls of `pagelift compare` on a tiny checkpoint with random weights, from quantizing to the page."""

import json
from pathlib import Path

import pytest

from pagelift import ConfigError
from pagelift.commands import ExitCode, bench
from pagelift.commands.controls import add_controls
from pagelift.evals.comparison import Contender
from pagelift.evals.materials import Generated
from pagelift.quantization.job import Effort

GOLDEN = Path(__file__).parent.parent / "golden"
LEAST = Effort(1, 1, 1, 0, 2)


def asked(work: Path, **given: object) -> bench.Bench:
    return bench.Bench(str(GOLDEN / "document"), work, ("oQ5",), generated=Generated(2), effort=LEAST, **given)  # type: ignore[arg-type]


def test_rows_are_finished_one_by_one_and_written_into_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text("# Benchmarks\n", encoding="utf-8")
    assert bench.run(asked(tmp_path / "work"), page, as_json=True) == ExitCode.FINE
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["variant"] for row in rows] == ["bf16", "oQ5 oq", "oQ5 best"]
    for row in rows[1:]:
        found = row["materials"]["test split"]
        assert found["kl_mean"] > 0
        assert found["bytes"] < rows[0]["materials"]["test split"]["bytes"]
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Benchmarks\n")
    assert "| oQ5 best |" in text
    assert (tmp_path / "benchmarks-document.png").is_file()
    assert not list((tmp_path / "work" / "models").iterdir())  # one variant is on disk at a time

    kept = tmp_path / "work" / "rows.jsonl"
    lines = kept.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 3
    kept.write_text("\n".join([*lines, lines[2][:100]]), encoding="utf-8")  # as if killed while writing
    assert bench.run(asked(tmp_path / "work"), page, as_json=False) == ExitCode.FINE
    assert "| oQ5 best |" in capsys.readouterr().out
    assert page.read_text(encoding="utf-8") == text  # nothing was measured again


def test_what_cannot_be_measured_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="quantized already"):
        bench.run(bench.Bench(str(GOLDEN / "document_mlx"), tmp_path), None, as_json=False)
    with pytest.raises(ConfigError, match="target 'oQ9'"):
        bench.run(bench.Bench(str(GOLDEN / "document"), tmp_path, ("oQ9",)), None, as_json=False)
    with pytest.raises(ConfigError, match="bytes of method best"):
        bench.run(asked(tmp_path, methods=("oq",), controls=True), None, as_json=False)


def test_controls_are_no_larger_than_what_they_control(tmp_path: Path) -> None:
    entered = [Contender("bf16", str(GOLDEN / "document")), Contender("mlx", str(GOLDEN / "document_mlx"))]
    every = add_controls(entered, tmp_path, LEAST)
    assert [one.name for one in every] == ["bf16", "mlx", "uniform at mlx", "oq at mlx", "random at mlx"]
    assert [one.control_of for one in every[2:]] == [("mlx", "uniform"), ("mlx", "oq"), ("mlx", "random")]
    sizes = [sum(file.stat().st_size for file in Path(one.model).glob("*.safetensors")) for one in every[1:]]
    assert all(0.8 * sizes[0] < size <= 1.05 * sizes[0] for size in sizes)
    stamps = [(Path(one.model) / "config.json").stat().st_mtime_ns for one in every]
    again = add_controls(entered, tmp_path, LEAST)
    assert [(Path(one.model) / "config.json").stat().st_mtime_ns for one in again] == stamps
    with pytest.raises(ConfigError, match="16-bit checkpoint first"):
        add_controls([*reversed(entered)], tmp_path, LEAST)
