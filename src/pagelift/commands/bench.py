"""`pagelift bench`: a model in all sizes and by all methods, measured on documents, as a section of a page."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pagelift.commands import ExitCode, say
from pagelift.commands.compare import Documents, Told, budget, load_material
from pagelift.commands.controls import control, is_finished
from pagelift.commands.quantize import run as quantize
from pagelift.core import ConfigError, Json
from pagelift.core.annotate import as_png
from pagelift.core.files import make_folder, write_atomic
from pagelift.evals.comparison import Contender, Material, Running, measure_all, task_key
from pagelift.evals.materials import Generated
from pagelift.evals.quality_report import GENERATED, markdown, plot, put_section
from pagelift.evals.standings import stand
from pagelift.models.config import load_config
from pagelift.quantization.controls import CONTROLS
from pagelift.quantization.job import Effort, Job
from pagelift.weights import find_model
from pagelift.weights.quant.targets import parse_target

TARGETS = ("oQ8", "oQ6", "oQ5", "oQ4", "oQ3.5", "oQ3")
METHODS = ("oq", "best")
ROWS = "rows.jsonl"


@dataclass(frozen=True, slots=True)
class Bench:
    """What to measure. folders: with true values, beside the generated documents. controls: uniform and random too, at the bytes of
    each `best`. keep: the checkpoints that were made. work: where everything is kept that the same command goes on with. only: these
    collections of the folders."""

    model: str
    work: Path
    targets: tuple[str, ...] = TARGETS
    methods: tuple[str, ...] = METHODS
    folders: tuple[Path, ...] = ()
    limit: int | None = None
    generated: Generated = field(default_factory=Generated)
    calibration: Path | None = None
    effort: Effort = field(default_factory=Effort)
    controls: bool = False
    keep: bool = False
    backend: str = "auto"
    traced: str = ""
    max_tokens: int | None = None
    only: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Variant:
    """A size and how it is made; "bf16" is the model itself."""

    target: str
    method: str

    @property
    def name(self) -> str:
        return self.target if self.method == "bf16" else f"{self.target} {self.method}"


REFERENCE = Variant("bf16", "bf16")


def run(bench: Bench, out: Path | None, as_json: bool) -> ExitCode:
    """Measure what is not measured yet, then print the section, and write it into the page `out` with its plot beside it.

    Raises ConfigError, WeightsError, EngineError, SchemaError.
    """
    folder = find_model(bench.model)
    if load_config(folder).quantization:
        raise ConfigError(f"{bench.model} is quantized already; name the checkpoint in 16 bits that variants are to be made from")
    for target in bench.targets:
        parse_target(target)
    if bench.controls and "best" not in bench.methods:
        raise ConfigError("controls have the bytes of method best; measure that too, or leave --controls out")
    make_folder(bench.work)
    materials = _materials(bench)
    task = task_key(
        bench.model, list(materials.values()), f"{bench.backend} {bench.traced} {bench.max_tokens} {bench.calibration} {bench.effort}"
    )
    rows = []
    try:
        for variant in _variants(bench):
            rows.append(_known(bench.work / ROWS, variant, task) or _measured(bench, folder, materials, (variant, task)))
            _write(rows, bench, out)
    except KeyboardInterrupt:
        say("\ninterrupted; the same command goes on")
        return ExitCode.INTERRUPTED
    sys.stdout.write((json.dumps({"rows": rows}, ensure_ascii=False, indent=1) if as_json else markdown(_title(bench), rows)) + "\n")
    return ExitCode.FINE


def _variants(bench: Bench) -> list[Variant]:
    methods = [*bench.methods, *(kind for kind in CONTROLS if bench.controls and kind not in METHODS)]
    return [REFERENCE, *(Variant(target, method) for target in bench.targets for method in methods)]


def _materials(bench: Bench) -> dict[str, Material]:
    """By the names in the tables. Raises ConfigError."""
    found = {GENERATED: load_material(Documents(generated=bench.generated), bench.work)}
    for folder in bench.folders:
        name = folder.resolve().name
        if name in found:
            raise ConfigError(f"two folders of documents are called {name}; give them different names")
        found[name] = load_material(Documents(folder, only=bench.only, limit=bench.limit), bench.work)
    return found


def _measured(bench: Bench, folder: Path, materials: dict[str, Material], about: tuple[Variant, str]) -> dict[str, Json]:
    """Make a variant, measure it beside the model itself, and add its row to the finished ones."""
    variant, task = about
    made = folder if variant == REFERENCE else _make(bench, folder, variant)
    found: dict[str, Json] = {}
    running = Running(bench.work / "measured", bench.backend, bench.traced, budget(bench.max_tokens), Told())
    for name, material in materials.items():
        entered = [Contender(REFERENCE.name, str(folder))]
        if variant != REFERENCE:
            entered.append(Contender(variant.name, str(made)))
        standings = stand(measure_all(entered, material, running))
        found[name] = standings.rows[-1].to_dict() | {"count": len(standings.documents), "notes": list(standings.notes)}
        backends = list(standings.backends)
    row = {
        "task": task,
        "variant": variant.name,
        "target": variant.target,
        "method": variant.method,
        "backends": backends,
        "materials": found,
    }
    with (bench.work / ROWS).open("a", encoding="utf-8") as file:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")
    if variant != REFERENCE and not bench.keep:
        shutil.rmtree(made, ignore_errors=True)
    return row


def _make(bench: Bench, folder: Path, variant: Variant) -> Path:
    """The checkpoint of a variant; made unless it is there, or gone on with."""
    if variant.method in METHODS:
        out = bench.work / "models" / f"{variant.target}-{variant.method}"
        if not is_finished(out):
            say(f"{variant.name}: quantizing")
            job = Job(folder, out, variant.target, method=variant.method, calibration=bench.calibration, effort=bench.effort)  # type: ignore[arg-type]
            quantize(job)
        return out
    row = next(row for row in _read(bench.work / ROWS) if (row["target"], row["method"]) == (variant.target, "best"))
    nbytes = int(row["materials"][GENERATED]["tensor_bytes"])
    kind = next(kind for kind in CONTROLS if kind == variant.method)
    return control(kind, folder, nbytes, bench.work / "models", bench.effort)


def _known(file: Path, variant: Variant, task: str) -> dict[str, Json] | None:
    """The finished row of a variant for the same model and documents."""
    return next((row for row in _read(file) if (row["variant"], row["task"]) == (variant.name, task)), None)


def _read(file: Path) -> list[dict[str, Json]]:
    """Finished rows; a line that was cut off when the command was killed does not count."""
    found = []
    for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def _write(rows: Sequence[dict[str, Json]], bench: Bench, out: Path | None) -> None:
    """The section as far as it goes, after every row."""
    if out is None:
        return
    name = _title(bench)
    picture = out.with_name(f"{out.stem}-{name}.png")
    write_atomic(picture, as_png(plot(rows)))
    page = out.read_text(encoding="utf-8") if out.is_file() else ""
    write_atomic(out, put_section(page, name, markdown(name, rows, picture.name)))


def _title(bench: Bench) -> str:
    return Path(bench.model).resolve().name if Path(bench.model).is_dir() else bench.model.rpartition("/")[2]
