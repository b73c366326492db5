"""Prefill, decoding and memory for the shapes of the family at every width, beside the peers: what `make bench` runs.

    python benchmarks/model_table.py [--minutes 35] [--quick] [--python PYTHON] [--folder out/bench] [--docs docs/benchmarks.md]

Cells are measured in the order of their worth until the time is used up. Results go to FOLDER/results.jsonl one by one, and those that
were measured with the same code are not measured again: the next run goes on where this one stopped. Then the speed section of the
documentation is written anew. Checkpoints and GGUF files are made when they are needed and removed after their last cell.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import speed_report
from machine import describe, run_limits
from measure import Plan
from peers import OURS, Setting, chosen, compare
from shapes import SHAPES
from sizes import Sizes

log = logging.getLogger(__name__)
HERE = Path(__file__).parent
ROOT = HERE.parent
BATCHES = (1, 4, 8, 16)
ROOM = 3 << 30  # bytes of memory beside the weights without which a cell is left out


@dataclass(frozen=True, slots=True)
class Cell:
    """One measurement: a plan for a shape at a width, and the peers that run it too."""

    shape: str
    bits: int
    what: str
    plan: Plan
    peers: tuple[str, ...] = ()
    rounds: int = 1

    @property
    def key(self) -> str:
        return f"{self.shape}/{self.bits}/{self.what}"


def text(shape: str, bits: int, prompt: int, batches: tuple[int, ...] = (), peers: tuple[str, ...] = ()) -> Cell:
    """A cell of prefill, and of decoding after it where batches are given."""
    plan = Plan(prompt=prompt, batches=batches, repeats=2 if prompt <= 512 else 1, decode_s=5.0)
    return Cell(shape, bits, f"{prompt} tokens", plan, peers, rounds=2 if peers else 1)


def cells(quick: bool) -> list[Cell]:
    """All cells, the most telling first. quick: the smallest shape and the 9B at 4 bits only."""
    llama, torch = ("llama.cpp",), ("transformers",)
    mlx = ("mlx-vlm",) if sys.platform == "darwin" else ()  # elsewhere it computes on the processor, minutes for a prompt
    page = Plan(prompt=0, batches=(), page=True, repeats=2, decode_s=15.0)
    both = Plan(prompt=2048, batches=(1,), page=True, repeats=1, decode_s=3.0)  # the memory of a whole request
    context = Plan(prompt=512, batches=(1,), context=32_768, repeats=1, decode_s=5.0)
    first = [
        text("9b", 4, 512, BATCHES, llama),
        Cell("9b", 4, "page", page, torch, rounds=2),
        Cell("9b", 4, "2048 tokens", both),
        Cell("9b", 4, "context", context),
        text("0.8b", 4, 512, BATCHES, (*llama, *torch, *mlx)),
        text("0.8b", 4, 2048),
        text("0.8b", 4, 16_384),
    ]
    small = [text("0.8b", bits, 512, BATCHES) for bits in (5, 6, 8, 16)]
    if quick:
        return first + small
    middle = [cell for shape in ("2b", "4b") for cell in (text(shape, 4, 512, BATCHES, llama), text(shape, 4, 2048))]
    widths = [text(shape, bits, 512, BATCHES) for shape in ("2b", "4b", "9b") for bits in (8, 6, 5, 16)]
    long = [text(shape, bits, 2048) for shape in SHAPES if shape != "tiny" for bits in (5, 6, 8, 16)]
    longest = [
        text(shape, bits, 16_384) for bits in (4, 5, 6, 8, 16) for shape in ("0.8b", "2b", "4b", "9b") if (shape, bits) != ("0.8b", 4)
    ]
    return first + small + middle + widths + long + longest


class Results:
    """The file of measured cells, one JSON object a line; the last line of a key counts."""

    def __init__(self, path: Path, code: str) -> None:
        self.path, self.code = path, code
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self.rows: dict[str, dict[str, Any]] = {row["key"]: row for row in map(json.loads, lines)}

    def has(self, key: str) -> bool:
        """Whether the cell was measured with the code of today."""
        return key in self.rows and self.rows[key]["code"] == self.code

    def add(self, row: dict[str, Any]) -> None:
        self.rows[row["key"]] = row
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def code_version(root: Path = ROOT) -> str:
    """A digest of everything that speed depends on."""
    digest = hashlib.sha256()
    package = root / "src" / "pagelift"
    folders = (root / "csrc", package / "backends", package / "models")
    for file in sorted(file for folder in folders for file in folder.rglob("*") if file.suffix in {".py", ".cpp", ".h"}):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Files:
    """Where checkpoints and GGUF files lie; missing ones are made. keep: leave them there."""

    folder: Path
    python: str
    keep: bool = False

    def checkpoint(self, shape: str, bits: int) -> Path:
        path = self.folder / f"{shape}-{bits}"
        return self._made(path, "make_checkpoint.py", sys.executable, ("--shape", shape, "--bits", str(bits)))

    def gguf(self, shape: str) -> Path:
        return self._made(self.folder / f"{shape}.gguf", "make_gguf.py", self.python, ("--shape", shape))

    def drop(self, shape: str, bits: int) -> None:
        """Remove what was made for a shape at a width."""
        if not self.keep:
            shutil.rmtree(self.folder / f"{shape}-{bits}", ignore_errors=True)
            if bits == 4:
                (self.folder / f"{shape}.gguf").unlink(missing_ok=True)

    def _made(self, path: Path, script: str, python: str, options: tuple[str, ...]) -> Path:
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            part = path.with_name(path.name + ".part")
            subprocess.run([python, str(HERE / script), str(part), *options], check=True)
            part.rename(path)
        return path


def measured(cell: Cell, files: Files, setting: Setting, names: set[str]) -> dict[str, Any]:
    """One row of the results. names: the peers that are installed."""
    folder = files.checkpoint(cell.shape, cell.bits)
    present = [name for name in cell.peers if name in names]
    gguf = files.gguf(cell.shape) if "llama.cpp" in present else None
    paths = {OURS: folder} | {name: path for name in present if (path := gguf if name == "llama.cpp" else folder)}
    machine = run_limits(setting.wrap)
    runs = compare(paths, cell.plan, replace(setting, rounds=cell.rounds))
    after = run_limits(setting.wrap)
    sizes = Sizes.of(folder)
    return {
        "key": cell.key,
        "plan": asdict(cell.plan),
        "limits": {key: max(machine[key], after[key]) for key in machine},
        "weight_bytes": sizes.weight_bytes,
        "token_bytes": sizes.token_bytes,
        "prefill_flops": sizes.prefill_flops(cell.plan.prompt),
        "runs": runs,
    }


def run_cells(todo: list[Cell], results: Results, files: Files, setting: Setting, end: float) -> None:
    """Measure cells until the clock passes `end`; neighbours of one checkpoint share its files."""
    names = set(chosen(Path(), Path(), sorted({name for cell in todo for name in cell.peers}), setting.python)) - {OURS}
    for (shape, bits), group in groupby(todo, key=lambda cell: (cell.shape, cell.bits)):
        for cell in group:
            if time.monotonic() > end:
                log.info("the time is used up before %s; run again to go on", cell.key)
                files.drop(shape, bits)
                return
            if weight_bytes(cell) + ROOM > total_memory():
                log.info("%s is left out: %.1f GB of weights do not fit", cell.key, weight_bytes(cell) / 1e9)
                continue
            start = time.monotonic()
            try:
                row = measured(cell, files, setting, names)
            except subprocess.SubprocessError as error:
                log.warning("%s is left out, it failed: %s", cell.key, error)
                continue
            results.add(row | {"code": results.code, "machine": describe()})
            log.info("%s measured in %.0f s", cell.key, time.monotonic() - start)
        files.drop(shape, bits)


def weight_bytes(cell: Cell) -> int:
    """What a checkpoint of this shape and width holds, before it is made."""
    from make_checkpoint import entries

    return sum(entry.nbytes for entry in entries(SHAPES[cell.shape], cell.bits))


def total_memory() -> int:
    """Bytes of memory of the machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the model table and write it into the documentation.")
    parser.add_argument("--minutes", type=float, default=35.0, help="no cell begins later than this")
    parser.add_argument("--quick", action="store_true", help="only the 9B at 4 bits and the 0.8B")
    parser.add_argument("--only", help="only cells whose key contains this, such as 9b/4")
    parser.add_argument("--python", default=sys.executable, help="interpreter that has the peers")
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--wrap", default="", help="command to put before that of every measuring process")
    parser.add_argument("--folder", type=Path, default=ROOT / "out" / "bench", help="for results and checkpoints")
    parser.add_argument("--keep", action="store_true", help="do not remove checkpoints")
    parser.add_argument("--section", default="", help="name of the section in the documentation, for figures of another machine")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs" / "benchmarks.md")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    results = Results(options.folder / "results.jsonl", f"{code_version()} {options.backend}")
    wanted = [
        replace(cell, plan=replace(cell.plan, backend=options.backend))
        for cell in cells(options.quick)
        if not options.only or options.only in cell.key
    ]
    todo = [cell for cell in wanted if not results.has(cell.key)]
    log.info("%d of %d cells are to be measured", len(todo), len(wanted))
    files = Files(options.folder, options.python, options.keep)
    setting = Setting(options.python, tuple(shlex.split(options.wrap)))
    run_cells(todo, results, files, setting, time.monotonic() + 60 * options.minutes)
    speed_report.write(options.docs, list(results.rows.values()), options.section)


if __name__ == "__main__":
    main()
