"""Tiles on disk: only on request, the same bits, and no file that is damaged, foreign or unfinished is ever used."""

from __future__ import annotations

import logging
import mmap
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pagelift.backends import Ragged, open_backend
from pagelift.models import Step, open_model, text_positions
from pagelift.runtime import RuntimeSettings, load_model

cpu = pytest.importorskip("pagelift.backends.cpu")
tile_cache = pytest.importorskip("pagelift.backends.cpu.tile_cache")
DOCUMENT = Path(__file__).parent.parent / "golden" / "document_mlx"
LOAD = "import sys, pathlib; from pagelift.runtime import *; settings = RuntimeSettings(tile_cache=pathlib.Path(sys.argv[2]))\n"
LOAD += "load_model(sys.argv[1], 'cpu', settings)"


def rows(folder: Path | None, level: str | None = None, checkpoint: Path = DOCUMENT) -> np.ndarray:
    """Hidden rows and logits of a prompt by a model that was loaded with tiles in the folder."""
    model = open_model(checkpoint, cpu.CpuBackend(2, level), folder)
    tokens = np.arange(1, 30)
    hidden = model.forward(Step(tokens, text_positions(0, 29), Ragged.of([(model.new_cache(), 29, False)])))
    return np.concatenate([hidden.ravel(), model.logits(hidden, np.array([3, 28])).ravel()])


def made(folder: Path) -> Path:
    """The file that is made for the checkpoint."""
    rows(folder)
    (file,) = folder.iterdir()
    return file


def table_of(folder: Path) -> dict[str, Any]:
    """The table of the only file in the folder."""
    with next(folder.iterdir()).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapping:
        return tile_cache.read_table(mapping)[0]


def test_results_are_the_same_bits_with_and_without_and_at_every_level(tmp_path: Path) -> None:
    for level in cpu.supported_levels():
        expected = rows(None, level)
        assert np.array_equal(rows(tmp_path, level), expected)
        assert np.array_equal(rows(tmp_path, level), expected)
    assert len(list(tmp_path.iterdir())) == len(cpu.supported_levels())
    assert all(file.suffix == ".tiles" for file in tmp_path.iterdir())


def test_what_is_there_is_used_and_not_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = made(tmp_path)
    content, inode = file.read_bytes(), file.stat().st_ino
    taken = []
    load = tile_cache.TileCache.load
    monkeypatch.setattr(tile_cache.TileCache, "load", lambda *given: taken.append(load(*given)) or taken[-1])
    rows(tmp_path)
    assert sum(taken) == len(table_of(tmp_path)["matrices"]) > 5
    assert (file.stat().st_ino, file.read_bytes()) == (inode, content)


def test_nothing_is_written_unless_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tile_cache.TileCache, "__init__", lambda *_: pytest.fail("tiles are kept without a request"))
    load_model(DOCUMENT, "cpu")
    assert not list(tmp_path.iterdir())


def test_other_backends_keep_nothing(tmp_path: Path) -> None:
    for name in ("reference", "cpu-exact"):
        open_model(DOCUMENT, open_backend(name), tmp_path / name)
        assert not (tmp_path / name).exists()


