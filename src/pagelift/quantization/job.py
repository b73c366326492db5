"""From a checkpoint to a quantized one: what is asked for, the steps, and what is kept so that killed work goes on."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pagelift.backends import Backend
from pagelift.core.errors import ConfigError
from pagelift.core.files import make_folder, write_atomic
from pagelift.evals.forced import Forced, Forcer
from pagelift.quantization.calibration import generated, of_user, text_pieces
from pagelift.quantization.lockstep import Documents, Findings, Lockstep, Variant
from pagelift.quantization.production import Production, Recipe
from pagelift.quantization.refinement import TRIED_BY_GROUP, Search, refine
from pagelift.quantization.scores import block_scores, scores_work
from pagelift.quantization.sensitivity import Group, coefficients, groups_of, moved, operating_point
from pagelift.quantization.stream import Source
from pagelift.quantization.work import Progress, together
from pagelift.weights.quant import allocations
from pagelift.weights.quant.formats import Allocation, Format
from pagelift.weights.quant.targets import Target, base_allocation, check_size, parse_target, target_of_size

Method = Literal["oq", "best"]
WORK = ".quantize"
"""The folder within the output where work is kept until it is done."""
SCORES, SENSITIVITIES, REFINEMENT, ROUNDING = "block scores", "sensitivities", "refinement", "rounding"
"""The stages of a job."""
PLAN = "plan.json"
HELD_SEED, SENSITIVITY_SEED = 715, 716


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured. calibration, sensitivity, held_out: generated documents for the statistics, for the sensitivities, and for
    deciding and the final measurement. rounds: of refinement. text: pieces of text for the block scores of oQ."""

    calibration: int = 24
    sensitivity: int = 4
    held_out: int = 8
    rounds: int = 0
    text: int = 128

    def __post_init__(self) -> None:
        if min(self.calibration, self.sensitivity, self.held_out, self.rounds) < 0 or self.text < 1:
            raise ConfigError(f"{self}: documents and rounds are 0 or more, pieces of text 1 or more")


@dataclass(frozen=True, slots=True)
class Job:
    """target: a name such as oQ4 or bits per weight. size_gb: instead of it, the most bytes of all tensors. calibration: a folder with
    documents of the user. vision: whether method best may pack the vision tower; None: where bytes are asked for, for which it
    competes, but not where bits per weight of the text are. name: of the source, if its folder does not say it."""

    source: Path
    out: Path
    target: str = "oQ4"
    size_gb: float | None = None
    method: Method = "best"
    calibration: Path | None = None
    vision: bool | None = None
    effort: Effort = field(default_factory=Effort)
    name: str = ""

    @property
    def title(self) -> str:
        """What the source is called."""
        return self.name or self.source.resolve().name


@dataclass(frozen=True, slots=True)
class Plan:
    """What was decided. notes: how, a line each."""

    allocation: Allocation
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """A finished checkpoint. divergences: of each held-out document, KL(original || quantized) at each token of a value; empty for oq."""

    source: Source
    target: Target
    plan: Plan
    size: int
    divergences: list[list[float]]

    @property
    def text_bits(self) -> float:
        return self.source.sizes.text_bits(self.plan.allocation)


def quantize(job: Job, backend: Backend, progress: Progress) -> Result:
    """Make a quantized checkpoint, or go on with one that was begun by the same job. Raises WeightsError, ConfigError, DocumentError.

    backend: runs the parts of the model; one that computes in float32.
    """
    source = Source.open(job.source, backend)
    target = parse_target(job.target) if job.size_gb is None else target_of_size(source.sizes, int(job.size_gb * 1e9))
    work = work_folder(job)
    documents = documents_of(job) if job.method == "best" else None
    plan = _load_plan(work, job)
    if plan is None:
        plan = (
            _plan_oq(source, target, (job, work), progress)
            if documents is None
            else _plan_best(source, target, (job, documents, work), progress)
        )
        check_size(source.sizes, plan.allocation, target)
        _save_plan(work, job, plan)
    recipe = Recipe(plan.allocation, "gptq" if job.method == "best" else "nearest")
    return make(source, target, recipe, (job, documents, work), progress, plan.notes)


def make(
    source: Source, target: Target, recipe: Recipe, context: tuple[Job, Sets | None, Path], progress: Progress, notes: tuple[str, ...] = ()
) -> Result:
    """Write the files of a recipe. context: the job, its documents if it needs any, and its work folder."""
    job, documents, work = context
    seen = Documents(documents.calibration, documents.held_out) if documents else Documents((), ())
    production = Production(source, recipe, seen, (job.out, work), progress)
    progress.stage(ROUNDING, production.total_work())
    divergences = production.run()
    return Result(source, target, Plan(recipe.allocation, notes), source.sizes.nbytes(recipe.allocation), divergences)


