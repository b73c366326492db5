"""`pagelift compare`: checkpoints beside each other on the same documents, the first being the reference."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pagelift.commands import ExitCode, say
from pagelift.commands.inputs import find_inputs
from pagelift.core import Budget, ConfigError
from pagelift.core.annotate import as_png
from pagelift.core.files import make_folder, write_atomic
from pagelift.evals.comparison import Material, Running, check_comparable, contenders, measure_all
from pagelift.evals.comparison_tables import plot, render
from pagelift.evals.materials import Generated, folder_material, generated_material, plain_material
from pagelift.evals.standings import Standings, stand
from pagelift.schema import Schema


@dataclass(frozen=True, slots=True)
class Documents:
    """What to compare on. folder: None for documents of the generator. schema: for a folder without true values. only, limit: as for
    `load_cases`."""

    folder: Path | None = None
    schema: str | None = None
    only: tuple[str, ...] = ()
    limit: int | None = None
    generated: Generated = field(default_factory=Generated)


@dataclass(frozen=True, slots=True)
class Output:
    """as_json: JSON on standard output in place of the tables. flips: how many to list for each model."""

    as_json: bool = False
    plot: Path | None = None
    flips: int = 20


@dataclass(frozen=True, slots=True)
class How:
    """work: a folder that keeps measurements, so that the next run goes on with them. controls: make some at the bytes of each model.
    max_tokens: of an answer, which is cut off there. backend, traced: as for `Running`."""

    backend: str = "auto"
    traced: str = ""
    work: Path | None = None
    controls: bool = False
    max_tokens: int | None = None


def run(models: Sequence[str], documents: Documents, how: How, output: Output) -> ExitCode:
    """Compare and print. Raises ConfigError, WeightsError, EngineError, SchemaError."""
    if len(models) < 2:
        raise ConfigError("name two models or more; the first is the reference")
    check_comparable(models)
    entered = contenders(models)
    try:
        with _work_folder(how.work) as folder:
            material = load_material(documents, folder)
            if how.controls:
                from pagelift.commands.controls import add_controls

                entered = add_controls(entered, folder)
            standings = stand(measure_all(entered, material, Running(folder, how.backend, how.traced, budget(how.max_tokens), Told())))
    except KeyboardInterrupt:
        say(f"\ninterrupted{'; the same command goes on' if how.work else '; with --work DIR it could go on'}")
        return ExitCode.INTERRUPTED
    write(standings, output)
    failed = sum(row.score.errors for row in standings.rows)
    every = len(standings.documents) * len(standings.rows)
    return ExitCode.FINE if not failed else ExitCode.SOME_FAILED if failed < every else ExitCode.NOTHING_SUCCEEDED


def budget(max_tokens: int | None) -> Budget:
    """As extraction has it; with a limit, answers are cut off there for good."""
    return Budget() if max_tokens is None else Budget(answer_tokens=max_tokens, follow_ups=0)


def write(standings: Standings, output: Output) -> None:
    """Print the tables or the JSON, and write the plot."""
    if output.as_json:
        sys.stdout.write(json.dumps(standings.to_dict(), ensure_ascii=False, indent=1) + "\n")
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        sys.stdout.write(render(standings, output.flips, width))
    if output.plot is not None:
        write_atomic(output.plot, as_png(plot(standings)))


def load_material(documents: Documents, work: Path) -> Material:
    """The documents that were asked for. Raises ConfigError, SchemaError."""
    if documents.folder is None:
        if documents.schema is not None or documents.only:
            raise ConfigError("--schema and --only are for documents of your own; name their folder with --data")
        return generated_material(documents.generated, work)
    folder = documents.folder
    if not folder.is_dir():
        raise ConfigError(f"{folder} is no folder; give one with documents")
    own = folder / "schema.json"
    if documents.schema is not None or own.is_file():
        paths = [Path(one.source) for one in find_inputs([str(folder)])]
        if not paths:
            raise ConfigError(f"{folder} holds no document: no PDF and no picture")
        schema = Schema.load(own if documents.schema is None else documents.schema)
        return plain_material(paths[: documents.limit], schema, work, truths=documents.schema is None)
    if not (folder / "manifest.jsonl").is_file() and not any(folder.glob("*/schema.json")):
        raise ConfigError(
            f"{folder} has no true values: no manifest.jsonl and no <collection>/schema.json (see docs/cli.md, eval), and no schema.json "
            "of its own; give --schema S to see where models read documents otherwise than the first one"
        )
    return folder_material(folder, documents.only, documents.limit)


@contextlib.contextmanager
def _work_folder(work: Path | None) -> Iterator[Path]:
    if work is not None:
        make_folder(work)
        yield work
        return
    with tempfile.TemporaryDirectory(prefix="pagelift-compare-") as folder:
        yield Path(folder)


class Told:
    """Tells a person at the terminal how far it is; where nobody watches, one line a model."""

    def __init__(self) -> None:
        self._watched = sys.stderr.isatty()
        self._last = ("", 0)

    def __call__(self, name: str, done: int, total: int) -> None:
        if (name, done) == self._last:
            return
        if self._watched:
            sys.stderr.write(f"\r{name}: {done} of {total} documents " + "\n" * (done == total))
            sys.stderr.flush()
        elif done == total:
            say(f"{name}: {total} documents")
        self._last = (name, done)
