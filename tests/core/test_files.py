"""Files appear whole or not at all."""

from pathlib import Path

import pytest

from pagelift import ConfigError
from pagelift.core.files import write_atomic


def test_new_folders_are_made_and_old_content_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b.txt"
    write_atomic(target, "ä")
    write_atomic(target, b"x")
    assert target.read_bytes() == b"x"
    assert [p.name for p in target.parent.iterdir()] == ["b.txt"]


def test_half_surrogates_become_escapes(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a", '"\udc80"')
    assert (tmp_path / "a").read_text() == '"\\udc80"'


def test_what_cannot_be_written_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigError, match="folder: it cannot be written"):
        write_atomic(tmp_path / "folder", "x")
    (tmp_path / "file").write_text("old")
    with pytest.raises(ConfigError, match="file"):
        write_atomic(tmp_path / "file" / "inner", "x")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder"]
    assert (tmp_path / "file").read_text() == "old"
