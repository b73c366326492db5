"""Runs an engine over evaluation cases and scores what comes out."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pagelift.core import Json, PageliftError
from pagelift.core.processes import end_with_parent
from pagelift.evals.cache import cached_pages
from pagelift.evals.cases import Case
from pagelift.evals.scoring import Score
from pagelift.extract import Extractor, LocalModel
from pagelift.extract.engines import NOTHING_ASKED, Engine, load_engine


@dataclass(frozen=True, slots=True)
class Run:
    """How cases are run. cache: folder for page contents, see `cached_contents`; None reads every document anew. model: for "vlm"."""

    engine: str = "layout"
    cache: Path | None = None
    model: LocalModel = NOTHING_ASKED


@dataclass(frozen=True, slots=True)
class Outcome:
    """One case after its run. data: the prediction, None after an error. seconds: wall time from opening to result."""

    case: Case
    score: Score
    data: Json
    pages: int
    seconds: float
    error: str = ""


def run_cases(cases: Sequence[Case], run: Run, jobs: int = 1) -> Iterator[Outcome]:
    """Run every case, in order. jobs: processes, for engines with a model threads, which share it.

    A document that fails is an outcome with an error, never an exception.
    """
    engine = _engine(run.engine, run.model)
    if jobs == 1:
        for case in cases:
            yield run_case(case, run)
        return
    if engine.name != "layout":
        with ThreadPoolExecutor(jobs) as threads:
            yield from threads.map(run_case, cases, [run] * len(cases))
        return
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), initializer=end_with_parent) as pool:
        yield from pool.map(run_case, cases, [run] * len(cases))


def run_case(case: Case, run: Run) -> Outcome:
    """Run and score one case. Raises SchemaError, EngineError, OSError or ValueError when the case or the run is set up wrongly."""
    truth = case.truth()
    extractor = _extractor(str(case.schema), run.engine, run.model)
    start = time.perf_counter()
    try:
        if run.cache is None:
            extraction = extractor.extract(case.document)
        else:
            pages = cached_pages(case.document, run.cache)
            start = time.perf_counter()  # with a cache only the engine is timed (and reading what is not in the cache yet)
            extraction = extractor.extract_pages(pages, source=str(case.document))
    except PageliftError as error:
        seconds = time.perf_counter() - start
        return Outcome(case, case.scorer.missing(truth), None, 0, seconds, f"{type(error).__name__}: {error}")
    seconds = time.perf_counter() - start
    return Outcome(case, case.scorer.score(truth, extraction.data), extraction.data, extraction.pages, seconds)


@lru_cache(maxsize=1)
def _engine(name: str, model: LocalModel) -> Engine:
    return load_engine(name, model)


@lru_cache(maxsize=8)
def _extractor(schema: str, engine: str, model: LocalModel) -> Extractor:
    return Extractor(Path(schema), _engine(engine, model))
