"""Second moments of what linear layers get: sum of x^T x over all rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pagelift.backends import Array, Backend
from pagelift.backends.tensors import Floats


class Moments:
    """Adds up the second moments of inputs by module; modules that share an input share one matrix.

    wanted: the modules that count; inputs of others are passed over. rows: how many rows were added, by module.
    """

    def __init__(self, backend: Backend, wanted: Sequence[str]) -> None:
        self._backend = backend
        self._wanted = frozenset(wanted)
        self._first: dict[str, str] = {}
        self._sums: dict[str, Floats] = {}
        self._rows: dict[str, int] = {}
        self.active = True

    def listen(self, names: Sequence[str], x: Array) -> None:
        """A `recording.Listener`; does nothing while `active` is off."""
        names = [name for name in names if name in self._wanted]
        if not names or not self.active:
            return
        key = names[0]
        self._first |= dict.fromkeys(names, key)
        rows = self._backend.to_numpy(x).reshape(-1, x.shape[-1])
        product = rows.T @ rows
        if key in self._sums:
            self._sums[key] += product
        else:
            self._sums[key] = product
        self._rows[key] = self._rows.get(key, 0) + len(rows)

    def key(self, module: str) -> str:
        """The same for all modules with one input."""
        return self._first[module]

    def of(self, module: str) -> Floats | None:
        """The mean of x^T x (in, in) of a module, or None when it never got anything. Nothing can be added to it afterwards."""
        key = self._first.get(module)
        if key is None:
            return None
        self._sums[key] /= np.float32(max(1, self._rows[key]))  # in place: these are the largest matrices of all
        self._rows[key] = 1
        return self._sums[key]