def finish(job: Job) -> None:
    """Remove what was kept for going on."""
    shutil.rmtree(job.out / WORK, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Sets:
    """Documents by purpose; none of them is in two."""

    calibration: tuple[Forced, ...]
    sensitivity: tuple[Forced, ...]
    held_out: tuple[Forced, ...]


def documents_of(job: Job) -> Sets:
    """Generated documents, and those of the user in turn. Raises ConfigError where there is none for something."""
    return _documents(job.source, job.calibration, job.effort)


@lru_cache(maxsize=1)  # the next size of the same model is measured on the same text, and on the same documents
def _texts(source: Path, count: int) -> tuple[Forced, ...]:
    return text_pieces(Forcer(source), count)


@lru_cache(maxsize=1)
def _documents(source: Path, calibration: Path | None, effort: Effort) -> Sets:
    forcer = Forcer(source)
    mine = of_user(forcer, calibration) if calibration else ()
    sets = Sets(
        generated(forcer, "train", effort.calibration) + mine[::2],
        generated(forcer, "train", effort.sensitivity, SENSITIVITY_SEED) + mine[3::4],
        generated(forcer, "validation", effort.held_out, HELD_SEED) + mine[1::4],
    )
    if not (sets.calibration and sets.sensitivity and sets.held_out):
        raise ConfigError(
            "documents are needed for statistics, sensitivities and decisions: at least one generated one of each, or four of yours"
        )
    return sets


def _plan_oq(source: Source, target: Target, context: tuple[Job, Path], progress: Progress) -> Plan:
    job, work = context
    texts = _texts(job.source, job.effort.text)
    scoring = scores_work(source, texts, target.base_bits)
    writing = Production(source, Recipe(base_allocation(source.sizes, target.base_bits), "nearest"), Documents((), ()), (job.out, work))
    progress.begin([(SCORES, scoring), (ROUNDING, writing.total_work())])
    progress.stage(SCORES, scoring)
    scores = block_scores(source, texts, target.base_bits, work, progress)
    notes = [f"block scores: {', '.join(f'{block}: {score:.4g}' for block, score in scores.items())}"]
    return Plan(allocations.oq(source.sizes, scores, target), tuple(notes))


def _plan_best(source: Source, target: Target, context: tuple[Job, Sets, Path], progress: Progress) -> Plan:
    job, documents, work = context
    vision = job.size_gb is not None if job.vision is None else job.vision
    groups, base = groups_of(source.sizes, vision), operating_point(source.sizes, target.base_bits, vision)
    variants = [Variant(allocation, "least_squares") for allocation in (base, *(moved(group, base) for group in groups))]
    lockstep = Lockstep(source, Documents(documents.calibration, documents.sensitivity), work, progress)
    held = Lockstep(source, Documents(documents.calibration, documents.held_out), work, progress)
    surveying = lockstep.work_of(variants, survey=True)
    refining = together([held.work_of([Variant(variant.allocation) for variant in variants])] * TRIED_BY_GROUP * job.effort.rounds)
    writing = Production(source, Recipe(base), Documents(documents.calibration, documents.held_out), (job.out, work))
    progress.begin([(SENSITIVITIES, surveying), (REFINEMENT, refining), (ROUNDING, writing.total_work())])
    progress.stage(SENSITIVITIES, surveying)
    findings = lockstep.run(variants, survey=True)
    factors = coefficients(groups, base, findings)
    notes = _group_notes(groups, findings, factors)
    search = Search(source.sizes, groups, findings.errors, target.budget(source.sizes))

    def measure(tried: Sequence[Variant]) -> Findings:
        progress.stage(REFINEMENT, held.work_of(tried))
        return held.run(tried)

    allocation, kept = refine(search, factors, measure, job.effort.rounds)
    return Plan(allocation, (*notes, *kept))


def _group_notes(groups: tuple[Group, ...], findings: Findings, factors: dict[str, float]) -> list[str]:
    changes = zip(groups, findings.means()[1:], strict=True)
    return [f"{group.name}: {change:.3g} nats, factor {factors[group.name]:.3g}" for group, change in changes]


def work_folder(job: Job) -> Path:
    """Raises ConfigError when the output folder holds something else."""
    work = job.out / WORK
    if job.out.resolve() == job.source.resolve():
        raise ConfigError(f"{job.out} is the checkpoint itself; choose another place for the quantized one")
    if job.out.is_file() or (job.out.is_dir() and any(job.out.iterdir()) and not work.is_dir()):
        raise ConfigError(f"{job.out} is there already and not an empty folder; choose another place")
    make_folder(work)
    mark = _fingerprint(job)
    known = work / "job.json"
    if known.is_file() and json.loads(known.read_bytes()) != mark:
        raise ConfigError(f"{job.out} holds work of another command; give the same options to go on, or delete the folder")
    write_atomic(known, json.dumps(mark))
    return work


def _fingerprint(job: Job) -> dict[str, Any]:
    """What has to be the same to go on."""
    digest = hashlib.sha256((job.source / "config.json").read_bytes() if (job.source / "config.json").is_file() else b"")
    for file in sorted(job.source.glob("*.safetensors")):
        digest.update(f"{file.name} {file.stat().st_size}".encode())
    given = {"target": job.target, "size_gb": job.size_gb, "method": job.method, "calibration": str(job.calibration), "vision": job.vision}
    return {**given, **asdict(job.effort), "source": digest.hexdigest()}


def _save_plan(work: Path, job: Job, plan: Plan) -> None:
    formats = {name: [form.bits, form.group_size] for name, form in plan.allocation.items()}
    write_atomic(work / PLAN, json.dumps({"job": _fingerprint(job), "allocation": formats, "notes": plan.notes}, indent=1))


def _load_plan(work: Path, job: Job) -> Plan | None:
    if not (work / PLAN).is_file():
        return None
    saved = json.loads((work / PLAN).read_bytes())
    assert saved["job"] == _fingerprint(job)
    return Plan({name: Format(*form) for name, form in saved["allocation"].items()}, tuple(saved["notes"]))
