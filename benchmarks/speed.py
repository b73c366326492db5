"""How fast a checkpoint runs here, as one JSON object.

    python benchmarks/speed.py OUT --json [--prompt 512] [--batch 1] [--context N] [--page] [--backend cpu]

prefill_tps            prompt tokens a second, in steps as the runner makes them
decode_tps             tokens a second of all sequences of the batch together; a step computes every logit
bandwidth_gbs          what the machine reads from memory, and
matmul_gflops          what it multiplies in bfloat16, or 8 bits without a unit for it, the better of before and after the run
int8_gops              the same in 8 bits
weight_bytes_per_token bytes of weights that one decoded token reads: the head whole, one row of the embeddings
load_s                 until the model is ready, and first_pass_s: one token then, which touches all weights
peak_gb                the most memory that the process of the model held, weights mapped from files included
bandwidth_share        bytes of weights that a step of decoding reads, by what the machine could read in its time
matmul_share           operations of the prefill in linear layers and attention, by matmul_gflops
other_cores            cores that other processes kept busy meanwhile; numbers with more than a few hundredths are too low
kv_and_state_gb        of one sequence as the caches say, and by formula: bfloat16 keys and values, float32 states
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

import measure
from machine import describe, processors, run_limits
from sizes import Sizes


def report(folder: Path, plan: measure.Plan) -> dict[str, Any]:
    """The JSON object, of the first batch of the plan."""
    before = run_limits()
    run = measure.run(folder, plan)
    after = run_limits()
    best = {key: max(before[key], after[key]) for key in before}
    return summary(Sizes.of(folder), plan, run, best) | {"machine": describe()}


def summary(sizes: Sizes, plan: measure.Plan, run: dict[str, Any], machine: dict[str, float]) -> dict[str, Any]:
    """What the measurements of one process come to."""
    batch = plan.batches[0]
    prefill_s, step_s = statistics.median(run["prefill_s"]), statistics.median(run["decode_s"][batch])
    result: dict[str, Any] = {
        "prefill_tps": plan.prompt / prefill_s,
        "decode_tps": batch / step_s,
        **machine,
        "weight_bytes_per_token": sizes.token_bytes,
        "load_s": run["load_s"],
        "peak_gb": run["peak_bytes"] / 1e9,
        "prompt": plan.prompt,
        "batch": batch,
        "context": max(plan.context, plan.prompt),
        "first_pass_s": run["first_pass_s"],
        "bandwidth_share": sizes.token_bytes / step_s / machine["bandwidth_gbs"] / 1e9,
        "matmul_share": sizes.prefill_flops(plan.prompt) / prefill_s / machine["matmul_gflops"] / 1e9,
        "weights_gb": sizes.weight_bytes / 1e9,
        "kv_and_state_gb": run["cache_bytes"] / 1e9,
        "kv_and_state_formula_gb": run["cache_formula_bytes"] / 1e9,
        "backend": plan.backend,
        "level": run["level"],
        "threads": run["threads"] or processors(),
        "step_tokens": plan.step_tokens,
        "other_cores": run["other_cores"],
    }
    return result | ({"page_s": statistics.median(run["page_s"])} if plan.page else {})


def lines(values: dict[str, Any]) -> str:
    """The same for people."""
    return "\n".join(f"{key:24} {round(value, 3) if isinstance(value, float) else value}" for key, value in values.items())


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure prefill, decoding and memory of a checkpoint.")
    parser.add_argument("folder", type=Path, help="checkpoint folder of any layout")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--prompt", type=int, default=512, help="tokens of the prompt")
    parser.add_argument("--batch", type=int, default=1, help="sequences that are decoded together")
    parser.add_argument("--context", type=int, default=0, help="decode at this many tokens; the cache is filled beyond the prompt")
    parser.add_argument("--page", action="store_true", help="also encode one page of the largest size")
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--step-tokens", type=int, default=measure.STEP_TOKENS, help="the most tokens in a step of prefill")
    options = parser.parse_args()
    if min(options.prompt, options.batch, options.step_tokens) < 1:
        parser.error("--prompt, --batch and --step-tokens are at least 1")
    plan = measure.Plan(
        prompt=options.prompt,
        batches=(options.batch,),
        context=options.context,
        page=options.page,
        backend=options.backend,
        step_tokens=options.step_tokens,
    )
    values = report(options.folder, plan)
    sys.stdout.write((json.dumps(values) if options.json else lines(values)) + "\n")


if __name__ == "__main__":
    main()
