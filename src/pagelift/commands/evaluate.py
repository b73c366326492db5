"""`pagelift eval`: an engine over a folder of documents with known values."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from pagelift.commands import ExitCode, say
from pagelift.core.files import write_atomic
from pagelift.evals import report
from pagelift.evals.cases import load_cases
from pagelift.evals.runner import Outcome, Run, run_cases


@dataclass(frozen=True, slots=True)
class Selection:
    """What to run. only, limit: as for `load_cases`. jobs: processes."""

    folder: Path
    only: tuple[str, ...] = ()
    limit: int | None = None
    jobs: int = 1


@dataclass(frozen=True, slots=True)
class Output:
    """What to show and write besides the table. wrong: how many mistakes to list."""

    wrong: int = 0
    fields: bool = False
    json_file: Path | None = None
    predictions: Path | None = None


def run(selection: Selection, how: Run, output: Output) -> ExitCode:
    """Run the cases and print what came out. Raises ConfigError, EngineError, SchemaError before or at the first case."""
    cases = load_cases(selection.folder, selection.only, selection.limit)
    start = time.perf_counter()
    outcomes = []
    watched = sys.stderr.isatty()
    for outcome in run_cases(cases, how, selection.jobs):
        outcomes.append(outcome)
        if outcome.error:
            say(f"error: {outcome.case.id}: {outcome.error}")
        if output.predictions is not None and not outcome.error:
            write_atomic(output.predictions / f"{outcome.case.id}.json", json.dumps(outcome.data, ensure_ascii=False, indent=1) + "\n")
        if watched:
            sys.stderr.write(f"\r{len(outcomes)} of {len(cases)} documents ")
            sys.stderr.flush()
    wall_s = time.perf_counter() - start
    if watched:
        say("")
    sys.stdout.write(_text(outcomes, how, output, wall_s) + "\n")
    if output.json_file is not None:
        write_atomic(output.json_file, json.dumps(report.to_dict(outcomes, wall_s), ensure_ascii=False, indent=1) + "\n")
    failed = sum(bool(outcome.error) for outcome in outcomes)
    if not failed:
        return ExitCode.FINE
    return ExitCode.SOME_FAILED if failed < len(outcomes) else ExitCode.NOTHING_SUCCEEDED


def _text(outcomes: list[Outcome], how: Run, output: Output, wall_s: float) -> str:
    median, p95 = report.page_seconds(outcomes)
    timed = "engine only, words from the cache" if how.cache else "reading and engine"
    speed = f"{1000 * median:.0f} ms per page (median), {1000 * p95:.0f} ms (95th percentile), {timed}"
    named = f"{how.engine}, {how.model.model}" if how.model.model else how.engine
    parts = [report.table(outcomes), f"engine {named}: {speed}; {wall_s:.1f} s in all"]
    if output.fields:
        parts += ["", report.fields_table(outcomes)]
    if output.wrong:
        parts += ["", report.mistakes_list(outcomes, output.wrong)]
    return "\n".join(parts)
