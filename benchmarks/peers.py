"""Other programs on the same shapes, each in a process of its own, one after the other in rounds, so that noise hits all alike.

    python benchmarks/peers.py CHECKPOINT [--gguf FILE] [--python PYTHON] [--prompt 512] [--batches 1,8] [--page] [--rounds 2]

Prints one JSON object: for each program the medians over all rounds, and what ours are as a multiple of theirs. Peers are looked for
in PYTHON, an interpreter of their own environment; what is not there is left out, with a line saying how to install it.
"""

from __future__ import annotations

import argparse
import json
import logging
import shlex
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import measure
from machine import describe, run_limits

log = logging.getLogger(__name__)
HERE = Path(__file__).parent
OURS = "pagelift"


@dataclass(frozen=True, slots=True)
class Peer:
    """module: tells whether it is installed. script: measures a plan. reads_gguf: takes the GGUF file instead of our folder."""

    module: str
    script: str
    install: str
    reads_gguf: bool = False


PEERS = {
    "llama.cpp": Peer(
        "llama_cpp",
        "peer_llama.py",
        'CMAKE_ARGS="-DGGML_NATIVE=OFF -DGGML_AVX512=ON -DGGML_AVX512_VBMI=ON -DGGML_AVX512_VNNI=ON -DGGML_AVX512_BF16=ON -DGGML_AVX2=ON '
        '-DGGML_FMA=ON -DGGML_F16C=ON -DGGML_BMI2=ON" pip install --no-binary llama-cpp-python llama-cpp-python gguf',
        reads_gguf=True,
    ),
    "transformers": Peer("transformers.models.qwen3_5", "peer_transformers.py", "pip install torch transformers"),
    "mlx-vlm": Peer("mlx_vlm.models.qwen3_5", "peer_mlx.py", "pip install mlx-vlm 'mlx[cpu]'"),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """python: of the peers' environment. wrap: a command before that of every process, such as `taskset -c 0,1`.

    A run during which other processes kept more than `disturbed` cores busy is repeated, at most `tries` times; the least disturbed
    one counts.
    """

    python: str = sys.executable
    wrap: tuple[str, ...] = ()
    rounds: int = 2
    disturbed: float = 0.1
    tries: int = 3


def installed(name: str, python: str) -> bool:
    """Whether a peer can be imported; if not, a line is logged that says how to install it."""
    peer = PEERS[name]
    found = subprocess.run([python, "-c", f"import {peer.module}"], capture_output=True, check=False).returncode == 0
    if not found:
        log.warning("%s is left out, %s does not have it; install it with: %s", name, python, peer.install)
    return found


def compare(files: Mapping[str, Path], plan: measure.Plan, setting: Setting) -> dict[str, dict[str, Any]]:
    """Measurements by program, the samples of all rounds together. files: what each program reads, OURS among them.

    A peer that fails is logged and left out.
    """
    merged: dict[str, dict[str, Any]] = {}
    failed: set[str] = set()
    for _ in range(setting.rounds):
        for name, path in files.items():
            if name in failed:
                continue
            script = HERE / ("measure.py" if name == OURS else PEERS[name].script)
            command = (*setting.wrap, sys.executable if name == OURS else setting.python, str(script))
            try:
                merged[name] = merge(merged.get(name), calm_run(path, plan, command, setting))
            except (subprocess.SubprocessError, ValueError) as error:
                if name == OURS:
                    raise
                log.warning("%s is left out, it failed: %s", name, error)
                failed.add(name)
    return merged


def calm_run(path: Path, plan: measure.Plan, command: Sequence[str], setting: Setting) -> dict[str, Any]:
    """A run that others disturbed little, or the least disturbed of some."""
    runs: list[dict[str, Any]] = []
    for _ in range(setting.tries):
        runs.append(measure.run(path, plan, command))
        if (runs[-1]["other_cores"] or 0.0) <= setting.disturbed:
            break
    return min(runs, key=lambda run: run["other_cores"] or 0.0)


def merge(first: dict[str, Any] | None, second: dict[str, Any]) -> dict[str, Any]:
    """Samples of both; of everything else the larger."""
    if first is None:
        return second
    result = dict(first)
    for key, value in second.items():
        if isinstance(value, list):
            result[key] = first[key] + value
        elif isinstance(value, dict):
            result[key] = {name: first[key][name] + times for name, times in value.items()}
        elif isinstance(value, int | float) and first[key] is not None:
            result[key] = max(first[key], value)
    return result


def speeds(run: Mapping[str, Any], plan: measure.Plan) -> dict[str, float]:
    """What a run's samples come to, by the names of `speed.py`; decode_tps_8 is that of 8 sequences together."""
    result: dict[str, float] = {}
    if "page_s" in run:
        result["page_s"] = statistics.median(run["page_s"])
    if run.get("prefill_s"):
        result["prefill_tps"] = run.get("prompt", plan.prompt) / statistics.median(run["prefill_s"])
    for batch, times in run.get("decode_s", {}).items():
        result[f"decode_tps_{batch}"] = batch / statistics.median(times)
    return result | {key: run[key] for key in ("load_s",) if key in run} | {"peak_gb": run["peak_bytes"] / 1e9}


def ratios(ours: Mapping[str, float], theirs: Mapping[str, float]) -> dict[str, float]:
    """How many times as fast we are, for everything both have measured."""
    faster = {key: ours[key] / theirs[key] for key in theirs if "_tps" in key and key in ours}
    return faster | {"page_s": theirs["page_s"] / ours["page_s"]} if "page_s" in theirs and "page_s" in ours else faster


def chosen(checkpoint: Path, gguf: Path | None, names: Sequence[str], python: str) -> dict[str, Path]:
    """The file or folder that each program reads, of those that are installed."""
    files = {OURS: checkpoint}
    for name in names:
        path = gguf if PEERS[name].reads_gguf else checkpoint
        if path is not None and installed(name, python):
            files[name] = path
    return files


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure other programs beside ours.")
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--gguf", type=Path, help="the same shape for llama.cpp, by make_gguf.py")
    parser.add_argument("--python", default=sys.executable, help="interpreter that has the peers")
    parser.add_argument("--only", choices=PEERS, action="append", help="only this peer; may be repeated")
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--batches", default="1", help="numbers of sequences, with commas; empty for none")
    parser.add_argument("--page", action="store_true", help="the vision tower on one page instead of text")
    parser.add_argument("--page-blocks", type=int, default=0, metavar="N", help="only its first N blocks")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--wrap", default="", help="command to put before that of every process")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    batches = tuple(int(part) for part in options.batches.split(",") if part)
    plan = measure.Plan(prompt=options.prompt, batches=batches, page=options.page)
    if options.page:
        plan = replace(plan, prompt=0, batches=(), page_blocks=options.page_blocks)
    setting = Setting(options.python, tuple(shlex.split(options.wrap)), options.rounds)
    files = chosen(options.checkpoint, options.gguf, options.only or list(PEERS), options.python)
    runs = compare(files, plan, setting)
    found = {name: speeds(run, plan) for name, run in runs.items()}
    result: dict[str, Any] = {
        "machine": describe() | run_limits(setting.wrap),
        "plan": {"prompt": plan.prompt, "page": plan.page, "page_blocks": plan.page_blocks},
        "speeds": found,
    }
    result["times_as_fast"] = {name: ratios(found[OURS], theirs) for name, theirs in found.items() if name != OURS}
    result["versions"] = {name: run["version"] for name, run in runs.items() if "version" in run}
    sys.stdout.write(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
