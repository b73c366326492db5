"""llama.cpp on a GGUF file: what `measure.py` measures, printed in the same form.

`peers.py` runs it with a Python that has llama-cpp-python.

python benchmarks/peer_llama.py FILE.gguf '{"prompt": 512, "batches": [1]}'
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from typing import Any

import llama_cpp as llama
import numpy as np
from machine import Others, peak_bytes, processors

SILENT = llama.llama_log_callback(lambda *_: None)
UBATCH = 512  # tokens of a pass, llama.cpp's own default


class Bench:
    """A model and a context for the largest batch of the plan."""

    def __init__(self, path: str, plan: dict[str, Any]) -> None:
        start = time.perf_counter()
        llama.llama_log_set(SILENT, ctypes.c_void_p(0))
        llama.llama_backend_init()
        self.model = llama.llama_model_load_from_file(path.encode(), llama.llama_model_default_params())
        if not self.model:
            raise RuntimeError(f"llama.cpp does not load {path}")
        settings = llama.llama_context_default_params()
        settings.n_seq_max = 1 + max(plan["batches"], default=0)
        settings.n_ctx = settings.n_seq_max * (plan["prompt"] + 256)
        settings.n_batch = settings.n_ubatch = UBATCH
        settings.n_threads = settings.n_threads_batch = processors()
        self.context = llama.llama_init_from_model(self.model, settings)
        self.memory = llama.llama_get_memory(self.context)
        self.vocabulary = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(self.model))
        self.load_s = time.perf_counter() - start
        self.rng = np.random.default_rng(0)

    def step(self, rows: list[tuple[int, int, bool]]) -> None:
        """Random tokens at (sequence, position, whether its logits are wanted); reads the likeliest next token of those."""
        batch = llama.llama_batch_init(len(rows), 0, 1)
        batch.n_tokens = len(rows)
        for row, (sequence, position, wanted) in enumerate(rows):
            batch.token[row] = int(self.rng.integers(0, self.vocabulary))
            batch.pos[row] = position
            batch.n_seq_id[row] = 1
            batch.seq_id[row][0] = sequence
            batch.logits[row] = wanted
        if llama.llama_decode(self.context, batch):
            raise RuntimeError("llama_decode failed")
        for row, (_, _, wanted) in enumerate(rows):
            if wanted:
                logits = llama.llama_get_logits_ith(self.context, row)
                np.ctypeslib.as_array(ctypes.cast(logits, ctypes.POINTER(ctypes.c_float)), (self.vocabulary,)).argmax()
        llama.llama_batch_free(batch)

    def prefill(self, tokens: int) -> None:
        """Sequence 0 of `tokens` tokens, and nothing else in memory."""
        llama.llama_memory_clear(self.memory, True)
        for start in range(0, tokens, UBATCH):
            end = min(start + UBATCH, tokens)
            self.step([(0, position, position == tokens - 1) for position in range(start, end)])

    def decode(self, start: int, batch: int, plan: dict[str, Any]) -> list[float]:
        """Seconds of each step of `batch` copies of sequence 0, which has `start` tokens, after a step that is not counted."""
        sequences = range(1, 1 + batch)
        for sequence in sequences:
            llama.llama_memory_seq_rm(self.memory, sequence, -1, -1)
            llama.llama_memory_seq_cp(self.memory, 0, sequence, -1, -1)
        self.step([(sequence, start, True) for sequence in sequences])
        times: list[float] = []
        while len(times) < 3 or (len(times) < plan["steps"] and sum(times) < plan["decode_s"]):
            begin, position = time.perf_counter(), start + 1 + len(times)
            self.step([(sequence, position, True) for sequence in sequences])
            times.append(time.perf_counter() - begin)
        return times


def measure(path: str, plan: dict[str, Any]) -> dict[str, Any]:
    others = Others()
    plan["prompt"] = min(plan["prompt"], plan["peer_prompt"])
    bench = Bench(path, plan)
    bench.prefill(1)
    times: list[float] = []
    while not times or (len(times) < plan["repeats"] and sum(times) < plan["decode_s"]):
        begin = time.perf_counter()
        bench.prefill(plan["prompt"])
        times.append(time.perf_counter() - begin)
    decoded = {batch: bench.decode(plan["prompt"], batch, plan) for batch in plan["batches"]}
    return {
        "version": f"llama-cpp-python {llama.__version__}",
        "features": llama.llama_print_system_info().decode(),
        "load_s": bench.load_s,
        "prompt": plan["prompt"],
        "prefill_s": times,
        "decode_s": decoded,
        "peak_bytes": peak_bytes(),
        "other_cores": others.cores(),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure(sys.argv[1], json.loads(sys.argv[2]))) + "\n")
