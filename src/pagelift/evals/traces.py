"""What is kept of a model that was shown a true answer."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pagelift.core import PageliftError
from pagelift.core.files import write_atomic


@dataclass(frozen=True, slots=True)
class Trace:
    """A model on a true answer. hidden: (n, hidden), of the rows before chosen tokens. targets: (n,) these tokens. kinds: (n,).

    prompts: digests of what was shown before them. cut: the grammar does not admit all of the answer. fault: why there is nothing.
    """

    hidden: npt.NDArray[np.float32]
    targets: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.uint8]
    prompts: tuple[str, ...] = ()
    cut: bool = False
    fault: str = ""


def no_trace(fault: str) -> Trace:
    return Trace(np.empty((0, 1), np.float32), np.empty(0, np.int64), np.empty(0, np.uint8), fault=fault)


def keep_trace(file: Path, trace: Trace) -> None:
    arrays = io.BytesIO()
    np.savez(
        arrays,
        hidden=trace.hidden,
        targets=trace.targets,
        kinds=trace.kinds,
        prompts=np.array(trace.prompts, np.str_),
        cut=np.array(trace.cut),
        fault=np.array(trace.fault),
    )
    write_atomic(file, arrays.getvalue())


def load_trace(file: Path) -> Trace:
    with np.load(file) as kept:
        prompts, cut, fault = tuple(kept["prompts"].tolist()), bool(kept["cut"]), str(kept["fault"])
        return Trace(kept["hidden"], kept["targets"], kept["kinds"], prompts, cut, fault)


def said(error: PageliftError) -> str:
    """An error as a line of text."""
    return f"{type(error).__name__}: {error}"
