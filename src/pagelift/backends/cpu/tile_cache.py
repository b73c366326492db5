"""Tiles of a checkpoint's matrices in a file, which the next start maps instead of making them again. Only where it was asked for.

One file for a checkpoint and a level:
    4,096 bytes   MAGIC, place and length of the table (u64, little-endian), BLAKE2b of the table, zeros
    the tiles of one matrix after the other, each at a multiple of ALIGNMENT
    the table     JSON: {"key", "source": folder of the checkpoint, "matrices": {name of the tensor: [format, place, bytes]}}
The key holds the checkpoint's fingerprint, the level, and what a small matrix becomes in tiles, which changes with their layout.
The file is written under another name, by one process at a time, and gets its own when all of it is on the disk. After that, what
nobody will use is removed: files of the same level of what lay in the checkpoint's folder before, unfinished ones of processes that are
gone, and beyond KEPT files those that were used longest ago.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import mmap
import os
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt

from pagelift.backends.cpu._kernels import Operations, Weight
from pagelift.backends.tensors import BITS

log = logging.getLogger(__name__)
MAGIC = b"PLTILES1"
HEAD = 4096
ALIGNMENT = 1 << 12
KEPT = 8
"""Files of a folder that are kept."""
FILE = re.compile(r"[0-9a-f]{24}-(\w+)\.(tiles|part)")
Format: TypeAlias = list[int | str]
"""Of a matrix: outputs, inputs, type of its floats, bits and group size (both 0 when it is dense)."""
Bytes: TypeAlias = npt.NDArray[np.uint8]


class TileCache:
    """The tiles of one checkpoint in a folder, while it is being loaded. A context manager: what is missing is written at its end.

    fingerprint, source: of the checkpoint, and its folder. A file that is damaged or of something else is not used, and written again;
    an error of the disk only costs the file. Both are warned of.
    """

    def __init__(self, folder: Path, fingerprint: str, source: Path, run: Operations) -> None:
        self._source = str(source.resolve())
        self._key = f"{fingerprint}/{run.level}/{layout(run)}"
        self._path = folder / f"{fingerprint[:24]}-{run.level}.tiles"
        self._found: _Tiles | None = None
        self._writer: _Writer | None = None

    def __enter__(self) -> TileCache:
        try:
            self._found = _Tiles.open(self._path, self._key)
            os.utime(self._path)  # used just now
        except FileNotFoundError:
            log.info("%s is not there yet", self._path)
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning("%s is not used and will be made again: %s", self._path, error)
        try:
            self._writer = _Writer.begin(self._path) if self._found is None else None
        except OSError as error:
            log.warning("%s cannot be written: %s", self._path, error)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        writer, self._writer = self._writer, None
        if writer is None:
            return
        try:
            if kind is None and writer.matrices:
                writer.finish(self._path, {"key": self._key, "source": self._source, "matrices": writer.matrices})
                tidy(self._path, self._source)
        except OSError as error:
            log.warning("%s cannot be written: %s", self._path, error)
        finally:
            writer.close()

    def load(self, name: str, form: Format, weight: Weight) -> bool:
        """Give a matrix its tiles from the file. Returns whether they are there."""
        tiles = self._found.tiles(name, form) if self._found is not None else None
        if tiles is None:
            return False
        weight.take_tiles(tiles)
        return True

    def keep(self, name: str, form: Format, weight: Weight) -> None:
        """Write the tiles that a matrix has got."""
        tiles = weight.tiles
        if self._writer is None or not name or tiles is None:
            return
        try:
            self._writer.add(name, form, tiles)
        except OSError as error:
            log.warning("%s cannot be written: %s", self._path, error)
            self._writer.close()
            self._writer = None


def layout(run: Operations) -> str:
    """What tells layouts of tiles apart: a digest of small matrices of every kind in tiles."""
    digest = blake2b(digest_size=8)
    for bits in (0, *BITS):
        group = 128
        codes = (np.arange(17 * group * (bits or 16) // 8) * 167 % 251).astype(np.uint8)
        floats = (np.arange(17 * 2) % 251).astype(np.uint8)
        weight = (
            Weight.packed((17, group, bits, group), "bf16", codes, floats, floats, None)
            if bits
            else Weight.dense(17, group, "bf16", codes, None)
        )
        run.tile(weight)
        digest.update(b"-" if weight.tiles is None else weight.tiles.tobytes())
    return digest.hexdigest()


def tidy(path: Path, source: str) -> None:
    """Remove what nobody will use from the folder of a file that has just been written for the checkpoint in `source`.

    Other files are left alone. Whoever has mapped a file that is removed keeps it. Raises OSError.
    """
    level, others = path.name.rpartition("-")[2], []
    for file in path.parent.iterdir():
        if file == path or not FILE.fullmatch(file.name):
            continue
        if file.suffix == ".part":
            _remove_unless_locked(file)
        elif file.name.endswith(f"-{level}") and _source_of(file) == source:
            log.info("%s is removed: its checkpoint has been replaced", file)
            file.unlink(missing_ok=True)
        else:
            others.append((file.stat().st_mtime_ns, file))
    for _, file in sorted(others, reverse=True)[KEPT - 1 :]:
        log.info("%s is removed: %d others were used since", file, KEPT)
        file.unlink(missing_ok=True)


def _remove_unless_locked(part: Path) -> None:
    with part.open("rb") as file, contextlib.suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        part.unlink(missing_ok=True)


def _source_of(path: Path) -> str | None:
    """The folder whose checkpoint a file was made of, None for a damaged file."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapping:
            return str(read_table(mapping)[0].get("source"))
    except ValueError:
        return None


