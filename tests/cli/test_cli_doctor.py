"""`pagelift doctor`: what it reports agrees with what runs."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from pagelift.backends import installed_backends
from pagelift.cli import app

RUNNER = CliRunner()


def test_json_tells_what_is_installed_and_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGELIFT_CPU_LEVEL", "portable")
    report = json.loads(RUNNER.invoke(app, ["doctor", "--json", "--no-measure"]).stdout)
    assert report["backends"] == installed_backends()
    assert report["processors"] >= 1
    if "cpu" in report["backends"]:
        assert report["kernels"]["level"] == "portable"
        assert report["kernels"]["levels"][0] == "portable"
        assert report["kernels"]["bandwidth_gbs"] is None


def test_measured_speeds_are_possible() -> None:
    pytest.importorskip("pagelift.backends.cpu")
    report = json.loads(RUNNER.invoke(app, ["doctor", "--json"]).stdout)
    assert 0.1 < report["kernels"]["bandwidth_gbs"] < 10_000
    speeds = report["kernels"]["matmul_gflops"]
    assert speeds["f32"] > 0.1
    assert speeds["int8"] > speeds["f32"]


def test_what_is_missing_comes_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    from pagelift.commands import doctor

    monkeypatch.setattr(doctor, "installed_backends", lambda: ["reference"])
    monkeypatch.setattr(doctor, "find_spec", lambda module: None if module == "openai" else object())
    output = RUNNER.invoke(app, ["doctor"]).stdout
    assert "missing" in output
    assert "C++ compiler" in output
    assert "pip install 'pagelift[remote]'" in output
