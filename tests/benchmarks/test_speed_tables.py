"""The model table: which cells are measured, what is kept, and the section it writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

LIMITS = {"bandwidth_gbs": 25.0, "matmul_gflops": 1000.0}


def run(prefill_s: float, decode_s: dict[str, list[float]]) -> dict[str, Any]:
    return {"prefill_s": [prefill_s], "decode_s": decode_s, "peak_bytes": 6e9, "other_cores": 0.01, "load_s": 1.0}


@pytest.fixture
def row() -> dict[str, Any]:
    """The 9B at 4 bits: half of what the bandwidth allows, twice llama.cpp."""
    ours = run(10.0, {"1": [0.4, 0.4, 9.0], "8": [0.8]}) | {"level": "avx512"}
    theirs = run(60.0, {"1": [0.8]}) | {"version": "1.2.3", "prompt": 512}
    return {
        "key": "9b/4/512 tokens",
        "code": "abc",
        "plan": {"prompt": 512},
        "limits": LIMITS,
        "weight_bytes": 6e9,
        "token_bytes": 5e9,
        "prefill_flops": 5e12,
        "runs": {"pagelift": ours, "llama.cpp": theirs},
        "machine": {"processor": "A", "cores": 2, "features": ["avx2"], "memory_gb": 8.0, "system": "Linux x86_64"},
    }


def test_the_section_tells_shares_and_ratios(scripts, row: dict[str, Any]) -> None:
    text = scripts("speed_report").render({row["key"]: row})
    assert "| 9b | 4 | 6.00 | 51.2 | - | - | 2.50 | - | 10.0 | - | 50 % | 50 % | 6.00 |" in text
    assert "| 9b 4 512 tokens | decode x1, tokens/s | 2.50 | llama.cpp | 1.25 | 2.00x |" in text
    assert "| 8 sequences together, of the speed of one | 4x | 4.00x |" in text


def test_only_the_section_between_the_markers_changes(scripts, row: dict[str, Any], tmp_path: Path) -> None:
    report = scripts("speed_report")
    path = tmp_path / "docs.md"
    begin, end = report.markers()
    path.write_text(f"before\n{begin}\nold\n{end}\nafter\n")
    report.write(path, [row])
    text = path.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    report.write(path, [row])
    assert path.read_text() == text


def test_a_file_without_markers_gets_the_section_at_its_end(scripts, tmp_path: Path) -> None:
    report = scripts("speed_report")
    path = tmp_path / "docs.md"
    path.write_text("# Title\n")
    report.write(path, [])
    assert path.read_text().startswith("# Title\n\n" + report.markers()[0])


def test_figures_of_several_machines_have_sections_of_their_own(scripts, row: dict[str, Any], tmp_path: Path) -> None:
    report = scripts("speed_report")
    path = tmp_path / "docs.md"
    report.write(path, [row])
    first = path.read_text()
    report.write(path, [row | {"limits": {"bandwidth_gbs": 50.0, "matmul_gflops": 1.0}}], "another")
    report.write(path, [row | {"limits": {"bandwidth_gbs": 100.0, "matmul_gflops": 1.0}}], "another")
    text = path.read_text()
    assert text.startswith(first)
    assert text.count(report.markers("another")[0]) == 1
    assert "| 12 % |" in text
    assert "| 25 % |" not in text


def test_measured_cells_are_not_measured_again(scripts, row: dict[str, Any], tmp_path: Path) -> None:
    table = scripts("model_table")
    results = table.Results(tmp_path / "out" / "results.jsonl", "abc")
    assert not results.has(row["key"])
    results.add(row)
    assert table.Results(results.path, "abc").has(row["key"])
    assert not table.Results(results.path, "other code").has(row["key"])


def test_the_code_version_is_that_of_kernels_backends_and_models(scripts, tmp_path: Path) -> None:
    table = scripts("model_table")
    for name in ("csrc/a.cpp", "src/pagelift/models/m.py", "src/pagelift/server/s.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("1")
    before = table.code_version(tmp_path)
    (tmp_path / "src/pagelift/server/s.py").write_text("2")
    assert table.code_version(tmp_path) == before
    (tmp_path / "csrc/a.cpp").write_text("2")
    assert table.code_version(tmp_path) != before


def test_cells_cover_every_shape_width_and_length(scripts) -> None:
    table = scripts("model_table")
    keys = [cell.key for cell in table.cells(quick=False)]
    assert len(keys) == len(set(keys))
    wanted = {f"{s}/{b}/{p} tokens" for s in ("9b", "4b", "2b", "0.8b") for b in (4, 5, 6, 8, 16) for p in (512, 2048, 16_384)}
    assert wanted <= set(keys)
    assert {cell.key for cell in table.cells(quick=True)} < set(keys)


def test_cells_end_with_the_time_and_files_are_removed(scripts, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table = scripts("model_table")
    ran: list[str] = []
    monkeypatch.setattr(table, "chosen", lambda *_: {"pagelift": Path()})
    monkeypatch.setattr(table, "measured", lambda cell, *_: ran.append(cell.key) or {"key": cell.key})
    files = table.Files(tmp_path, "python")
    (tmp_path / "0.8b-4").mkdir()
    todo = [table.text("0.8b", 4, 512), table.text("0.8b", 4, 2048), table.text("0.8b", 5, 512)]
    clock = iter([0.0, 1.0, 2.0, 99.0, *[99.0] * 9])
    monkeypatch.setattr(table.time, "monotonic", lambda: next(clock))
    table.run_cells(todo, table.Results(tmp_path / "r.jsonl", "abc"), files, table.Setting(), 50.0)
    assert ran == ["0.8b/4/512 tokens"]
    assert not (tmp_path / "0.8b-4").exists()


def test_rounds_are_put_together(scripts) -> None:
    peers = scripts("peers")
    first, second = run(1.0, {"1": [1.0]}), run(3.0, {"1": [2.0]}) | {"peak_bytes": 7e9}
    merged = peers.merge(peers.merge(None, first), second)
    assert merged["prefill_s"] == [1.0, 3.0]
    assert merged["decode_s"] == {"1": [1.0, 2.0]}
    assert merged["peak_bytes"] == 7e9


def test_a_peer_that_is_absent_is_left_out_with_a_way_to_install_it(scripts, caplog: pytest.LogCaptureFixture) -> None:
    peers = scripts("peers")
    caplog.set_level("WARNING")
    found = peers.chosen(Path("a"), Path("b"), ["llama.cpp"], "false")
    assert found == {"pagelift": Path("a")}
    assert "pip install" in caplog.text


def test_peers_are_measured_in_turn_and_a_failing_one_is_left_out(scripts, monkeypatch: pytest.MonkeyPatch) -> None:
    peers = scripts("peers")
    order: list[str] = []

    def fake(_path: Path, _plan: Any, command: tuple[str, ...]) -> dict[str, Any]:
        order.append(Path(command[-1]).stem)
        if "transformers" in command[-1]:
            raise ValueError("not JSON")
        return run(1.0, {1: [1.0]})

    monkeypatch.setattr(peers.measure, "run", fake)
    files = {"pagelift": Path(), "llama.cpp": Path(), "transformers": Path()}
    found = peers.compare(files, peers.measure.Plan(), peers.Setting(rounds=2))
    assert order == ["measure", "peer_llama", "peer_transformers", "measure", "peer_llama"]
    assert set(found) == {"pagelift", "llama.cpp"}


def test_a_disturbed_run_is_repeated_and_the_calmest_counts(scripts, monkeypatch: pytest.MonkeyPatch) -> None:
    peers = scripts("peers")
    busy = iter([0.9, 0.4, 0.6, 0.05])
    monkeypatch.setattr(peers.measure, "run", lambda *_: run(1.0, {}) | {"other_cores": next(busy)})
    calm = peers.calm_run(Path(), peers.measure.Plan(), (), peers.Setting(tries=3))
    assert calm["other_cores"] == 0.4
    assert peers.calm_run(Path(), peers.measure.Plan(), (), peers.Setting(tries=3))["other_cores"] == 0.05
