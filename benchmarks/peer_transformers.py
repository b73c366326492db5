"""PyTorch (transformers) with random weights of a checkpoint's shape, in bfloat16 where the processor has instructions for it, else in
float32. Run by `peers.py` with a Python that has both.

python benchmarks/peer_transformers.py FOLDER '{"page": true}'      the vision tower, one page
python benchmarks/peer_transformers.py FOLDER '{"prompt": 512, ...}'  prefill and decoding of text
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
import transformers
from machine import Others, describe, peak_bytes, processors
from transformers.models.qwen3_5 import modeling_qwen3_5 as qwen
from transformers.models.qwen3_5.configuration_qwen3_5 import Qwen3_5TextConfig, Qwen3_5VisionConfig

PAGE = (1088, 1408)
TYPE = torch.bfloat16 if {"avx512_bf16", "amx_bf16", "bf16"} & set(describe()["features"]) else torch.float32
"""Emulated, bfloat16 is many times slower than float32."""


def random_model(kind: Any, config: Any) -> Any:
    """A model whose weights are small random numbers; drawing them properly would take minutes."""
    with torch.device("meta"):
        model = kind(config)
    model = model.to(TYPE).to_empty(device="cpu").eval()
    generator = torch.Generator().manual_seed(0)
    pool = (torch.rand(1 << 20, generator=generator) - 0.5).to(TYPE) * 0.05
    with torch.no_grad():
        for part in (*model.parameters(), *model.buffers()):
            part.copy_(pool.repeat(part.numel() // len(pool) + 1)[: part.numel()].reshape(part.shape))
    return model


def page(values: dict[str, Any], plan: dict[str, Any]) -> dict[str, Any]:
    """Seconds of the vision tower for one page of the largest size."""
    config = Qwen3_5VisionConfig(**values["vision_config"])
    config._attn_implementation = "sdpa"
    config.depth = plan["page_blocks"] or config.depth
    model = random_model(qwen.Qwen3_5VisionModel, config)
    columns, rows = (side // config.patch_size for side in PAGE)
    features = config.in_channels * config.temporal_patch_size * config.patch_size**2
    patches, grid = torch.randn(rows * columns, features).to(TYPE), torch.tensor([[1, rows, columns]])
    return {"page_s": timed(lambda: model(patches, grid_thw=grid), plan["repeats"], plan["decode_s"])}


def text(values: dict[str, Any], plan: dict[str, Any]) -> dict[str, Any]:
    """Seconds of a prefill, and of steps of one token after it."""
    config = Qwen3_5TextConfig(**values["text_config"])
    config._attn_implementation = "sdpa"
    model = random_model(qwen.Qwen3_5ForCausalLM, config)
    tokens = torch.randint(0, config.vocab_size, (1, plan["prompt"]))
    prefill_s = timed(lambda: model(tokens, use_cache=True, logits_to_keep=1), plan["repeats"], plan["decode_s"])
    cache = model(tokens, use_cache=True, logits_to_keep=1).past_key_values
    decode_s = timed(lambda: model(tokens[:, :1], past_key_values=cache, use_cache=True), plan["steps"], plan["decode_s"])
    return {"prefill_s": prefill_s, "decode_s": {1: decode_s}}


def timed(call: Any, most: int, budget_s: float) -> list[float]:
    """Seconds of each call after the first, at most `most` and about `budget_s` of them; at least one."""
    call()
    times: list[float] = []
    while not times or (len(times) < most and sum(times) < budget_s):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return times


def main() -> None:
    folder, plan = Path(sys.argv[1]), json.loads(sys.argv[2])
    torch.set_num_threads(processors())
    values = json.loads((folder / "config.json").read_text())
    others = Others()
    with torch.inference_mode():
        result = page(values, plan) if plan["page"] else text(values, plan)
    result |= {"version": f"transformers {transformers.__version__}, torch {torch.__version__} in {str(TYPE).removeprefix('torch.')}"}
    sys.stdout.write(json.dumps(result | {"peak_bytes": peak_bytes(), "other_cores": others.cores()}) + "\n")


if __name__ == "__main__":
    main()
