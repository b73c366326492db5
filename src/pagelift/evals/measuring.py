"""One model over all documents: what it reads, and its hidden rows on the true answers. Kept in a folder, document by document, so that
models are in memory one at a time and an interrupted comparison goes on where it was.

<folder>/0007.json, 0007.npz    a document: see `Reading`, `Trace`
<folder>/model.json             see `Machine`; written last

Hidden rows are kept in place of log-probabilities, which would take sixty times as much room for a vocabulary of 248,320; the heads of
two models make logits of them again, to the bit.
"""

from __future__ import annotations

import hashlib
import io
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pagelift.backends import Backend, open_backend
from pagelift.core import Budget, Json, PageliftError
from pagelift.core.files import write_atomic
from pagelift.documents import Page, open_document
from pagelift.evals.answers import TokenKind, answer_text, answer_tokens
from pagelift.evals.cases import Case
from pagelift.evals.hidden_rows import hidden_rows
from pagelift.evals.pace import measure_pace, peak_bytes
from pagelift.extract import Extractor
from pagelift.extract.local import LocalAsker
from pagelift.extract.plan import Plan, make_plan
from pagelift.extract.questions import Question, SeenPage
from pagelift.extract.vlm import VlmEngine
from pagelift.models.config import load_config
from pagelift.runtime.prefixes import picture_key
from pagelift.schema import Schema
from pagelift.weights import find_model
from pagelift.weights.checkpoint import weight_files
from pagelift.weights.summary import summarise

COUNTED = (
    "output_tokens",
    "forced_tokens",
    "passes",
    "prefill_passes",
    "prompt_tokens",
    "drafted",
    "accepted",
    "generate_s",
    "first_token_s",
)


