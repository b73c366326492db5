"""The machine that a benchmark runs on: what it is, and the two limits that numbers are shares of.

    python benchmarks/machine.py

prints the limits as JSON; they are measured in a process of their own, because their arrays would count in another's peak memory.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

FEATURES = (
    "avx2",
    "fma",
    "avx512f",
    "avx512_vnni",
    "avx512_bf16",
    "avx512_fp16",
    "amx_bf16",
    "amx_int8",
    "asimd",
    "asimddp",
    "i8mm",
    "bf16",
)
READ_BYTES = 1 << 30
MATRIX = 2048


def describe() -> dict[str, Any]:
    """Processor, cores, features and memory; nothing that names the machine."""
    model, flags = _processor()
    return {
        "processor": model,
        "cores": processors(),
        "features": [feature for feature in FEATURES if feature in flags],
        "memory_gb": round(_memory() / 1e9, 1),
        "system": f"{platform.system()} {platform.machine()}",
    }


def processors() -> int:
    """How many processors this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def limits() -> dict[str, float]:
    """What `pagelift doctor` measures: bandwidth_gbs (reading memory, all cores), matmul_gflops (products of the type that prompts are
    multiplied in: bfloat16, or 8 bits where there is no unit for that) and int8_gops. In float32 through NumPy where our extension
    is not installed."""
    try:
        from pagelift.backends import cpu
    except ImportError:
        return {"bandwidth_gbs": numpy_bandwidth_gbs(), "matmul_gflops": numpy_matmul_gflops(), "int8_gops": 0.0}
    return {
        "bandwidth_gbs": cpu.measure_bandwidth_gbs(),
        "matmul_gflops": cpu.measure_matmul_gflops("bf16") or cpu.measure_matmul_gflops("int8"),
        "int8_gops": cpu.measure_matmul_gflops("int8"),
    }


def run_limits(wrap: Sequence[str] = ()) -> dict[str, float]:
    """`limits` in a process of its own. wrap: a command before that of the process."""
    done = subprocess.run([*wrap, sys.executable, __file__], check=True, stdout=subprocess.PIPE)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def numpy_bandwidth_gbs(size: int = READ_BYTES) -> float:
    """Best of five sums over an array that no cache holds, a part per core."""
    parts = np.array_split(np.ones(size // 4, np.float32), processors())
    with ThreadPoolExecutor(len(parts)) as pool:
        return size / min(_seconds(lambda: list(pool.map(lambda part: np.dot(part, part), parts))) for _ in range(5)) / 1e9


def numpy_matmul_gflops(size: int = MATRIX) -> float:
    """Median of five float32 products of square matrices."""
    a = np.ones((size, size), np.float32)
    return 2 * size**3 / statistics.median(_seconds(lambda: a @ a) for _ in range(5)) / 1e9


class Others:
    """How many cores other processes keep busy, on average since this was made; a measurement with many is not worth much."""

    def __init__(self) -> None:
        self._start = self._now()

    def cores(self) -> float | None:
        """None where the system does not say."""
        now = self._now()
        if now is None or self._start is None or now[0] <= self._start[0]:
            return None
        return max(0.0, (now[1] - self._start[1]) / (now[0] - self._start[0]))

    @staticmethod
    def _now() -> tuple[float, float] | None:
        """Seconds so far: of the clock, and of other processes and other virtual machines on all cores."""
        stat = Path("/proc/stat")
        if not stat.exists():
            return None
        user, nice, system, _idle, _wait, irq, soft, steal = map(int, stat.read_text().split("\n", 1)[0].split()[1:9])
        busy = (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")
        return time.perf_counter(), busy - time.process_time()


def peak_bytes() -> int:
    """The most memory that this process has held, mapped files included."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _seconds(call: Any) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _processor() -> tuple[str, set[str]]:
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return platform.processor() or platform.machine(), set()
    pairs = [line.split(":", 1) for line in info.read_text().split("\n\n")[0].splitlines() if ":" in line]
    values = {key.strip(): value.strip() for key, value in pairs}
    return values.get("model name", platform.machine()), set((values.get("flags") or values.get("Features") or "").split())


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


if __name__ == "__main__":
    sys.stdout.write(json.dumps(limits()) + "\n")
