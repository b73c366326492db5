"""One model over all documents: what it reads, and its hidden rows on the true answers. Kept in a folder, document by document, so that
models are in memory one at a time and an interrupted comparison goes on where it was.

<folder>/0007.json      what was read from a document: `Reading`
<folder>/0007.npz       the true answer of a document: `Trace`
<folder>/machine.json   `Machine`
<folder>/finished       written last

Hidden rows are kept in place of log-probabilities, which would take sixty times as much room for a vocabulary of 248,320; the heads of
two models make logits of them again, to the bit.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pagelift.core import Budget, Json, PageliftError
from pagelift.core.files import write_atomic
from pagelift.evals.cache import cached_pages
from pagelift.evals.cases import Case
from pagelift.evals.pace import measure_pace, peak_bytes
from pagelift.evals.traces import Trace, keep_trace, no_trace, said
from pagelift.evals.tracing import Tracer
from pagelift.extract import Extractor
from pagelift.extract.vlm import VlmEngine
from pagelift.models.config import load_config
from pagelift.runtime import best_backend
from pagelift.weights import find_model
from pagelift.weights.checkpoint import weight_files
from pagelift.weights.summary import summarise

ANSWER_TIMES = ("decode_s", "grammar_s", "draft_s", "settle_s")
"""What the writing of an answer takes, without the reading of its prompt."""
COUNTED = ("output_tokens", "forced_tokens", "passes", "prefill_passes", "prompt_tokens", "drafted", "accepted", *ANSWER_TIMES)


@dataclass(frozen=True, slots=True)
class Order:
    """What one model is to do. backend: that reads the documents and is timed. traced: that is shown the true answers, the same if empty.
    pages: folder where the words of the documents are kept, for all models. truths: the model writes its answers to where the cases expect
    true values, because there are none."""

    model: str
    backend: str
    cases: tuple[Case, ...]
    folder: Path
    pages: Path
    truths: bool = False
    budget: Budget = field(default_factory=Budget)
    traced: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a model made of a document."""

    id: str
    data: Json
    error: str
    seconds: float
    counts: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Machine:
    """What a checkpoint takes. nbytes: of its weight files; tensor_bytes: without their headers. bits_per_weight: without the vision
    tower. traced: the backend that was shown the true answers. Tokens per second are those of one sequence, a token per pass.
    """

    nbytes: int
    tensor_bytes: int
    bits_per_weight: float
    backend: str
    traced: str
    load_s: float
    peak_bytes: int
    prefill_tokens_per_s: float
    decode_tokens_per_s: float


def measure(order: Order) -> None:
    """Do what is not done yet. A document that fails is a reading with an error.

    Raises WeightsError, EngineError, ConfigError, SchemaError.
    """
    if is_finished(order.folder):
        return
    traced = order.traced or order.backend
    together = traced == order.backend
    if together or not (order.folder / "machine.json").is_file():
        _read_all(order, together)
    if not together:
        engine = VlmEngine(order.model, traced)
        tracer = Tracer(engine, order.budget)
        for index, case in enumerate(order.cases):
            if not entry(order.folder, index, ".npz").is_file():
                keep_trace(entry(order.folder, index, ".npz"), _opened(case, order.pages, tracer))
        engine.model.service.close()
    write_atomic(order.folder / "finished", "")


def is_finished(folder: Path) -> bool:
    return (folder / "finished").is_file()


def done(folder: Path) -> int:
    """How many documents are measured; one that was only read is half."""
    return len(list(folder.glob("[0-9]*.*"))) // 2


def load_machine(folder: Path) -> Machine:
    return Machine(**json.loads((folder / "machine.json").read_text(encoding="utf-8")))


def load_reading(folder: Path, index: int) -> Reading:
    return Reading(**json.loads(entry(folder, index, ".json").read_text(encoding="utf-8")))


def entry(folder: Path, index: int, ending: str) -> Path:
    """Where something about a document is kept."""
    return folder / f"{index:04}{ending}"


def _keep_reading(folder: Path, index: int, reading: Reading) -> None:
    write_atomic(entry(folder, index, ".json"), json.dumps(asdict(reading), ensure_ascii=False))


def _read_all(order: Order, together: bool) -> None:
    """Read every document, and time the model. together: show it the true answers as well, while it knows the prompts."""
    start = time.perf_counter()
    engine = VlmEngine(order.model, order.backend)
    load_s = time.perf_counter() - start
    tracer = Tracer(engine, order.budget) if together else None
    for index, case in enumerate(order.cases):
        if not entry(order.folder, index, ".json").is_file() or (tracer and not entry(order.folder, index, ".npz").is_file()):
            reading, trace = _read(engine, order, case, tracer)
            if trace is not None:
                keep_trace(entry(order.folder, index, ".npz"), trace)
            _keep_reading(order.folder, index, reading)
    folder = find_model(order.model)
    summary = summarise(folder, load_config(folder).quantization)
    pace = measure_pace(engine.model)
    machine = Machine(
        nbytes=sum(file.stat().st_size for file in weight_files(folder)),
        tensor_bytes=summary.size,
        bits_per_weight=summary.text_bits_per_weight,
        backend=engine.model.backend,
        traced=engine.model.backend if together else best_backend() if order.traced == "auto" else order.traced,
        load_s=round(load_s, 3),
        peak_bytes=peak_bytes(),
        prefill_tokens_per_s=pace.prefill,
        decode_tokens_per_s=pace.decode,
    )
    write_atomic(order.folder / "machine.json", json.dumps(asdict(machine)))
    engine.model.service.close()


def _read(engine: VlmEngine, order: Order, case: Case, tracer: Tracer | None) -> tuple[Reading, Trace | None]:
    """Extract from a document as the product does, then show the model the true answer."""
    extractor = Extractor(case.schema, engine, budget=order.budget)
    start = time.perf_counter()
    data, error, counts, trace = None, "", {}, None
    try:
        pages = cached_pages(case.document, order.pages)
        try:
            extraction = extractor.extract_pages(pages, source=str(case.document))
        except PageliftError as failure:
            error = said(failure)
        else:
            data = extraction.data
            counts = {name: extraction.metadata[name] for name in COUNTED if name in extraction.metadata}
        seconds = time.perf_counter() - start
        if order.truths and not error:
            write_atomic(case.expected, json.dumps(data, ensure_ascii=False))
        trace = tracer.trace(case, pages) if tracer else None
    except PageliftError as failure:
        seconds, error = time.perf_counter() - start, said(failure)
        trace = no_trace(error) if tracer else None
    return Reading(case.id, data, error, round(seconds, 4), counts), trace


def _opened(case: Case, cache: Path, tracer: Tracer) -> Trace:
    """The trace of a document whose pages are not known yet."""
    try:
        return tracer.trace(case, cached_pages(case.document, cache))
    except PageliftError as failure:
        return no_trace(said(failure))
