"""`pagelift extract` from the outside: streams, formats, files, exit codes."""

import contextlib
import csv
import io
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from pagelift.cli import main
from pagelift.commands.extract import read_password
from pagelift.core import Box, Field, Proposal
from pagelift.extract import ENGINES, ExtractOptions, ReadablePage
from pagelift.schema import Schema

SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "rows": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "number"}}}},
    },
}
COMMAND = [sys.executable, "-c", "from pagelift.cli import main; main()"]


class FirstWords:
    """Takes the first line of words as title and every number as a row."""

    name = "first-words"

    def extract(self, pages: Iterable[ReadablePage], schema: Schema, options: ExtractOptions) -> Proposal:  # noqa: ARG002
        words = [word for page in pages for word in page.content.words]
        title = " ".join(w.text for w in words if not w.text.isdigit()) or None
        rows = [{"n": int(w.text)} for w in words if w.text.isdigit()]
        return Proposal({"title": title, "rows": rows}, {"/title": Field("/title", title, "found", title, 1, Box(40, 40, 90, 60))})


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENGINES, "first-words", FirstWords)


@pytest.fixture
def folder(tmp_path: Path, pdf: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with two documents of the same name, a broken one, and files that are none."""
    for name, content in {
        "in/a.pdf": pdf(["Alpha", "1", "2"]),
        "in/deep/a.PDF": pdf(["Beta"]),
        "in/broken.pdf": b"%PDF-1.7 and then nothing",
        "in/notes.txt": b"not a document",
        "in/.hidden.pdf": pdf(["Hidden"]),
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Result:
    def __init__(self, code: Any, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    def call(*arguments: str, schema: Any = SCHEMA, engine: str = "first-words") -> Result:
        given = [] if schema is None else ["--schema", json.dumps(schema)]
        monkeypatch.setattr(sys, "argv", ["pagelift", "extract", *arguments, *given, "--engine", engine])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return Result(ended.value.code, captured.out, captured.err)

    return call


@pytest.mark.usefixtures("folder")
def test_one_document_is_one_indented_object(run: Callable[..., Result]) -> None:
    result = run("in/a.pdf")
    value = json.loads(result.out)
    assert result.code == 0
    assert value == {"title": "Alpha", "rows": [{"n": 1}, {"n": 2}]}
    assert result.out.startswith("{\n")
    assert result.err == ""
    assert json.loads(run("in/a.pdf", "--evidence").out)["evidence"]["/title"]["box"] == [40, 40, 90, 60]
    assert run("in/a.pdf", "--format", "jsonl").out.count("\n") == 1


@pytest.mark.usefixtures("folder")
def test_folders_become_lines_in_order_and_one_bad_file_does_not_stop_the_rest(run: Callable[..., Result]) -> None:
    result = run("in")
    lines = [json.loads(line) for line in result.out.splitlines()]
    assert [line["source"] for line in lines] == ["in/a.pdf", "in/broken.pdf", "in/deep/a.PDF"]
    assert lines[1]["error"]["type"] == "CorruptDocument"
    assert "in/broken.pdf" in lines[1]["error"]["message"]
    assert "in/broken.pdf" in result.err
    assert result.code == 4
    one, three = (run("in", "--jobs", jobs, engine="layout") for jobs in "13")
    assert [json.loads(line)["source"] for line in three.out.splitlines()] == [line["source"] for line in lines]
    assert (three.code, three.err) == (one.code, one.err)
    assert run("in", "in/a.pdf", "./in/../in").out.count("\n") == 3


@pytest.mark.usefixtures("folder")
def test_several_documents_as_an_array(run: Callable[..., Result]) -> None:
    assert [v["source"] for v in json.loads(run("in", "--format", "json").out)] == ["in/a.pdf", "in/broken.pdf", "in/deep/a.PDF"]


def test_files_in_a_folder_never_overwrite_each_other(folder: Path, run: Callable[..., Result], pdf: Callable[..., bytes]) -> None:
    (folder / "in/deep/a.bin").write_bytes(pdf(["Gamma"]))
    (folder / "in/a.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    result = run("in", "in/deep/a.bin", "--out", "in/out", "--annotate", "in/out/pictures")
    assert (result.out, result.code) == ("", 4)
    written = {str(p.relative_to(folder / "in/out")) for p in (folder / "in/out").rglob("*") if p.is_file()}
    assert written == {
        "a.pdf.json", "deep/a.json", "deep/a.bin.json",
        "pictures/a.pdf-page-1.png", "pictures/deep/a-page-1.png", "pictures/deep/a.bin-page-1.png",
    }  # fmt: skip
    assert json.loads((folder / "in/out/deep/a.json").read_text())["title"] == "Beta"
    assert run("in", "--out", "in/out", "--annotate", "in/out/pictures").code == 4  # does not read its own output
    assert not list((folder / "in/out").rglob("*.part"))
    (folder / "in/a.pdf.png").write_bytes(pdf(["Delta"]))  # without its suffix it would be called what a.pdf is called
    run("in", "--out", "again")
    assert {p.name for p in (folder / "again").iterdir() if p.is_file()} == {"a.pdf.json", "a.pdf.png.json"}


def test_a_file_that_cannot_be_written_does_not_stop_the_rest(folder: Path, run: Callable[..., Result], pdf: Callable[..., bytes]) -> None:
    long = "n" * 251 + ".pdf"  # a name that just fits, until a suffix is added
    (folder / "in" / long).write_bytes(pdf(["Long"]))
    (folder / "in/z.pdf").write_bytes(pdf(["Last"]))
    result = run("in", "--out", "out", "--annotate", "pictures")
    assert result.code == 4
    assert {p.name for p in (folder / "out").rglob("*.json")} == {"a.json", "z.json"}
    assert long.removesuffix(".pdf") + ".json: it cannot be written" in result.err
    assert "pictures are missing" in result.err


@pytest.mark.usefixtures("folder")
def test_csv(run: Callable[..., Result]) -> None:
    rows = list(csv.reader(io.StringIO(run("in", "--format", "csv").out)))
    assert rows[0] == ["source", "title", "rows.n", "error"]
    assert rows[1:3] == [["in/a.pdf", "Alpha", "1", ""], ["in/a.pdf", "Alpha", "2", ""]]
    assert rows[3][:3] == ["in/broken.pdf", "", ""]
    assert rows[3][3].startswith("CorruptDocument")
    assert rows[4] == ["in/deep/a.PDF", "Beta", "", ""]
    assert run("in", "--format", "csv", "--evidence").code == 1


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["in/broken.pdf"], 2, "in/broken.pdf"),
        (["missing.pdf"], 2, "missing.pdf"),
        (["in/notes.txt"], 2, "in/notes.txt"),
        (["in/a.pdf", "--pages", "7"], 2, "page 7"),
        (["in/a.pdf", "--max-pages", "1", "--max-file-mb", "0.001"], 2, "raise --max-file-mb"),
        (["in/a.pdf", "--pages", "x"], 1, "'x'"),
        (["in/a.pdf", "--format", "xml"], 1, "xml"),
        (["in/a.pdf", "--no-such-option"], 1, "--no-such-option"),
        (["in/a.pdf", "--password", "a", "--password-file", "b"], 1, "--password-file"),
        (["in/a.pdf", "--password-file", "missing"], 1, "missing"),
        (["in/a.pdf", "--out", "in/notes.txt"], 1, "notes.txt"),
        (["in/a.pdf", "--annotate", "in/notes.txt/x"], 1, "notes.txt"),
        (["in/a.pdf", "--pages", ""], 1, "1-3,7"),
        ([], 1, "INPUT"),
    ],
)
def test_errors_name_what_is_wrong(arguments: list[str], code: int, words: str, run: Callable[..., Result]) -> None:
    result = run(*arguments)
    assert (result.code, result.out) == (code, "")
    assert words in result.err
    assert "Traceback" not in result.err


@pytest.mark.usefixtures("folder")
def test_schema_and_engine_are_checked_first(run: Callable[..., Result]) -> None:
    assert run("missing.pdf", schema={"type": "nothing"}).code == 3
    assert run("missing.pdf", engine="magic").code == 1
    assert run("in/a.pdf", schema=None).code == 1


def test_an_empty_folder_is_no_success(folder: Path, run: Callable[..., Result]) -> None:
    (folder / "empty").mkdir()
    result = run("empty")
    assert (result.code, result.out) == (2, "")
    assert "no documents in empty" in result.err


def test_annotated_pages_are_announced(folder: Path, run: Callable[..., Result]) -> None:
    result = run("in/a.pdf", "--annotate", "pictures")
    assert (folder / "pictures/a-page-1.png").read_bytes().startswith(b"\x89PNG")
    assert "pictures/a-page-1.png" in result.err


def test_standard_input(folder: Path, run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO((folder / "in/a.pdf").read_bytes())

    monkeypatch.setattr(sys, "stdin", Stdin())
    lines = run("in/deep/a.PDF", "-", "--jobs", "2").out.splitlines()
    assert [json.loads(line)["data"]["title"] for line in lines] == ["Beta", "Alpha"]


def test_results_are_utf8_whatever_the_locale(folder: Path, pdf: Callable[..., bytes]) -> None:
    (folder / "Übung.pdf").write_bytes(pdf(["Größe 5"]))
    done = subprocess.run(
        [*COMMAND, "extract", "Übung.pdf", "in/a.pdf", "--schema", json.dumps(SCHEMA)],
        capture_output=True, check=True, env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert json.loads(done.stdout.decode("utf-8").splitlines()[0])["source"] == "Übung.pdf"


@pytest.mark.usefixtures("folder")
def test_a_closed_pipe_ends_quietly() -> None:
    started = subprocess.Popen([*COMMAND, "extract", "in", "--schema", json.dumps(SCHEMA)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert started.stdout
    assert started.stderr
    started.stdout.close()
    errors = started.stderr.read().decode()
    started.stderr.close()
    assert started.wait(timeout=30) == 141
    assert "Traceback" not in errors
    assert "BrokenPipe" not in errors


@pytest.mark.usefixtures("folder")
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device")
def test_a_full_disk_is_an_error_not_a_crash() -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "pagelift", "extract", "in/a.pdf", "--schema", json.dumps(SCHEMA)]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: the results cannot be written")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="process groups are POSIX only")
def test_a_killed_command_leaves_no_process_behind(folder: Path, pdf: Callable[..., bytes]) -> None:
    for k in range(400):
        (folder / f"in/n{k:03}.pdf").write_bytes(pdf([f"Number {k}"]))
    command = [*COMMAND, "extract", "in", "--schema", json.dumps(SCHEMA), "--jobs", "2"]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
    assert started.stdout
    assert started.stdout.readline()
    started.kill()
    started.stdout.close()
    started.wait(timeout=30)
    deadline = time.monotonic() + 20
    with contextlib.suppress(ProcessLookupError):
        while time.monotonic() < deadline:
            os.killpg(started.pid, 0)
            time.sleep(0.05)
        os.killpg(started.pid, signal.SIGKILL)
        pytest.fail("processes of the killed command still run")


@pytest.mark.usefixtures("folder")
def test_the_password_file_may_have_a_byte_order_mark() -> None:
    Path("password").write_bytes("\ufeffgeheim\r\nmore".encode())
    assert read_password(Path("password")) == "geheim"


def test_interrupting_leaves_what_is_done(folder: Path, pdf: Callable[..., bytes]) -> None:
    for k in range(400):
        (folder / f"in/n{k:03}.pdf").write_bytes(pdf([f"Number {k}"]))
    command = [*COMMAND, "extract", "in", "--schema", json.dumps(SCHEMA), "--jobs", "2"]
    started = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - background jobs of a shell inherit that it is ignored
    )
    assert started.stdout
    assert started.stderr
    first = started.stdout.readline()
    os.killpg(started.pid, signal.SIGINT)
    begin = time.monotonic()
    rest, errors = started.communicate(timeout=30)
    assert time.monotonic() - begin < 10
    assert started.returncode == 130
    lines = (first + rest).splitlines()
    assert 0 < len(lines) < 400
    assert all("data" in json.loads(line) or "error" in json.loads(line) for line in lines)
    assert b"interrupted after" in errors
    assert b"Traceback" not in errors


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo terminals")
def test_a_terminal_sees_a_progress_bar_and_the_results_stay_clean(folder: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    with (folder / "results").open("wb") as results:
        command = [*COMMAND, "extract", "in", "--schema", json.dumps(SCHEMA)]
        started = subprocess.Popen(command, stdout=results, stderr=theirs, env={**os.environ, "TERM": "xterm"})
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # how the end of a pseudo terminal shows on Linux
            while part := os.read(ours, 4096):
                shown += part
        assert started.wait(timeout=30) == 4
    os.close(ours)
    assert b"documents" in shown
    assert b"3/3" in shown
    assert b"in/broken.pdf" in shown
    assert len([json.loads(line) for line in (folder / "results").read_text().splitlines()]) == 3


@pytest.mark.usefixtures("folder")
def test_losing_a_process_loses_no_document(run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pagelift.commands.extract._start_process", lambda _job: os._exit(1))
    if multiprocessing.get_start_method() != "fork":
        pytest.skip("the processes would not see the fault")
    result = run("in", "--jobs", "2")
    assert [json.loads(line)["source"] for line in result.out.splitlines()] == ["in/a.pdf", "in/broken.pdf", "in/deep/a.PDF"]
    assert result.code == 4