@dataclass(frozen=True, slots=True)
class Order:
    """What one model is to do. truths: it writes its answers to where the cases expect true values, because there are none."""

    model: str
    backend: str
    cases: tuple[Case, ...]
    folder: Path
    truths: bool = False
    budget: Budget = field(default_factory=Budget)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a model made of a document. prompts: digests of what it was shown. cut: the grammar does not admit all of the true answer.
    unforced: why the model was not shown it."""

    id: str
    data: Json
    error: str
    seconds: float
    counts: Mapping[str, float]
    prompts: tuple[str, ...] = ()
    cut: bool = False
    unforced: str = ""


@dataclass(frozen=True, slots=True)
class Trace:
    """A model on a true answer. hidden: (n, hidden), of the rows before chosen tokens. targets: (n,) these tokens. kinds: (n,)."""

    hidden: npt.NDArray[np.float32]
    targets: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Machine:
    """What a checkpoint takes. nbytes: of its weight files; tensor_bytes: without their headers. bits_per_weight: without the vision
    tower. Tokens per second are those of one sequence, a token per pass.
    """

    nbytes: int
    tensor_bytes: int
    bits_per_weight: float
    backend: str
    load_s: float
    peak_bytes: int
    prefill_tokens_per_s: float
    decode_tokens_per_s: float


def measure(order: Order) -> None:
    """Do what is not done yet. A document that fails is a reading with an error.

    Raises WeightsError, EngineError, ConfigError, SchemaError.
    """
    if (order.folder / "model.json").is_file():
        return
    start = time.perf_counter()
    engine = VlmEngine(order.model, order.backend)
    load_s = time.perf_counter() - start
    reader = _Reader(engine, open_backend(engine.model.backend), order)
    for index, case in enumerate(order.cases):
        if not _entry(order.folder, index).is_file():
            reading, trace = reader.read(case)
            _keep(order.folder, index, reading, trace)
    folder = find_model(order.model)
    summary = summarise(folder, load_config(folder).quantization)
    pace = measure_pace(engine.model)
    machine = Machine(
        nbytes=sum(file.stat().st_size for file in weight_files(folder)),
        tensor_bytes=summary.size,
        bits_per_weight=summary.text_bits_per_weight,
        backend=engine.model.backend,
        load_s=round(load_s, 3),
        peak_bytes=peak_bytes(),
        prefill_tokens_per_s=pace.prefill,
        decode_tokens_per_s=pace.decode,
    )
    write_atomic(order.folder / "model.json", json.dumps(asdict(machine)))
    engine.model.service.close()


def done(folder: Path) -> int:
    """How many documents are measured."""
    return len(list(folder.glob("[0-9]*.json")))


def load_machine(folder: Path) -> Machine:
    return Machine(**json.loads((folder / "model.json").read_text(encoding="utf-8")))


def load_reading(folder: Path, index: int) -> Reading:
    values: dict[str, Any] = json.loads(_entry(folder, index).read_text(encoding="utf-8"))
    return Reading(**{**values, "prompts": tuple(values["prompts"])})


def load_trace(folder: Path, index: int) -> Trace:
    with np.load(_entry(folder, index).with_suffix(".npz")) as arrays:
        return Trace(arrays["hidden"], arrays["targets"], arrays["kinds"])


def _entry(folder: Path, index: int) -> Path:
    return folder / f"{index:04}.json"


def _keep(folder: Path, index: int, reading: Reading, trace: Trace) -> None:
    arrays = io.BytesIO()
    np.savez(arrays, hidden=trace.hidden, targets=trace.targets, kinds=trace.kinds)
    write_atomic(_entry(folder, index).with_suffix(".npz"), arrays.getvalue())
    write_atomic(_entry(folder, index), json.dumps(asdict(reading), ensure_ascii=False))


class _Reader:
    """Reads documents with one engine."""

    def __init__(self, engine: VlmEngine, backend: Backend, order: Order) -> None:
        self._engine = engine
        self._backend = backend
        self._order = order

    def read(self, case: Case) -> tuple[Reading, Trace]:
        """Extract from a document as the product does, then show the model the true answer."""
        extractor = Extractor(case.schema, self._engine, budget=self._order.budget)
        start = time.perf_counter()
        data, error, counts = None, "", {}
        shown = _Shown()
        try:
            with open_document(case.document) as document:
                pages = list(document.pages())
                try:
                    extraction = extractor.extract_pages(pages, source=str(case.document))
                except PageliftError as failure:
                    error = _said(failure)
                else:
                    data = extraction.data
                    counts = {name: extraction.metadata[name] for name in COUNTED if name in extraction.metadata}
                seconds = time.perf_counter() - start
                if self._order.truths and not error:
                    write_atomic(case.expected, json.dumps(data, ensure_ascii=False))
                shown = self._show(case, pages)
        except PageliftError as failure:
            seconds, error = time.perf_counter() - start, _said(failure)
        return Reading(case.id, data, error, round(seconds, 4), counts, tuple(shown.prompts), shown.cut, shown.fault), shown.trace()

    def _show(self, case: Case, pages: Sequence[Page]) -> _Shown:
        """The true answer to every question that the document takes."""
        shown = _Shown()
        if not case.expected.is_file():
            shown.fault = "there is no true answer"
            return shown
        try:
            asker = self._engine.asker(self._order.budget)
            plan = make_plan([SeenPage(page) for page in pages], Schema.load(case.schema), asker, self._order.budget)
            for window in plan.windows:
                for group in plan.groups:
                    self._ask(asker, plan, plan.question(window, group), case.truth(), shown)
        except PageliftError as failure:
            shown.fault = _said(failure)
        return shown

    def _ask(self, asker: LocalAsker, plan: Plan, question: Question, truth: Json, shown: _Shown) -> None:
        """One question with its true answer."""
        model = self._engine.model
        numbers = None if len(plan.windows) == 1 else [page.number for page in question.pages]
        answer = answer_text(truth, question.schema, [page.index for page in plan.pages], numbers)
        forced = answer_tokens(answer, asker.grammar(question).constraint(), model.vocabulary)
        prompt = asker.prompt(question)
        chosen = np.flatnonzero((forced.kinds == TokenKind.VALUE) | (forced.kinds == TokenKind.PUNCTUATION))
        rows = hidden_rows(model, self._backend, prompt, forced.tokens, chosen)
        shown.traces.append(Trace(rows, forced.tokens[chosen], forced.kinds[chosen]))
        seen = b"".join([prompt.tokens.tobytes(), *(picture_key(placed.picture) for placed in prompt.pictures)])
        shown.prompts.append(hashlib.sha256(seen).hexdigest()[:16])
        shown.cut |= not forced.complete


@dataclass(slots=True)
class _Shown:
    """What a model was shown of a document."""

    traces: list[Trace] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    cut: bool = False
    fault: str = ""

    def trace(self) -> Trace:
        """All questions one behind the other; nothing where one of them failed."""
        if self.fault or not self.traces:
            return Trace(np.empty((0, 1), np.float32), np.empty(0, np.int64), np.empty(0, np.uint8))
        return Trace(
            np.concatenate([trace.hidden for trace in self.traces]),
            np.concatenate([trace.targets for trace in self.traces]),
            np.concatenate([trace.kinds for trace in self.traces]),
        )


def _said(error: PageliftError) -> str:
    return f"{type(error).__name__}: {error}"
