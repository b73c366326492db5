"""Activations of all documents between two parts of a model, in files, so that memory does not grow with the documents."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pagelift.backends.tensors import Floats


class Carried:
    """The rows (T, width) of each document in one file. lengths: T of each document."""

    def __init__(self, path: Path, lengths: Sequence[int], width: int) -> None:
        self.path = path
        self.width = width
        self._starts = np.concatenate([[0], np.cumsum(lengths)]).astype(int)

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, place: int) -> Floats:
        """The rows of a document, read anew."""
        begin, end = int(self._starts[place]), int(self._starts[place + 1])
        with self.path.open("rb") as file:
            file.seek(4 * self.width * begin)
            rows = np.fromfile(file, np.float32, (end - begin) * self.width)
        return rows.reshape(end - begin, self.width)


class CarryWriter:
    """Writes a `Carried` document by document; it has its name only when it is complete."""

    def __init__(self, carried: Carried) -> None:
        self._carried = carried
        self._temporary = carried.path.with_name(f".{carried.path.name}.part")
        self._file = self._temporary.open("wb")

    def add(self, rows: Floats) -> None:
        np.ascontiguousarray(rows, np.float32).tofile(self._file)

    def finish(self) -> Carried:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        os.replace(self._temporary, self._carried.path)
        return self._carried