def read_table(mapping: mmap.mmap) -> tuple[dict[str, Any], int]:
    """The table of a file, and where it begins. Raises ValueError for a file that is damaged."""
    if len(mapping) < HEAD:
        raise ValueError("it is damaged, or no file of tiles")
    magic, place, length, digest = struct.unpack_from("<8sQQ32s", mapping)
    table = mapping[place : place + length]
    if magic != MAGIC or place + length != len(mapping) or blake2b(table, digest_size=32).digest() != digest:
        raise ValueError("it is damaged, or no file of tiles")
    values: dict[str, Any] = json.loads(table)
    return values, place


@dataclass(frozen=True, slots=True)
class _Tiles:
    """A file that was found and is whole."""

    matrices: Mapping[str, tuple[Format, int, int]]
    mapping: mmap.mmap

    @classmethod
    def open(cls, path: Path, key: str) -> _Tiles:
        """Raises ValueError, KeyError or TypeError for a file that is damaged or of something else, OSError."""
        with path.open("rb") as file:
            mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        values, place = read_table(mapping)
        if values["key"] != key:
            raise ValueError("it was made of another checkpoint, or by another version of pagelift")
        for name, (_, begin, size) in values["matrices"].items():
            if begin % ALIGNMENT or begin < HEAD or size < 0 or begin + size > place:
                raise ValueError(f"the tiles of {name} lie outside of it")
        if hasattr(mmap, "MADV_HUGEPAGE"):  # advice only
            mapping.madvise(mmap.MADV_HUGEPAGE)
        return cls(values["matrices"], mapping)

    def tiles(self, name: str, form: Format) -> Bytes | None:
        known, begin, size = self.matrices.get(name, ([], 0, 0))
        return np.frombuffer(self.mapping, np.uint8, size, begin) if known == form else None


@dataclass(slots=True)
class _Writer:
    """The file that is being written, locked as long as it is."""

    part: Path
    file: BinaryIO
    matrices: dict[str, tuple[Format, int, int]] = field(default_factory=dict)

    @classmethod
    def begin(cls, path: Path) -> _Writer | None:
        """Empty the unfinished file of a process that is gone, or make one; None while another process writes it. Raises OSError."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        file = os.fdopen(os.open(part, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not part.exists() or not os.path.samestat(os.fstat(file.fileno()), part.stat()):
                raise BlockingIOError  # the other one has just finished it
        except BlockingIOError:
            log.info("another process writes %s", path)
            file.close()
            return None
        file.truncate(0)
        file.seek(HEAD)
        return cls(part, file)

    def add(self, name: str, form: Format, tiles: Bytes) -> None:
        place = -(-self.file.tell() // ALIGNMENT) * ALIGNMENT
        self.file.seek(place)
        self.file.write(tiles.data)
        self.matrices[name] = form, place, tiles.nbytes

    def finish(self, path: Path, values: Mapping[str, Any]) -> None:
        """Write the table of these values and the head, and give the file its name when all is on the disk."""
        table, place = json.dumps(values).encode(), self.file.tell()
        self.file.write(table)
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.seek(0)
        self.file.write(struct.pack("<8sQQ32s", MAGIC, place, len(table), blake2b(table, digest_size=32).digest()))
        self.file.flush()
        os.fsync(self.file.fileno())
        self.part.replace(path)

    def close(self) -> None:
        """Let the file go, and remove it where it is not finished."""
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(self.file.fileno()), self.part.stat()):
                self.part.unlink()
        with contextlib.suppress(OSError):  # a full disk, once more
            self.file.close()
