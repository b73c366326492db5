"""`pagelift quantize`: a checkpoint in fewer bits, measured on documents."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from pagelift.backends import open_backend
from pagelift.commands import ExitCode, say
from pagelift.quantization.card import shell_command, write_card
from pagelift.quantization.job import Job, finish, quantize
from pagelift.quantization.picture import draw

FIRST_ESTIMATE_S = 20.0
"""After so many seconds of a stage, the time that it will take is told once; bars alone say nothing in a log file."""


def run(job: Job, backend: str = "auto", plot: Path | None = None, arguments: Sequence[str] = ()) -> ExitCode:
    """Quantize, then write card and picture. backend: what runs the model. Raises WeightsError, ConfigError, DocumentError."""
    start = time.perf_counter()
    try:
        with StageBar() as bar:
            result = quantize(job, open_backend("cpu-exact" if backend == "auto" else backend), bar)
    except KeyboardInterrupt:
        say(f"interrupted; the same command goes on with {job.out}")
        return ExitCode.INTERRUPTED
    write_card(job, result, shell_command(arguments or sys.argv))
    if plot:
        draw(result.source.sizes, result.plan.allocation, plot)
    finish(job)
    worth = result.source.sizes.bits_of(result.size)
    say(
        f"{job.out}: {result.size / 1e6:,.1f} MB, {result.text_bits:.3f} bits per weight without the vision tower"
        f" ({worth:.3f} with the vision tower counted in 16 bits), {time.perf_counter() - start:,.0f} s"
    )
    tokens = [value for document in result.divergences for value in document]
    if tokens:
        say(f"mean divergence from the original: {sum(tokens) / len(tokens):.5f} nats over {len(tokens)} tokens of held-out answers")
    return ExitCode.FINE


class StageBar:
    """A progress bar with the time left for each stage, and once the time that a stage will take as a line of text."""

    def __init__(self) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=Console(stderr=True))
        self._task: TaskID | None = None
        self._name, self._start, self._told = "", 0.0, True
        self._total = self._done = 0.0

    def __enter__(self) -> StageBar:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bar.stop()

    def stage(self, name: str, work: float) -> None:
        if self._task is not None:
            self._bar.update(self._task, completed=self._total)
        self._task = self._bar.add_task(name, total=work)
        self._name, self._start, self._told = name, time.perf_counter(), False
        self._total, self._done = work, 0.0

    def advance(self, work: float) -> None:
        self._done += work
        if self._task is not None:
            self._bar.advance(self._task, work)
        spent = time.perf_counter() - self._start
        if not self._told and spent > FIRST_ESTIMATE_S and self._done:
            self._told = True
            self._bar.console.print(f"{self._name}: about {_duration(spent * self._total / self._done)} in all")


def _duration(seconds: float) -> str:
    hours, rest = divmod(round(seconds), 3600)
    return f"{hours} h {rest // 60} min" if hours else f"{rest // 60} min" if rest >= 60 else f"{rest} s"
