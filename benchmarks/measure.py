"""One process that loads a checkpoint, measures what a plan asks for and prints it as JSON; `speed.py` starts it.

    python benchmarks/measure.py FOLDER '{"prompt": 512, "batches": [1]}'

Peak memory belongs to a process, so every measurement gets its own, with nothing in it but the model.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from machine import Others, peak_bytes
from sizes import Sizes

from pagelift.backends import Backend, Ragged, SequenceCache, open_backend
from pagelift.models import Grid, Model, Step, open_model, text_positions
from pagelift.runtime.settings import STEP_TOKENS

PAGE = (1088, 1408)  # pixels of the largest page that a model is given
FILL_ROWS = 2048


@dataclass(frozen=True, slots=True)
class Plan:
    """prompt: tokens of a prefill, 0 for none. batches: numbers of sequences to decode together after it. context: tokens that the
    cache holds before decoding, filled beyond the prompt with random keys and values. page: encode a page first, through the first
    page_blocks blocks of the vision tower, 0 for all.

    peer_prompt: the most tokens of a prefill of llama.cpp, whose speed does not grow beyond that and would take minutes.
    Everything is repeated up to `repeats` times, a step of decoding 3 to `steps` times, until decode_s seconds are spent on it.
    """

    prompt: int = 512
    batches: tuple[int, ...] = (1,)
    context: int = 0
    page: bool = False
    page_blocks: int = 0
    backend: str = "cpu"
    peer_prompt: int = 128
    step_tokens: int = STEP_TOKENS
    repeats: int = 3
    steps: int = 15
    decode_s: float = 15.0


class Bench:
    """A model and how long what it does takes."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        start = time.perf_counter()
        self.backend: Backend = open_backend(plan.backend)
        self.model: Model = open_model(folder, self.backend)
        self.load_s = time.perf_counter() - start
        self.plan = plan
        if plan.page_blocks:
            tower: Any = self.model
            tower._vision._blocks = tower._vision._blocks[: plan.page_blocks]
        self.rng = np.random.default_rng(0)

    def step(self, parts: list[tuple[SequenceCache, int]], prompt: bool = False) -> np.ndarray:
        """Random tokens through the model, of prompts or of answers; the likeliest next token of each sequence."""
        batch = Ragged.of([(cache, length, False) for cache, length in parts], [length * prompt for _, length in parts])
        tokens = self.rng.integers(0, self.model.config.text.vocab_size, batch.rows)
        positions = np.concatenate([text_positions(cache.length, length) for cache, length in parts], axis=1)
        hidden = self.model.forward(Step(tokens, positions, batch))
        return self.model.logits(hidden, batch.last_rows).argmax(axis=1)

    def prefill(self, tokens: int) -> SequenceCache:
        """A new sequence of `tokens` tokens, in steps as the runner makes them."""
        cache = self.model.new_cache()
        for start in range(0, tokens, self.plan.step_tokens):
            self.step([(cache, min(self.plan.step_tokens, tokens - start))], prompt=True)
        return cache

    def decode(self, cache: SequenceCache, batch: int) -> list[float]:
        """Seconds of each step of `batch` copies of a sequence, after one that is not counted."""
        parts = [(cache.copy(), 1) for _ in range(batch)]
        self.step(parts)
        times: list[float] = []
        while len(times) < 3 or (len(times) < self.plan.steps and sum(times) < self.plan.decode_s):
            times.append(seconds(lambda: self.step(parts)))
        return times

    def encode_page(self) -> float:
        """Seconds of the vision tower for one page."""
        vision = self.model.config.vision
        assert vision is not None
        columns, rows = (side // vision.patch_size for side in PAGE)
        patches = self.rng.standard_normal((rows * columns, vision.patch_features), np.float32)
        return seconds(lambda: self.model.encode(patches, [Grid(1, rows, columns)]))

    def fill(self, cache: SequenceCache, tokens: int) -> SequenceCache:
        """`cache` continued by random keys and values in every full-attention layer, which the recurrent states know nothing of.

        Through the backend's attention with one query head for each key head: the numbers are as good as any for timing, and a
        tenth of a prefill's work.
        """
        text = self.model.config.text
        fresh = SequenceCache(cache.copy().layers, cache.length)
        for index in (i for i, kind in enumerate(text.layer_types) if kind == "full_attention"):
            for start in range(0, tokens, FILL_ROWS):
                rows = min(FILL_ROWS, tokens - start)
                q, k, v = (
                    self.backend.from_numpy(self.rng.standard_normal((rows, text.kv_heads, text.head_dim), np.float32)) for _ in range(3)
                )
                self.backend.evaluate(self.backend.attention(q, k, v, Ragged.of([(fresh, rows, False)]), [fresh.layers[index]]))
        fresh.advance(tokens, False)
        return fresh


def seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def samples(call: Callable[[], float], plan: Plan) -> list[float]:
    """Seconds by `call`, at most plan.repeats of them and none after plan.decode_s are spent."""
    times = [call()]
    while len(times) < plan.repeats and sum(times) < plan.decode_s:
        times.append(call())
    return times


def measure(folder: Path, plan: Plan) -> dict[str, Any]:
    """What `plan` asks for: times in seconds, sizes in bytes, by name."""
    others = Others()
    bench = Bench(folder, plan)
    result: dict[str, Any] = {"load_s": bench.load_s, "first_pass_s": seconds(lambda: bench.prefill(1))}
    if plan.page:
        result["page_s"] = samples(bench.encode_page, plan)
    result["prefill_s"] = samples(lambda: seconds(lambda: bench.prefill(plan.prompt)), plan) if plan.prompt else []
    result["decode_s"] = {}
    if plan.batches:
        cache = bench.prefill(plan.prompt)
        if plan.context > plan.prompt:
            result["short_decode_s"] = bench.decode(cache, plan.batches[0])
            cache = bench.fill(cache, plan.context - plan.prompt)
        result["decode_s"] = {batch: bench.decode(cache, batch) for batch in plan.batches}
        result["cache_bytes"] = cache.nbytes
        result["cache_formula_bytes"] = Sizes.of(folder).cache_bytes(cache.length)
    return result | {
        "peak_bytes": peak_bytes(),
        "other_cores": others.cores(),
        "level": getattr(bench.backend, "level", None),
        "threads": getattr(bench.backend, "threads", None),
    }


def run(folder: Path, plan: Plan, command: Sequence[str] = (), timeout_s: float = 3600.0) -> dict[str, Any]:
    """`measure` in a process of its own, or what another script measures for the same plan.

    command: of the process, before the folder and the plan. Raises CalledProcessError or TimeoutExpired.
    """
    arguments = [*(command or (sys.executable, __file__)), str(folder), json.dumps(asdict(plan))]
    done = subprocess.run(arguments, check=True, stdout=subprocess.PIPE, timeout=timeout_s)
    result: dict[str, Any] = json.loads(done.stdout)
    if "decode_s" in result:
        result["decode_s"] = {int(batch): times for batch, times in result["decode_s"].items()}
    return result


if __name__ == "__main__":
    folder, plan = sys.argv[1:]
    sys.stdout.write(json.dumps(measure(Path(folder), Plan(**json.loads(plan)))) + "\n")
