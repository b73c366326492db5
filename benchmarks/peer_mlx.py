"""mlx-vlm on our checkpoint folder. On a Mac this is its Metal speed; elsewhere MLX computes on the processor, slowly.

    python benchmarks/peer_mlx.py FOLDER '{"prompt": 512, "batches": [1]}'

`peers.py` runs it with a Python that has mlx-vlm. One sequence only.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx_vlm
import numpy as np
from machine import Others, peak_bytes
from mlx_vlm.models.cache import make_prompt_cache
from mlx_vlm.utils import load_model

SLOW_PROMPT = 32  # tokens of a prompt where MLX has no GPU


def timed(call: Callable[[], Any], most: int, budget_s: float) -> list[float]:
    """Seconds of each call, at most `most` and about `budget_s` of them; at least one."""
    times: list[float] = []
    while not times or (len(times) < most and sum(times) < budget_s):
        start = time.perf_counter()
        mx.eval(call())
        times.append(time.perf_counter() - start)
    return times


def measure(folder: Path, plan: dict[str, Any]) -> dict[str, Any]:
    """The samples of a plan. Without a GPU the prompt is cut to SLOW_PROMPT tokens."""
    others, start = Others(), time.perf_counter()
    model = load_model(folder).language_model
    load_s = time.perf_counter() - start
    count = plan["prompt"] if mx.metal.is_available() else min(plan["prompt"], SLOW_PROMPT)
    tokens = mx.array(np.random.default_rng(0).integers(0, 200_000, (1, count)))
    mx.eval(model(tokens[:, :1], cache=make_prompt_cache(model)).logits)
    prefill_s = timed(lambda: model(tokens, cache=make_prompt_cache(model)).logits[:, -1], plan["repeats"], plan["decode_s"])
    cache = make_prompt_cache(model)
    mx.eval(model(tokens, cache=cache).logits)
    decode_s = timed(lambda: model(tokens[:, :1], cache=cache).logits.argmax(-1), plan["steps"], plan["decode_s"])
    return {
        "version": f"mlx-vlm {mlx_vlm.__version__}, mlx {mx.__version__}",
        "load_s": load_s,
        "prompt": count,
        "prefill_s": prefill_s,
        "decode_s": {1: decode_s},
        "peak_bytes": peak_bytes(),
        "other_cores": others.cores(),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure(Path(sys.argv[1]), json.loads(sys.argv[2]))) + "\n")
