"""`pagelift extract`: many documents through one extractor, each outcome handed on as soon as its turn comes."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TextIO, TypeAlias

from pagelift.commands import ExitCode, say
from pagelift.commands.inputs import STDIN, Input, find_inputs, is_batch
from pagelift.commands.sinks import ArraySink, CsvSink, Failure, FolderSink, Format, JsonSink, LinesSink, Sink
from pagelift.commands.tables import Table
from pagelift.core import ConfigError, DocumentError, Extraction, InvalidOutput, Limits, PageliftError
from pagelift.core.annotate import annotated_pages, as_png
from pagelift.core.files import write_atomic
from pagelift.documents.open import OcrMode
from pagelift.extract import Extractor, LocalModel
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
    model: LocalModel | None = None


def read_password(file: Path) -> str:
    """The first line of a password file. Raises ConfigError."""
    try:
        return file.read_text(encoding="utf-8").split("\n", 1)[0].rstrip("\r")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file}: the password cannot be read ({error})") from error


@dataclass(slots=True)
class Tally:
    """Documents with and without a result so far."""

    succeeded: int = 0
    failed: int = 0


def run(job: Job) -> ExitCode:
    """Extract, write the outcomes, and say in the exit code how it went. Raises SchemaError, ConfigError, EngineError."""
    if job.pages is not None:
        parse_pages(job.pages)
    if job.evidence and job.format == "csv":
        raise ConfigError("--format csv has no room for --evidence; use json or jsonl")
    extractor = _extractor_of(job)
    documents = find_inputs(job.inputs, [folder for folder in (job.out, job.annotate) if folder is not None])
    if not documents:
        say(f"no documents in {', '.join(job.inputs)}; folders are searched for PDF, PNG, JPEG, WebP, GIF, BMP and TIFF files")
        return ExitCode.NOTHING_SUCCEEDED
    tally = Tally()
    try:
        _work(job, extractor, documents, tally)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains when it flushes at the end
        return ExitCode.OUTPUT_CLOSED
    except KeyboardInterrupt:
        say(f"interrupted after {tally.succeeded + tally.failed} of {len(documents)} documents; what was written is complete")
        return ExitCode.INTERRUPTED
    if not tally.failed:
        return ExitCode.FINE
    return ExitCode.SOME_FAILED if tally.succeeded else ExitCode.NOTHING_SUCCEEDED


def _work(job: Job, extractor: Extractor, documents: Sequence[Input], tally: Tally) -> None:
    assert extractor.schema is not None
    with (
        contextlib.closing(_sink(job, extractor.schema)) as sink,
        contextlib.closing(_outcomes(job, extractor, documents)) as outcomes,
        _progress(len(documents), job.out is not None) as advance,
    ):
        for document, (outcome, notes) in zip(documents, outcomes, strict=True):
            sink.put(document, outcome)
            for note in notes:
                say(note)
            if isinstance(outcome, Failure):
                tally.failed += 1
            else:
                tally.succeeded += 1
            advance()


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


def _outcomes(job: Job, extractor: Extractor, documents: Sequence[Input]) -> Generator[Outcome, None, None]:
    """The outcome of every document, in order; at most a few more than `jobs` are worked on or waiting to be written."""
    todo = iter(documents)
    alone = extractor.engine.name == "vlm" or any(document.source == STDIN for document in documents)
    if min(job.jobs, len(documents)) > 1 and not alone:  # a model is in memory once; other processes have no standard input
        yield from _parallel_outcomes(job, todo)  # leaves documents over only if a process was lost
    for document in todo:
        yield _extract(job, extractor, document)


def _parallel_outcomes(job: Job, todo: Iterator[Input]) -> Generator[Outcome, None, None]:
    """Outcomes from several processes, since engines are bound by the processor."""
    pool = ProcessPoolExecutor(job.jobs, initializer=_start_process, initargs=(job,))
    ahead: deque[Input] = deque()
    futures: deque[Future[Outcome]] = deque()
    try:
        while True:
            for document in islice(todo, 2 * job.jobs - len(ahead)):
                ahead.append(document)  # before the attempt, which fails when a process is lost
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
        pool.shutdown(wait=True, cancel_futures=True)  # its thread must not outlive the pipes of the processes
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _extractor_of(job: Job) -> Extractor:
    return Extractor(job.schema, job.engine, limits=job.limits, ocr=job.ocr, nulls=job.nulls, strict=job.strict, model=job.model)


_process: tuple[Job, Extractor]


def _start_process(job: Job) -> None:
    global _process  # noqa: PLW0603
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process ends this one
    _process = job, _extractor_of(job)


def _extract_in_process(document: Input) -> Outcome:
    return _extract(*_process, document)


def _extract(job: Job, extractor: Extractor, document: Input) -> Outcome:
    try:
        extraction = extractor.extract(document.source, pages=job.pages, password=job.password)
    except PageliftError as error:
        named = document.source in str(error) or document.source == "-"
        raw = error.raw if isinstance(error, InvalidOutput) else ""
        return Failure(type(error).__name__, str(error), raw), [f"error: {error}" if named else f"error: {document.source}: {error}"]
    except Exception as error:
        log.exception("%s: unexpected error", document.source)
        message = f"{document.source}: unexpected error: {error}"
        return Failure(type(error).__name__, message), [f"error: {message}"]
    notes = [f"warning: {document.source}: {warning}" for warning in extraction.warnings]
    if job.annotate is not None:
        notes += _annotate(job.annotate, document, extraction)
    return replace(extraction, pictures=None), notes


def _annotate(folder: Path, document: Input, extraction: Extraction) -> list[str]:
    """Write the page pictures; returns what to tell about them."""
    notes = []
    try:
        for number, picture in annotated_pages(extraction):
            path = folder / document.place.with_name(f"{document.place.name}-page-{number}.png")
            write_atomic(path, as_png(picture))
            notes.append(f"annotated page: {path}")
    except DocumentError as error:
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
