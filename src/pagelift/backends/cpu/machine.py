"""This machine as the kernels see it: processors that may be used, one pool of threads per setting, measured limits."""

from __future__ import annotations

import math
import os
from functools import cache
from pathlib import Path
from typing import Literal

from pagelift.backends.cpu import _kernels

LEVEL_VARIABLE = "PAGELIFT_CPU_LEVEL"
"""Names a level for every backend made without one; for tests."""

MEASURED_BYTES = 1 << 30
"""What a measurement of the bandwidth reads: more than the caches of any processor."""

CGROUPS = Path("/sys/fs/cgroup")


def available_processors() -> int:
    """How many processors this process may use at a time: its affinity, and the quota of its control group (versions 1 and 2)."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota(CGROUPS, Path("/proc/self/cgroup"))
    return processors if quota is None else max(1, min(processors, math.ceil(quota)))


def operations(threads: int | None = None, level: str | None = None) -> _kernels.Operations:
    """The kernels, one pool of threads per setting, however many backends and models there are.

    threads: all that may be used by default. level: PAGELIFT_CPU_LEVEL, else the best one, by default. Raises ValueError for a
    level that does not run here.
    """
    return _operations(threads or available_processors(), level or os.environ.get(LEVEL_VARIABLE) or None)


def measure_bandwidth_gbs(nbytes: int = MEASURED_BYTES) -> float:
    """Bytes per second in 1e9 that all threads together read from memory. nbytes: read per pass, in memory of its own."""
    return operations().bandwidth_gbs(nbytes)


def measure_matmul_gflops(kind: Literal["int8", "bf16", "f32"] = "int8") -> float:
    """Operations per second in 1e9 (a multiplication and an addition are two) of all threads in a matrix product in the cache.

    0 where the level in use has no instruction for this type.
    """
    return operations().matmul_gflops(kind)


@cache
def _operations(threads: int, level: str | None) -> _kernels.Operations:
    return _kernels.Operations(threads, level)


def _quota(root: Path, membership: Path) -> float | None:
    """Processors that the control groups of this process allow, None without a limit; the least of its group and those above."""
    quotas = []
    for line in _read(membership).splitlines():
        number, controllers, group = line.split(":", 2)
        if number == "0" and not controllers:
            quotas += [_quota_v2(folder) for folder in _upward(root, group)]
        elif "cpu" in controllers.split(","):
            quotas += [_quota_v1(folder) for mount in (root / controllers, root / "cpu") for folder in _upward(mount, group)]
    return min((quota for quota in quotas if quota is not None), default=None)


def _upward(mount: Path, group: str) -> list[Path]:
    """The folders of a group and of those above it. In a container the mount may be the group itself."""
    folder = mount / group.lstrip("/")
    return [folder, *(parent for parent in folder.parents if parent.is_relative_to(mount))]


def _quota_v2(folder: Path) -> float | None:
    values = _read(folder / "cpu.max").split()
    return int(values[0]) / int(values[1]) if len(values) == 2 and values[0] != "max" else None


def _quota_v1(folder: Path) -> float | None:
    quota, period = _read(folder / "cpu.cfs_quota_us").strip(), _read(folder / "cpu.cfs_period_us").strip()
    return int(quota) / int(period) if quota and period and int(quota) > 0 else None


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
