"""Activations of all documents between two parts of a model, in files, so that memory does not grow with the documents."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from pagelift.backends.tensors import Floats
from pagelift.core.errors import ConfigError


class Carried:
    """The rows (T, width) of each document in one file. lengths: T of each document."""

    def __init__(self, path: Path, lengths: Sequence[int], width: int) -> None:
        self.path = path
        self.width = width
        self._starts = np.concatenate([[0], np.cumsum(lengths)]).astype(int)

    def __len__(self) -> int:
        return len(self._starts) - 1

    @property
    def rows(self) -> int:
        """Of all documents."""
        return int(self._starts[-1])

    def __getitem__(self, place: int) -> Floats:
        """The rows of a document, read anew."""
        begin, end = int(self._starts[place]), int(self._starts[place + 1])
        with self.path.open("rb") as file:
            file.seek(4 * self.width * begin)
            rows = np.fromfile(file, np.float32, (end - begin) * self.width)
        return rows.reshape(end - begin, self.width)


class CarryWriter:
    """Writes a `Carried` document by document; it has its name only when it is complete. Raises ConfigError when it cannot be written."""

    def __init__(self, carried: Carried) -> None:
        self._carried = carried
        self._temporary = carried.path.with_name(f".{carried.path.name}.part")
        with self._errors():
            self._file = self._temporary.open("wb")

    def add(self, rows: Floats) -> None:
        with self._errors():
            self._file.write(np.ascontiguousarray(rows, np.float32).data)

    def finish(self) -> Carried:
        with self._errors():
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            os.replace(self._temporary, self._carried.path)
        return self._carried

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            needed = 4 * self._carried.width * self._carried.rows / 1e9
            raise ConfigError(
                f"{self._carried.path}: activations cannot be written ({error.strerror or error}); files there take {needed:.1f} GB each; "
                "free some space, or take fewer documents"
            ) from error
