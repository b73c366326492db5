"""`pagelift extract`: many documents through one extractor, each outcome handed on as soon as its turn comes."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import re
import signal
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TextIO, TypeAlias

from pagelift.commands import ExitCode, say
from pagelift.commands.inputs import STDIN, Input, find_inputs, is_batch
from pagelift.commands.interrupts import Interrupts
from pagelift.commands.sinks import ArraySink, CsvSink, Failure, FolderSink, Format, JsonSink, LinesSink, Sink
from pagelift.commands.tables import Table
from pagelift.core import Budget, ConfigError, DocumentError, Extraction, InvalidOutput, Limits, PageliftError
from pagelift.core.annotate import annotated_pages, as_png
from pagelift.core.files import make_folder, write_atomic
from pagelift.core.processes import end_with_parent
from pagelift.core.threads import side_by_side
from pagelift.documents.open import OcrMode
from pagelift.extract import Extractor, LocalModel, RemoteServer
from pagelift.extract.pages import parse_pages
from pagelift.schema import Schema
from pagelift.schema.schema import Nulls

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Job:
    """Everything that was asked for on the command line. format: None chooses by the inputs. jobs: documents at the same time."""

    inputs: Sequence[str]
    schema: str
    engine: str = "auto"
    pages: str | None = None
    password: str | None = None
    evidence: bool = False
    annotate: Path | None = None
    out: Path | None = None
    format: Format | None = None
    nulls: Nulls = "allowed"
    ocr: OcrMode = "auto"
    strict: bool = False
    jobs: int = 1
    limits: Limits = field(default_factory=Limits)
    model: LocalModel | RemoteServer | None = None
    budget: Budget = field(default_factory=Budget)


ASKING = ("vlm", "remote")
"""Engines that ask a model."""
OPTIONS = {
    "limits.file_bytes": "--max-file-mb",
    "limits.pages": "--max-pages",
    "limits.page_pixels": "--max-pixels",
    "limits.worker_bytes": "--max-memory-mb",
    "limits.open_seconds": "--open-seconds",
    "limits.page_seconds": "--page-seconds",
    "limits.ocr_seconds": "--ocr-seconds",
    "ocr=always": "--ocr always",
}
"""What messages of the library call in Python, as the command calls it."""
_OPTION = re.compile("|".join(map(re.escape, OPTIONS)))


def read_password(file: Path) -> str:
    """The first line of a password file. Raises ConfigError."""
    try:
        return file.read_text(encoding="utf-8-sig").split("\n", 1)[0].rstrip("\r")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file}: the password cannot be read ({error})") from error


@dataclass(slots=True)
class Tally:
    """Documents with and without a result so far."""

    succeeded: int = 0
    failed: int = 0

    def count(self, succeeded: bool) -> None:
        self.succeeded += succeeded
        self.failed += not succeeded


def run(job: Job) -> ExitCode:
    """Extract, write the outcomes, and say in the exit code how it went. Raises SchemaError, ConfigError, EngineError."""
    if job.pages is not None:
        parse_pages(job.pages)
    if job.evidence and job.format == "csv":
        raise ConfigError("--format csv has no room for --evidence; use json or jsonl")
    extractor = _extractor_of(job)
    folders = [folder for folder in (job.out, job.annotate) if folder is not None]
    documents = find_inputs(job.inputs, folders)
    if not documents:
        say(f"no documents in {', '.join(job.inputs)}; folders are searched for PDF, PNG, JPEG, WebP, GIF, BMP and TIFF files")
        return ExitCode.NOTHING_SUCCEEDED
    for folder in folders:
        make_folder(folder)
    tally = Tally()
    try:
        with Interrupts() as interrupts:
            _work(job, extractor, documents, tally, interrupts)
    except BrokenPipeError:
        _drop_output()
        return ExitCode.OUTPUT_CLOSED
    except OSError as error:
        _drop_output()
        say(f"error: the results cannot be written ({error.strerror or error}); write them to another place")
        return ExitCode.NOTHING_SUCCEEDED
    except KeyboardInterrupt:
        say(f"interrupted after {tally.succeeded + tally.failed} of {len(documents)} documents; what was written is complete")
        return ExitCode.INTERRUPTED
    if not tally.failed:
        return ExitCode.FINE
    return ExitCode.SOME_FAILED if tally.succeeded else ExitCode.NOTHING_SUCCEEDED


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains when it flushes at the end


def _work(job: Job, extractor: Extractor, documents: Sequence[Input], tally: Tally, interrupts: Interrupts) -> None:
    assert extractor.schema is not None
    with (
        contextlib.closing(_sink(job, extractor.schema)) as sink,
        contextlib.closing(_outcomes(job, extractor, documents, interrupts)) as outcomes,
        _progress(len(documents), job.out is not None) as advance,
    ):
        for document, (outcome, notes) in zip(documents, outcomes, strict=True):
            try:
                sink.put(document, outcome)
                tally.count(succeeded=isinstance(outcome, Extraction))
            except ConfigError as error:  # the file of one document cannot be written
                tally.count(succeeded=False)
                say(f"error: {error}")
            for note in notes:
                say(note)
            advance()
            interrupts.check()


def _sink(job: Job, schema: Schema) -> Sink:
    def make(stream: TextIO, form: Format) -> Sink:
        if form == "csv":
            return CsvSink(stream, Table(schema.root))
        return JsonSink(stream, job.evidence) if form == "json" else LinesSink(stream, job.evidence)

    if job.out is not None:
        form: Format = job.format or "json"
        return FolderSink(job.out, f".{form}", lambda stream: make(stream, form))
    if is_batch(job.inputs) and job.format == "json":
        return ArraySink(sys.stdout, job.evidence)
    return make(sys.stdout, job.format or ("jsonl" if is_batch(job.inputs) else "json"))


Outcome: TypeAlias = tuple[Extraction | Failure, list[str]]
"""What became of a document, and what to tell the user about it."""


def _outcomes(job: Job, extractor: Extractor, documents: Sequence[Input], interrupts: Interrupts) -> Generator[Outcome, None, None]:
    """The outcome of every document, in order; at most a few more than `jobs` are worked on or waiting to be written."""
    todo = iter(documents)
    several = min(job.jobs, len(documents)) > 1 and not any(document.source == STDIN for document in documents)
    if several and extractor.engine.name in ASKING:
        yield from _threaded_outcomes(job, extractor, todo)
    elif several:
        yield from _parallel_outcomes(job, todo, interrupts)  # leaves documents over only if a process was lost
    for document in todo:
        yield _extract(job, extractor, document)


def _threaded_outcomes(job: Job, extractor: Extractor, todo: Iterator[Input]) -> Generator[Outcome, None, None]:
    """Outcomes from several threads, of engines whose model answers several at the same time: it is in memory once, or elsewhere."""
    yield from side_by_side((partial(_extract, job, extractor, document) for document in todo), job.jobs)


def _parallel_outcomes(job: Job, todo: Iterator[Input], interrupts: Interrupts) -> Generator[Outcome, None, None]:
    """Outcomes from several processes, since engines are bound by the processor."""
    pool = ProcessPoolExecutor(job.jobs, initializer=_start_process, initargs=(job,))
    ahead: deque[Input] = deque()
    futures: deque[Future[Outcome]] = deque()
    try:
        while True:
            for document in islice(todo, 2 * job.jobs - len(ahead)):
                ahead.append(document)  # before the attempt, which fails when a process is lost
                with interrupts.held():  # or a process that is being started would be known to nobody
                    futures.append(pool.submit(_extract_in_process, document))
            if not ahead:
                return
            outcome = futures.popleft().result()
            ahead.popleft()
            yield outcome
    except BrokenProcessPool:
        log.warning("a process of --jobs was lost, perhaps for lack of memory; going on with one")
        extractor = _extractor_of(job)
        for document in ahead:
            yield _extract(job, extractor, document)
    except (GeneratorExit, KeyboardInterrupt):
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)  # its thread must not outlive the pipes of the processes


def _extractor_of(job: Job) -> Extractor:
    return Extractor(
        job.schema, job.engine, limits=job.limits, ocr=job.ocr, nulls=job.nulls, strict=job.strict, model=job.model, budget=job.budget
    )


_process: tuple[Job, Extractor]


def _start_process(job: Job) -> None:
    global _process  # noqa: PLW0603
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process ends this one
    end_with_parent()
    _process = job, _extractor_of(job)


def _extract_in_process(document: Input) -> Outcome:
    return _extract(*_process, document)


def _extract(job: Job, extractor: Extractor, document: Input) -> Outcome:
    try:
        extraction = extractor.extract(document.source, pages=job.pages, password=job.password)
    except PageliftError as error:
        message = _with_options(str(error))
        named = document.source in message or document.source == "-"
        raw = error.raw if isinstance(error, InvalidOutput) else ""
        return Failure(type(error).__name__, message, raw), [f"error: {message}" if named else f"error: {document.source}: {message}"]
    except Exception as error:
        log.exception("%s: unexpected error", document.source)
        message = f"{document.source}: unexpected error: {error}"
        return Failure(type(error).__name__, message), [f"error: {message}"]
    notes = [f"warning: {document.source}: {_with_options(warning)}" for warning in extraction.warnings]
    if job.annotate is not None:
        notes += _annotate(job.annotate, document, extraction)
    return replace(extraction, pictures=None), notes


def _with_options(message: str) -> str:
    return _OPTION.sub(lambda match: OPTIONS[match[0]], message)


def _annotate(folder: Path, document: Input, extraction: Extraction) -> list[str]:
    """Write the page pictures; returns what to tell about them."""
    notes = []
    try:
        for number, picture in annotated_pages(extraction):
            path = folder / document.place.with_name(f"{document.place.name}-page-{number}.png")
            write_atomic(path, as_png(picture))
            notes.append(f"annotated page: {path}")
    except (DocumentError, ConfigError) as error:
        notes.append(f"warning: {document.source}: pictures are missing: {error}")
    return notes


@contextlib.contextmanager
def _progress(total: int, stdout_is_free: bool) -> Iterator[Callable[[], None]]:
    """A progress bar, if a person watches: on a terminal that does not show results at the same time."""
    if total == 1 or not sys.stderr.isatty() or (sys.stdout.isatty() and not stdout_is_free):
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bar:
        task = bar.add_task("documents", total=total)
        yield lambda: bar.advance(task)