@pytest.mark.parametrize("damage", ["head", "table", "cut", "empty", "text", "longer"])
def test_a_damaged_file_is_warned_of_and_made_again(damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    expected, file = rows(None), made(tmp_path)
    content = bytearray(file.read_bytes())
    place = {"head": 9, "table": len(content) - 20}.get(damage)
    if place is not None:
        content[place] ^= 0xFF
    whole = {"cut": content[:-100], "empty": b"", "text": b"no tiles", "longer": content + b"x"}.get(damage, content)
    file.write_bytes(whole)
    with caplog.at_level(logging.WARNING):
        assert np.array_equal(rows(tmp_path), expected)
    assert str(file) in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        assert np.array_equal(rows(tmp_path), expected)
    assert not caplog.text


def test_a_file_of_another_checkpoint_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Even under the name of the right one; and a checkpoint with other values has another name."""
    other = tmp_path / "other"
    other.mkdir()
    for file in DOCUMENT.iterdir():
        other.joinpath(file.name).write_bytes(file.read_bytes())
    for weights in other.glob("*.safetensors"):
        content = np.fromfile(weights, np.uint8)
        begin = 8 + int(content[:8].view("<u8")[0])
        content[begin::2] ^= 1  # the lowest bit of each bfloat16
        content.tofile(weights)
    expected = rows(None, checkpoint=other)
    own, foreign = made(tmp_path / "a"), tmp_path / "b"
    assert np.array_equal(rows(foreign, checkpoint=other), expected)
    (name,) = foreign.iterdir()
    assert name.name != own.name
    name.write_bytes(own.read_bytes())
    with caplog.at_level(logging.WARNING):
        assert np.array_equal(rows(foreign, checkpoint=other), expected)
    assert "another checkpoint" in caplog.text


def test_a_file_of_another_layout_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    made(tmp_path)
    monkeypatch.setattr(tile_cache, "layout", lambda _: "of a later version")
    with caplog.at_level(logging.WARNING):
        rows(tmp_path)
    assert "another version" in caplog.text


def test_a_disk_without_room_costs_only_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    expected = rows(None)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tile_cache._Writer, "add", full)
    assert np.array_equal(rows(tmp_path), expected)
    monkeypatch.undo()
    monkeypatch.setattr(tile_cache._Writer, "finish", full)
    assert np.array_equal(rows(tmp_path), expected)
    assert caplog.text.count("No space left") == 2
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").touch()
    assert np.array_equal(rows(tmp_path / "file"), expected)


def test_an_error_of_the_checkpoint_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pagelift.weights.reader.WeightReader.finish", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        rows(tmp_path)
    assert not list(tmp_path.iterdir())


def test_two_processes_at_once_and_one_that_is_killed(tmp_path: Path) -> None:
    expected = rows(None)
    slow = "import time; from pagelift.backends.cpu import tile_cache as t; add = t._Writer.add\n"
    slow += "def wait(*given):\n    add(*given); print('x', flush=True); time.sleep(60)\nt._Writer.add = wait\n"
    process = subprocess.Popen([sys.executable, "-c", slow + LOAD, str(DOCUMENT), str(tmp_path)], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline()  # it is in the middle of writing
        (part,) = tmp_path.iterdir()
        assert np.array_equal(rows(tmp_path), expected)
        assert list(tmp_path.iterdir()) == [part]  # the other one writes, so this one did not
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert part.exists()
    assert np.array_equal(rows(tmp_path), expected)
    (file,) = tmp_path.iterdir()
    assert file.suffix == ".tiles"
    assert np.array_equal(rows(tmp_path), expected)


def test_processes_that_start_together_agree(tmp_path: Path) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", LOAD, str(DOCUMENT), str(tmp_path)]) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    (file,) = tmp_path.iterdir()
    assert file.suffix == ".tiles"
    assert np.array_equal(rows(tmp_path), rows(None))


def test_a_model_keeps_its_tiles_when_the_file_is_made_again(tmp_path: Path) -> None:
    file = made(tmp_path)
    model = load_model(DOCUMENT, "cpu", RuntimeSettings(tile_cache=tmp_path))
    expected = model.generate("a").text
    file.unlink()
    made(tmp_path)
    os.utime(file, (time.time(), time.time()))
    assert model.generate("a").text == expected


def with_other_values(folder: Path, seed: int) -> Path:
    """A copy of the checkpoint with other weights."""
    folder.mkdir(exist_ok=True)
    for file in DOCUMENT.iterdir():
        content = np.fromfile(file, np.uint8)
        if file.suffix == ".safetensors":
            content[8 + int(content[:8].view("<u8")[0]) + seed :: 64] ^= 1
        content.tofile(folder / file.name)
    return folder


def test_a_checkpoint_that_is_replaced_takes_its_old_file_along(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    rows(kept, checkpoint=with_other_values(tmp_path / "other", 0))
    rows(kept, checkpoint=with_other_values(tmp_path / "own", 1))
    before = {file.name for file in kept.iterdir()}
    expected = rows(None, checkpoint=with_other_values(tmp_path / "own", 2))
    assert np.array_equal(rows(kept, checkpoint=tmp_path / "own"), expected)
    after = {file.name for file in kept.iterdir()}
    assert len(before) == len(after) == 2
    assert len(before & after) == 1


def test_of_many_files_those_used_last_are_kept_and_others_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile_cache, "KEPT", 2)
    names = []
    for seed in range(3):
        known = set(tmp_path.glob("*.tiles"))
        rows(tmp_path, checkpoint=with_other_values(tmp_path / str(seed), seed))
        names += set(tmp_path.glob("*.tiles")) - known
        if seed == 1:
            (tmp_path / "notes.tiles").write_text("of somebody else")
            (tmp_path / f"{'0' * 24}-avx2.part").touch()  # of a process that is gone
            os.utime(names[1], ns=(0, 0))
            rows(tmp_path, checkpoint=tmp_path / "1")  # used again
            os.utime(names[0], ns=(1, 1))
    assert set(tmp_path.glob("*.tiles")) == {names[1], names[2], tmp_path / "notes.tiles"}
    assert not list(tmp_path.glob("*.part"))
