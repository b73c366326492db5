"""The memory that `pagelift quantize` holds, beside what two blocks and their statistics take by formula.

    python benchmarks/make_checkpoint.py WORK/16-bits --shape 9b --bits 16 --layers 4
    python benchmarks/quantize_memory.py WORK/16-bits WORK/oQ4 [--target oQ4 --method best ...: options of quantize]

A block is in memory at a time, so a few of the layers show what all of them would. Four short documents are made for the calibration.
Anonymous memory is what a process has for itself; what else is resident are pages of files, which the system takes back as it likes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from reportlab.pdfgen.canvas import Canvas

from pagelift.weights import load_checkpoint
from pagelift.weights.quant.formats import Module, Sizes

EVERY_S = 0.1
GB = 1e9
SCHEMA = {"type": "object", "properties": {"number": {"type": "string"}, "total": {"type": "number"}}}


def write_documents(folder: Path, count: int = 4) -> None:
    """Small pages of three lines with their true values, laid out as `--calibration` wants them."""
    for name in ("documents", "expected"):
        (folder / "notes" / name).mkdir(parents=True)
    (folder / "notes" / "schema.json").write_text(json.dumps(SCHEMA), encoding="utf-8")
    for index in range(count):
        canvas = Canvas(str(folder / "notes" / "documents" / f"{index}.pdf"), pagesize=(160, 120))
        for line, text in enumerate(("Invoice", f"Number R-{index}17", f"Total {index}9.50")):
            canvas.drawString(12, 90 - 24 * line, text)
        canvas.save()
        truth = {"number": f"R-{index}17", "total": index * 10 + 9.5}
        (folder / "notes" / "expected" / f"{index}.json").write_text(json.dumps(truth), encoding="utf-8")


def watched(command: Sequence[str]) -> dict[str, float]:
    """Run a command; the most anonymous and the most resident memory that it had, in GB, and its seconds."""
    start = time.monotonic()
    process = subprocess.Popen(command)
    most = {"RssAnon": 0, "VmHWM": 0}
    while process.poll() is None:
        try:
            status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
        except OSError:
            break
        for line in status.splitlines():
            name, _, rest = line.partition(":")
            if name in most:
                most[name] = max(most[name], int(rest.split()[0]) * 1024)
        time.sleep(EVERY_S)
    if process.wait():
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return {"anonymous": most["RssAnon"] / GB, "resident": most["VmHWM"] / GB, "seconds": time.monotonic() - start}


def by_formula(model: Path) -> dict[str, float]:
    """Two of the largest blocks in float32, and the second moments of a block's inputs with as much again for compensation, in GB."""
    blocks: dict[int | None, list[Module]] = {}
    for module in Sizes.of(load_checkpoint(model), tied=False).modules:
        blocks.setdefault(module.block, []).append(module)
    of_text = [block for number, block in blocks.items() if number is not None and block[0].name.startswith("text.")]
    largest = max(sum(module.parameters for module in block) for block in of_text)
    statistics = max(4 * sum(width**2 for width in _inputs(block).values()) for block in of_text)
    return {"two blocks": 2 * 4 * largest / GB, "statistics": 2 * statistics / GB}


def _inputs(block: Sequence[Module]) -> dict[tuple[bool, bool], int]:
    """Widths of the four inputs of a block: of its mixing layers and of their output, and of both halves of the feed-forward network."""
    return {(".mlp." in module.name, module.role in {"o_proj", "out_proj", "down_proj"}): module.in_features for module in block}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the memory that quantizing takes.")
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    given, options = parser.parse_known_args()
    effort = ["--documents", "0", "--sensitivity-documents", "0", "--held-out", "0"]
    with tempfile.TemporaryDirectory() as folder:
        write_documents(Path(folder))
        command = [sys.executable, "-m", "pagelift", "quantize", str(given.model), str(given.out), "--calibration", folder]
        found = watched([*command, *effort, *options])
    sys.stdout.write(json.dumps({name: round(value, 2) for name, value in (found | by_formula(given.model)).items()}) + "\n")


if __name__ == "__main__":
    main()
