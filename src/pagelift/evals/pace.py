"""What a model takes of the machine: memory of the process, and tokens per second in a short measurement."""

from __future__ import annotations

import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pagelift.backends import Ragged, SequenceCache
from pagelift.models import Model, Step, text_positions
from pagelift.runtime import LoadedModel

PROMPT_TOKENS = 512
STEPS = 16
PATIENCE_S = 20.0
"""No measurement is begun again after this time."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Tokens per second: of a prompt of 512 tokens, and of one answer behind it at one token per pass over the weights."""

    prefill: float
    decode: float


def measure_pace(loaded: LoadedModel) -> Pace:
    """Time a loaded model: the better of two prompts, the median step."""
    model = loaded.model
    count = min(PROMPT_TOKENS, model.config.text.max_positions - STEPS - 1)
    cache, seconds = _prefill(model, count)
    if seconds < PATIENCE_S / 2:
        cache, again = _prefill(model, count)
        seconds = min(seconds, again)
    steps: list[float] = []
    start = time.perf_counter()
    while len(steps) <= STEPS and (len(steps) < 3 or time.perf_counter() - start < PATIENCE_S):
        begin = time.perf_counter()
        _step(model, cache, 1)
        steps.append(time.perf_counter() - begin)
    return Pace(count / seconds, 1 / statistics.median(steps[1:]))


def peak_bytes() -> int:
    """The most memory that this process has held, mapped files included; with MLX also what its own allocator counts."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next((line for line in status.read_text().splitlines() if line.startswith("VmHWM")), None)
        most = int(line.split()[1]) * 1024 if line else 0
    else:
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    mlx = sys.modules.get("mlx.core")
    return max(most, int(mlx.get_peak_memory())) if mlx is not None else most


def _prefill(model: Model, count: int) -> tuple[SequenceCache, float]:
    cache = model.new_cache()
    start = time.perf_counter()
    _step(model, cache, count)
    return cache, time.perf_counter() - start


def _step(model: Model, cache: SequenceCache, count: int) -> None:
    """Some tokens, whatever they are, and the logits behind the last."""
    tokens = np.arange(cache.length, cache.length + count) % model.config.text.vocab_size
    batch = Ragged.of([(cache, count, False)], [count if cache.length < PROMPT_TOKENS else 0])
    hidden = model.forward(Step(tokens, text_positions(cache.length, count), batch))
    model.logits(hidden, batch.last_rows)
