"""Models beside each other on the same documents: measured one after the other, each in a process of its own, then compared."""

from __future__ import annotations

import hashlib
import logging
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from pagelift.core import Budget, ConfigError, EngineError, PageliftError
from pagelift.core.processes import end_with_parent
from pagelift.evals.cases import Case
from pagelift.evals.measuring import Order, done, is_finished, measure
from pagelift.extract.words_prompt import wants_words
from pagelift.models.config import load_config
from pagelift.weights import Tokenizer, find_model
from pagelift.weights.checkpoint import weight_files

log = logging.getLogger(__name__)
POLL_S, GRACE_S = 0.2, 3.0
Progress = Callable[[str, int, int], None]
"""Is told the name of the model, how many documents are measured, and of how many."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A model to compare. name: in tables. model: a checkpoint folder or the id of a cached model. control_of: the name of the model at
    whose size it is a control, and what kind of control it is."""

    name: str
    model: str
    control_of: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Material:
    """What models are compared on. labelled: False when nobody knows the true values: the reference's answers stand for them, and the
    expected files of the cases are yet to be written."""

    cases: tuple[Case, ...]
    labelled: bool = True


@dataclass(frozen=True, slots=True)
class Measured:
    """A contender with the folder where its measurements are."""

    contender: Contender
    folder: Path


class Measurements(NamedTuple):
    """All contenders in the order given, and what they were measured on, with the true values that the reference gave where there were
    none."""

    measured: list[Measured]
    material: Material


def contenders(models: Sequence[str]) -> list[Contender]:
    """Models by the last part of their names, or by their whole names where those are the same."""
    short = [Path(model).resolve().name if Path(model).is_dir() else model.rpartition("/")[2] for model in models]
    if len(set(models)) < len(models):
        raise ConfigError(f"a model is named twice: {', '.join(sorted({m for m in models if models.count(m) > 1}))}; give each once")
    return [Contender(name if short.count(name) == 1 else model, model) for name, model in zip(short, models, strict=True)]


def check_comparable(models: Sequence[str]) -> None:
    """Raises ConfigError when models do not write in the same tokens or want other prompts, WeightsError when one is not there."""
    first = find_model(models[0])
    tokenizer, size = Tokenizer.load(first), load_config(first).text.vocab_size
    for model in models[1:]:
        folder = find_model(model)
        other, other_size = Tokenizer.load(folder), load_config(folder).text.vocab_size
        if other_size != size:
            raise ConfigError(
                f"{models[0]} has a vocabulary of {size} and {model} one of {other_size}; only models with the same can be compared"
            )
        if other.engine.get_vocab() != tokenizer.engine.get_vocab() or other.stop_tokens != tokenizer.stop_tokens:
            raise ConfigError(f"{models[0]} and {model} have different tokenizers; only models with the same tokens can be compared")
        if wants_words(folder) != wants_words(first):
            raise ConfigError(f"{models[0]} and {model} want different prompts (pagelift.json); they cannot be compared token by token")


@dataclass(frozen=True, slots=True)
class Running:
    """How models are run. work: folder for all measurements; what is there already is not measured again. traced: the backend whose
    divergence is measured, `backend` if empty."""

    work: Path
    backend: str = "auto"
    traced: str = ""
    budget: Budget = field(default_factory=Budget)
    progress: Progress | None = None


def measure_all(entered: Sequence[Contender], material: Material, running: Running) -> Measurements:
    """Measure every contender, the reference first. Raises WeightsError, EngineError, ConfigError, SchemaError."""
    work = running.work
    found = []
    task = _digest(material, f"{running.backend} {running.traced} {running.budget}")
    for index, contender in enumerate(entered):
        if index == 0 and not material.labelled:
            material = _own_truths(material, work / f"truths-{_key(contender.model, task)}")
        key = _key(contender.model, task)
        folder = work / f"{_plain(contender.name)}-{key}"
        truths = index == 0 and not material.labelled
        order = Order(contender.model, running.backend, material.cases, folder, work / "pages", truths, running.budget, running.traced)
        _measure_apart(order, contender.name, running.progress)
        if truths:
            task = hashlib.sha256(f"{task} {key}".encode()).hexdigest()  # what the others are shown depends on the reference
        found.append(Measured(contender, folder))
    return Measurements(found, material)


def task_key(model: str, materials: Sequence[Material], how: str) -> str:
    """Names a model with its files, and what it is measured on, so that what was measured before can be told from something else."""
    return _key(model, " ".join(_digest(material, how) for material in materials))


def _measure_apart(order: Order, name: str, progress: Progress | None) -> None:
    """In a process of its own, so that its memory is its own and all of it is given back."""
    if is_finished(order.folder):
        return
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(order, sending), name=f"pagelift-{name}")
    process.start()
    sending.close()  # or its end would not be seen
    try:
        while not receiving.poll(POLL_S):
            if progress is not None:
                progress(name, done(order.folder), len(order.cases))
        fault = receiving.recv()
    except EOFError:
        fault = EngineError(f"{name}: the process that measured it was ended from outside, most likely because the memory was full")
    finally:
        process.join(GRACE_S)
        process.terminate()  # it goes on only if we alone were interrupted
        process.join()
    if fault is not None:
        raise fault
    if progress is not None:
        progress(name, len(order.cases), len(order.cases))


def _work(order: Order, sending: Connection) -> None:
    """What the process does: measure, and say how it went."""
    end_with_parent()
    try:
        measure(order)
    except PageliftError as error:
        sending.send(error)
    except KeyboardInterrupt:
        return  # the parent has been interrupted, too
    except Exception as error:
        log.exception("measuring %s failed", order.model)
        sending.send(EngineError(f"{order.model}: measuring failed: {type(error).__name__}: {error}"))
    else:
        sending.send(None)


def _own_truths(material: Material, folder: Path) -> Material:
    """The cases with true values in a folder of the comparison."""
    cases = [replace(case, expected=folder / f"{index:04}.json") for index, case in enumerate(material.cases)]
    return replace(material, cases=tuple(cases))


def _key(model: str, task: str) -> str:
    """Of a model's files and what it does."""
    folder = find_model(model)
    files = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in weight_files(folder)]
    return hashlib.sha256(repr((str(folder.resolve()), files, task)).encode()).hexdigest()[:12]


def _digest(material: Material, how: str) -> str:
    """Of the documents, what is asked of them, and how."""
    digest = hashlib.sha256(f"{how} {material.labelled}".encode())
    for case in material.cases:
        for part in _parts(case, material.labelled):
            digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def _parts(case: Case, labelled: bool) -> Iterator[bytes]:
    yield repr((case.id, sorted(case.scorer.loose), sorted(case.scorer.unordered))).encode()
    for file in (case.document, case.schema, *([case.expected] if labelled else [])):
        try:
            yield file.read_bytes()
        except OSError as error:
            raise ConfigError(f"{file} cannot be read: {error.strerror}") from error


def _plain(name: str) -> str:
    return "".join(character if character.isalnum() or character in "-_." else "-" for character in name)[:60]
