"""`pagelift quantize`: a checkpoint in fewer bits, measured on documents."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn

from pagelift.backends import open_backend
from pagelift.commands import ExitCode, say
from pagelift.quantization.card import shell_command, write_card
from pagelift.quantization.job import Job, finish, quantize
from pagelift.quantization.picture import draw
from pagelift.quantization.work import Forecast, Kind, Work, priced

FIRST_ESTIMATE_S = 20.0
"""After so many seconds, the time that is left is told in a line of text, for bars alone say nothing in a log file."""
PATIENCE_S = 300.0
"""So long the first estimate waits until work of each kind was seen."""
TOLD_AGAIN = 3
"""It is told again when so many times as long has passed."""
SILENCE_S = 300.0
"""Where no bar is seen, it is told again after so long at the latest."""


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
    """A progress bar for each stage with the time that is left for it and for the whole job. Now and then both are told as a line of text.

    clock: the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
        )
        self._bar = Progress(*columns, console=Console(stderr=True))
        self._task: TaskID | None = None
        self._name = ""
        self._clock, self._start = clock, clock()
        self._forecast = Forecast(clock=clock)
        self._next_s = FIRST_ESTIMATE_S

    def __enter__(self) -> StageBar:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bar.stop()

    def begin(self, stages: Sequence[tuple[str, Work]]) -> None:
        self._forecast = Forecast(stages, self._clock)

    def stage(self, name: str, work: Work) -> None:
        if self._task is not None:
            self._bar.update(self._task, completed=self._bar.tasks[self._task].total, left="")
        self._forecast.enter(name, work)
        self._task = self._bar.add_task(name, total=priced(work), left="")
        self._name = name

    def advance(self, kind: Kind, amount: float) -> None:
        self._forecast.advance(kind, amount)
        self._show({kind: amount})

    def skip(self, work: Work) -> None:
        self._forecast.skip(work)
        self._show(work)

    def _show(self, work: Work) -> None:
        assert self._task is not None
        stage, job = self._forecast.stage_left, self._forecast.job_left
        left = f"{duration(stage)} left" + (f", {duration(job)} for the whole job" if job > stage else "")
        self._bar.update(self._task, advance=priced(work), left=left)
        spent = self._clock() - self._start
        if spent > self._next_s and (self._forecast.is_founded or spent > PATIENCE_S):
            self._next_s = TOLD_AGAIN * spent
            if not self._bar.console.is_terminal:
                self._next_s = min(self._next_s, spent + SILENCE_S)
            self._bar.console.print(f"{self._name}: about {left}, after {duration(spent)}")


def duration(seconds: float) -> str:
    """Such as 40 s, 12 min, 3 h 5 min."""
    hours, rest = divmod(round(seconds), 3600)
    return f"{hours} h {rest // 60} min" if hours else f"{rest // 60} min" if rest >= 60 else f"{rest} s"
