"""Speed of the token mixing of the cpu backend at the shapes of one layer: attention, gated DeltaNet, norms and activations.

    python benchmarks/mixing.py [--shape 9b] [--threads N] [--level L] [--kv bf16] [--only NAME]

Prints one JSON object a line: the operation, its median time, and what moves or is computed in a second.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from shapes import SHAPES, Shape

from pagelift.backends import AttentionHeads, DeltaNet, LayerNorm, Ragged, RmsNorm, RotaryTable, SequenceCache
from pagelift.backends.cpu import CpuBackend

PATCHES = 68 * 88  # of the largest page that a model is given
STEP = 512


@dataclass(frozen=True, slots=True)
class Case:
    """One operation of one layer: what it computes (multiplications and additions count apart) and what it reads and writes."""

    name: str
    run: Callable[[], Any]
    flops: float
    bytes: float


@dataclass(frozen=True, slots=True)
class Timing:
    name: str
    ms: float
    gflops: float
    gbs: float


class Mixing:
    """The operations of one layer of `shape`, on random operands."""

    def __init__(self, backend: CpuBackend, shape: Shape) -> None:
        self.backend, self.shape = backend, shape
        self.rng = np.random.default_rng(0)

    def normal(self, *shape: int) -> np.ndarray:
        return self.rng.standard_normal(shape, np.float32)

    def cases(self, part: str = "") -> Iterator[Case]:
        """All operations whose name contains `part`; operands are made when a case is asked for."""
        for context, rows in ((PATCHES, 0), (STEP, STEP), (2048, STEP), (16384, STEP), (512, 1), (32768, 1), (512, 8), (32768, 8)):
            name = f"attention {rows} rows of {context}" if rows else f"picture_attention {context} patches"
            if part in name:
                yield self.attention(name, context, rows) if rows else self.picture_attention(name)
        for rows, draft in ((STEP, False), (1, False), (8, True)):
            name = f"delta_net {rows} rows" + (", a draft of which half is kept" if draft else "")
            if part in name:
                yield self.delta_net(name, rows, draft)
        for rows in (STEP, 1):
            yield from (case for case in self.row_operations(rows) if part in case.name)

    def picture_attention(self, name: str) -> Case:
        vision = self.shape.vision
        qkv, angles = self.normal(PATCHES, 3 * vision.hidden), self.normal(PATCHES, vision.hidden // vision.heads // 2)
        table = RotaryTable(np.cos(angles), np.sin(angles))
        run = lambda: self.backend.picture_attention(qkv, vision.heads, table, [PATCHES])  # noqa: E731
        return Case(name, run, 4.0 * PATCHES**2 * vision.hidden, 16.0 * PATCHES * vision.hidden)

    def attention(self, name: str, context: int, rows: int) -> Case:
        """`rows` new tokens after context - rows that are cached."""
        shape, backend = self.shape, self.backend
        norm = RmsNorm(self.normal(shape.head_dim), 1e-6)
        heads = AttentionHeads(shape.heads, shape.kv_heads, shape.head_dim, norm, norm)
        cache = SequenceCache([backend.new_kv_cache(heads)])
        self.fill(cache, heads, context - rows)
        widths = (2 * shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim, shape.kv_heads * shape.head_dim)
        qkv = tuple(self.normal(rows, width) for width in widths)
        angles = self.normal(rows, shape.head_dim // 8)
        table = RotaryTable(np.cos(angles), np.sin(angles))

        def run() -> None:
            backend.head_attention(qkv, heads, table, Ragged.of([(cache, rows, False)]), cache.layers)
            cache.layers[0].keep(0, rows)

        pairs = rows * (context - rows) + rows * (rows + 1) / 2
        read = cache.nbytes if rows < STEP else 0
        return Case(name, run, 4.0 * pairs * shape.heads * shape.head_dim, float(read))

    def fill(self, cache: SequenceCache, heads: AttentionHeads, tokens: int) -> None:
        """Random keys and values, through attention with one query head per KV head."""
        while tokens:
            rows = min(tokens, 2048)
            q, k, v = (self.normal(rows, heads.kv_heads, heads.head_dim) for _ in range(3))
            self.backend.attention(q, k, v, Ragged.of([(cache, rows, False)]), cache.layers)
            tokens -= rows

    def delta_net(self, name: str, rows: int, draft: bool) -> Case:
        shape, backend, dim = self.shape, self.backend, self.shape.linear_dim
        heads = shape.linear_value_heads
        small = [self.normal(*size) for size in ((shape.channels, 4), (heads,), (heads,), (dim,))]
        net = DeltaNet(shape.linear_key_heads, heads, dim, dim, *small[:3], RmsNorm(small[3], 1e-6))
        cache = SequenceCache([backend.new_delta_state(net)])
        projected = tuple(self.normal(rows, width) for width in (shape.channels, heads * dim, heads, heads))

        def run() -> None:
            backend.delta_net(projected, net, Ragged.of([(cache, rows, draft)]), cache.layers)
            if draft:
                cache.layers[0].keep(rows // 2, rows)

        state = heads * dim * dim
        return Case(name, run, 7.0 * rows * state, 8.0 * state)

    def row_operations(self, rows: int) -> Iterator[Case]:
        shape, backend = self.shape, self.backend
        x, gate, up = self.normal(rows, shape.hidden), self.normal(rows, shape.inner), self.normal(rows, shape.inner)
        norm, layer = RmsNorm(self.normal(shape.hidden), 1e-6), LayerNorm(self.normal(shape.hidden), self.normal(shape.hidden), 1e-6)
        yield Case(f"rms_norm {rows} rows", lambda: backend.rms_norm(x, norm), 3.0 * x.size, 8.0 * x.size)
        yield Case(f"layer_norm {rows} rows", lambda: backend.layer_norm(x, layer), 5.0 * x.size, 8.0 * x.size)
        yield Case(f"silu_mul {rows} rows", lambda: backend.silu_mul(gate, up), 3.0 * up.size, 12.0 * up.size)
        yield Case(f"gelu {rows} rows", lambda: backend.gelu(gate, "tanh"), 6.0 * up.size, 8.0 * up.size)


def time_case(case: Case, budget_s: float = 1.5) -> Timing:
    """The median of at least three runs after one that is not counted."""
    case.run()
    times: list[float] = []
    while len(times) < 3 or (len(times) < 100 and sum(times) < budget_s):
        start = time.perf_counter()
        case.run()
        times.append(time.perf_counter() - start)
    seconds = statistics.median(times)
    return Timing(case.name, round(1e3 * seconds, 4), round(case.flops / seconds / 1e9, 1), round(case.bytes / seconds / 1e9, 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=list(SHAPES), default="9b")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--level")
    parser.add_argument("--kv", choices=("bf16", "int8", "f32"))
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    backend = CpuBackend(options.threads, options.level, kv=options.kv)
    for case in Mixing(backend, SHAPES[options.shape]).cases(options.only):
        sys.stdout.write(json.dumps(asdict(time_case(case))) + "\n")


if __name__ == "__main__":
    main()
