"""The Dockerfile and the systemd unit against what is in the repository, since neither runs in the tests."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import click
import pytest
import typer

from pagelift.cli import app
from pagelift.server.health import router

ROOT = Path(__file__).resolve().parent.parent
DOCKERFILE = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
UNIT = re.sub(r"\\\n\s*", "", (ROOT / "packaging/systemd/pagelift.service").read_text(encoding="utf-8"))
SERVE = typer.main.get_command(app).commands["serve"]  # type: ignore[attr-defined]


def lines(instruction: str) -> list[str]:
    return re.findall(rf"^{instruction} (.*)$", DOCKERFILE, re.MULTILINE)


def copied() -> list[str]:
    """What is copied out of the repository."""
    return [source for line in lines("COPY") if not line.startswith("--from") for source in line.split()[:-1]]


def test_everything_that_is_copied_is_in_a_clone() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a clone")
    tracked = {Path(name) for name in listed.stdout.splitlines()}
    known = tracked | {parent for name in tracked for parent in name.parents}
    assert len(copied()) > 4
    assert not [source for source in copied() if Path(source) not in known]
    let_through = {line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line.startswith("!")}
    assert {source.split("/")[0] for source in copied()} <= let_through


def test_everything_that_the_build_needs_is_copied() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = ["pyproject.toml", "CMakeLists.txt", project["project"]["readme"], *project["project"]["license-files"]]
    needed += project["tool"]["scikit-build"]["wheel"]["packages"]
    needed += re.findall(r"csrc/[\w/]+\.cpp", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))
    assert not [name for name in needed if not any(Path(name).is_relative_to(source) for source in copied())]


def test_no_module_is_left_out_of_a_build() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["scikit-build"]
    assert settings["sdist"]["exclude"]
    for pattern in settings["sdist"]["exclude"]:  # of wheels too; without a slash before it, it would hold in every folder
        assert pattern.startswith("/")
        assert not any(f"/{package}".startswith(pattern) for package in settings["wheel"]["packages"])


def test_the_image_runs_one_supported_python_without_rights() -> None:
    images = [line.split()[0] for line in lines("FROM")]
    assert len(set(images)) == 1  # an environment only works where its interpreter is
    found = re.fullmatch(r"python:(3\.\d+)-slim", images[0])
    assert found
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["classifiers"]
    assert f"Programming Language :: Python :: {found[1]}" in classifiers
    user = lines("USER")[-1]
    assert user != "root"
    assert f"--home-dir /data --create-home {user}" in DOCKERFILE
    assert lines("COPY")[-1].startswith("--from=build")  # nothing is written as that user


def test_the_image_is_healthy_when_the_server_is_ready() -> None:
    port = next(parameter.default for parameter in SERVE.params if parameter.name == "port")
    assert lines("EXPOSE") == [str(port)]
    (check,) = lines("HEALTHCHECK")
    address, path = re.findall(r"http://127\.0\.0\.1:(\d+)(/\w+)", check)[0]
    assert int(address) == port
    assert path in {route.path for route in router.routes}  # type: ignore[attr-defined]
    compile(re.findall(r'"-c", "(.*)"\]', check)[0], "HEALTHCHECK", "exec")


@pytest.mark.parametrize("command", [" ".join(json.loads(lines("ENTRYPOINT")[0])), re.findall(r"^ExecStart=(.*)$", UNIT, re.MULTILINE)[0]])
def test_the_commands_that_start_it_are_understood(command: str) -> None:
    program, name, *options = shlex.split(command)
    assert Path(program).name == "pagelift"
    assert name == "serve"
    with click.Context(SERVE, resilient_parsing=True) as context:
        assert not SERVE.make_parser(context).parse_args(args=options)[1]
