"""Linear layers of the cpu backend against the limits of the machine: `python benchmarks/linear_layers.py [--json] [--shape OUT IN]`.

For every width, number of rows and kind of them (of prompts, of answers): the time of a layer, the weights read per second as a share of
the measured bandwidth, and the operations per second as a share of the measured speed of the same type. Layers take turns, so that their
weights come from memory.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product

import numpy as np

from pagelift.backends import Dense, HostTensor, Linear, Matrix, Packed
from pagelift.backends.cpu import CpuBackend, measure_bandwidth_gbs, measure_matmul_gflops

KINDS = ("2", "3", "4", "5", "6", "8", "bf16")
ROWS = (1, 4, 8, 16, 64, 512)
GROUP = 64


@dataclass(frozen=True, slots=True)
class Timing:
    """Of one layer over `rows` rows, of a prompt or of answers. Shares are of the limits measured in the same run."""

    kind: str
    rows: int
    prompt: bool
    ms: float
    gbs: float
    gflops: float
    bandwidth_share: float
    matmul_share: float


def layer(kind: str, out_features: int, in_features: int) -> Matrix:
    """A layer of random weights. kind: bits in groups of 64 with bf16 scales, or bf16."""
    rng = np.random.default_rng(0)
    if kind == "bf16":
        return Dense(HostTensor(rng.integers(0x3C00, 0x3E00, (out_features, in_features), np.uint16), "bf16"))
    bits = int(kind)
    codes = rng.integers(0, 2**32, (out_features, in_features * bits // 32), np.uint32)
    scales, offsets = (HostTensor(rng.integers(0x3C00, 0x3D00, (out_features, in_features // GROUP), np.uint16), "bf16") for _ in range(2))
    return Packed(HostTensor(codes, "u32"), scales, offsets, bits, GROUP)


def measure(shape: tuple[int, int], copies: int, seconds: float) -> Iterator[Timing]:
    """Timings of all kinds and rows; each is the best call within `seconds`."""
    bandwidth = measure_bandwidth_gbs()
    speeds = {kind: measure_matmul_gflops(kind) for kind in ("int8", "bf16", "f32")}
    backend = CpuBackend()
    out_features, in_features = shape
    for kind in KINDS:
        matrix = layer(kind, *shape)
        weights = [backend.load_linear(Linear(matrix)) for _ in range(copies)]
        nbytes = out_features * in_features * (2 if kind == "bf16" else int(kind) / 8 + 4 / GROUP)
        for rows, prompt in product(ROWS, (False, True)):
            limit = speeds["bf16" if kind == "bf16" or prompt else "int8"] or speeds["f32"]
            mask = np.full(rows, prompt)
            x = np.random.default_rng(1).standard_normal((rows, in_features), np.float32)
            best, end, turn = float("inf"), time.perf_counter() + seconds, 0
            while time.perf_counter() < end or turn < 2:
                start = time.perf_counter()
                backend.linear(x, weights[turn % copies], prompt=mask)
                best, turn = min(best, time.perf_counter() - start), turn + 1
            gbs, gflops = nbytes / best / 1e9, 2.0 * rows * out_features * in_features / best / 1e9
            yield Timing(kind, rows, prompt, best * 1e3, gbs, gflops, gbs / bandwidth, gflops / limit)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON list instead of a table")
    parser.add_argument("--shape", type=int, nargs=2, default=(12288, 4096), metavar=("OUT", "IN"))
    parser.add_argument("--copies", type=int, default=12, help="layers that take turns; together they should exceed the caches")
    parser.add_argument("--seconds", type=float, default=0.3, help="per timing")
    options = parser.parse_args()
    timings = measure(tuple(options.shape), options.copies, options.seconds)
    if options.json:
        sys.stdout.write(json.dumps([asdict(timing) for timing in timings], indent=1) + "\n")
        return
    titles = ("weights", "rows", "of", "ms", "GB/s", "of bandwidth", "GFLOP/s", "of matrix speed")
    sys.stdout.write(f"| {' | '.join(titles)} |\n{'|---' * len(titles)}|\n")
    for t in timings:
        of = "prompts" if t.prompt else "answers"
        shares = f"{t.gbs:.1f} | {t.bandwidth_share:.0%} | {t.gflops:.0f} | {t.matmul_share:.0%}"
        sys.stdout.write(f"| {t.kind} | {t.rows} | {of} | {t.ms:.2f} | {shares} |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
