"""`pagelift serve`: what its options become; the server itself is tested in tests/server."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pagelift import ConfigError, __version__
from pagelift.cli import app
from pagelift.commands import serve

pytest.importorskip("fastapi")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the command with options and gives what it would serve."""
    jobs: list[serve.Job] = []
    monkeypatch.setattr(serve, "run", lambda job: jobs.append(job) or 0)

    def ask(*options: str) -> serve.Job:
        result = CliRunner().invoke(app, ["serve", *options])
        assert result.exit_code == 0, result.output
        return jobs[-1]

    return ask


def test_every_option_arrives_where_it_belongs(asked: Any, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("key-of-the-file\n\n")
    numbers = {
        "--max-body-mb": 2, "--max-pages": 3, "--max-pixels": 4, "--request-seconds": 5, "--header-seconds": 6, "--stall-seconds": 7,
        "--drain-seconds": 8, "--running": 9, "--waiting": 10, "--job-workers": 11, "--keep-days": 12, "--port": 13,
    }  # fmt: skip
    more = ["--api-key", "key-of-the-line", "--api-key-file", str(keys), "--allow-host", "a.example", "--cors-origin", "https://b.example"]
    more += [
        "--allow-urls",
        "--allow-folder",
        str(tmp_path),
        "--jobs-file",
        "j",
        "--schema-folder",
        "s",
        "--alias",
        "lift",
        "--host",
        "0.0.0.0",
    ]
    settings, address = serve.make_settings(asked(*[str(part) for pair in numbers.items() for part in pair], *more))
    limits, jobs, access = settings.limits, settings.jobs, settings.access
    assert (limits.body_bytes, limits.document.file_bytes, limits.pages, limits.document.pages) == (2 << 20, 2 << 20, 3, 3)
    assert (limits.document.page_pixels, limits.request_seconds, limits.header_seconds, limits.stall_seconds) == (4, 5, 6, 7)
    assert (limits.drain_seconds, limits.running, limits.waiting) == (8, 9, 10)
    assert limits.held_bytes > 1 << 28
    assert (jobs.file, jobs.workers, jobs.keep_seconds) == (Path("j"), 11, 12 * 86_400)
    assert (access.api_keys, access.hosts, access.cors_origins) == (
        ("key-of-the-line", "key-of-the-file"),
        ("a.example",),
        ("https://b.example",),
    )
    assert (access.urls, access.folders) == (True, (tmp_path,))
    assert (settings.schema_folder, settings.aliases, settings.version) == (Path("s"), ("lift",), __version__)
    assert (address.host, address.port) == ("0.0.0.0", 13)


def test_a_local_server_answers_for_its_own_names_alone(asked: Any) -> None:
    settings, address = serve.make_settings(asked())
    assert address.local
    assert "localhost" in settings.access.hosts
    assert settings.jobs.file
    assert settings.jobs.file.name == "jobs.sqlite"
    assert not serve.make_settings(asked("--host", "0.0.0.0"))[0].access.hosts


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--api-key", "short"], "at least 8"),
        (["--api-key-file", "/nowhere"], "cannot be read"),
        (["--allow-folder", "/nowhere"], "there is no folder"),
        (["--tls-key", "/nowhere"], "needs a certificate"),
        (["--tls-key", "/nowhere", "--tls-certificate", "/nowhere"], "there is no TLS file"),
    ],
)
def test_wrong_settings_are_told_before_anything_is_loaded(asked: Any, options: list[str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        serve.make_settings(asked(*options))


def test_without_the_extra_the_command_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "uvicorn" else find(name))
    with pytest.raises(ConfigError, match=r"needs uvicorn; install them with: pip install 'pagelift\[server\]'"):
        serve.check_installed()


def test_the_built_in_engine_is_always_there() -> None:
    assert [engine.name for engine in serve.load_engines("layout", None)] == ["layout"]
