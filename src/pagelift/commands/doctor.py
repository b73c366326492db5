"""`pagelift doctor`: what of this machine is used, how fast it is, and what is missing."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from pagelift.backends import BACKENDS, installed_backends
from pagelift.commands import ExitCode

Kind = Literal["int8", "bf16", "f32"]
KINDS: tuple[Kind, ...] = ("int8", "bf16", "f32")

EXTRAS = (
    ("server", "fastapi", "the server"),
    ("remote", "openai", "models behind an API"),
    ("mlx", "mlx", "the backend mlx, for Apple silicon"),
)
"""Extra of the package, module that it brings, what it is for."""


@dataclass(frozen=True, slots=True)
class Kernels:
    """levels: what this machine can run, from the plainest to the best. matmul_gflops: by kind; None where there is no instruction."""

    levels: list[str]
    level: str
    threads: int
    bandwidth_gbs: float | None
    matmul_gflops: dict[str, float | None] | None


@dataclass(frozen=True, slots=True)
class Report:
    """Memory is in 1e9 bytes, None where the system does not tell."""

    version: str
    python: str
    system: str
    processor: str
    processors: int
    memory_gb: float | None
    memory_free_gb: float | None
    backends: list[str]
    kernels: Kernels | None
    missing: list[str]


def run(version: str, as_json: bool, measure: bool) -> ExitCode:
    """Print a report on this machine."""
    report = examine(version, measure)
    if as_json:
        sys.stdout.write(json.dumps(asdict(report), indent=2) + "\n")
        return ExitCode.FINE
    rows = list(_rows(report))
    width = max(len(name) for name, _ in rows)
    sys.stdout.writelines(f"{name:{width}}  {value}\n" for name, value in rows)
    return ExitCode.FINE


def examine(version: str, measure: bool) -> Report:
    """The report. measure: with bandwidth and matrix speed, which takes about a second and, for a moment, a gigabyte of memory."""
    total, free = _memory()
    backends = installed_backends()
    return Report(
        version=version,
        python=platform.python_version(),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        processor=_processor(),
        processors=os.cpu_count() or 1,
        memory_gb=total,
        memory_free_gb=free,
        backends=backends,
        kernels=_kernels(measure, free) if "cpu" in backends else None,
        missing=list(_missing(backends)),
    )


def _kernels(measure: bool, free_gb: float | None) -> Kernels:
    from pagelift.backends.cpu import machine, measure_bandwidth_gbs, measure_matmul_gflops, supported_levels

    used = machine.operations()
    nbytes = machine.MEASURED_BYTES if free_gb is None else min(machine.MEASURED_BYTES, int(free_gb * 1e9 / 4))
    return Kernels(
        levels=supported_levels(),
        level=used.level,
        threads=used.threads,
        bandwidth_gbs=round(measure_bandwidth_gbs(max(nbytes, 1 << 24)), 1) if measure else None,
        matmul_gflops={kind: round(measure_matmul_gflops(kind)) or None for kind in KINDS} if measure else None,
    )


def _rows(report: Report) -> Iterator[tuple[str, str]]:
    yield "pagelift", f"{report.version}, Python {report.python}"
    yield "system", report.system
    yield "processor", f"{report.processor}, {report.processors} processors"
    if report.memory_gb is not None:
        free = "" if report.memory_free_gb is None else f", {report.memory_free_gb:.1f} GB of it free"
        yield "memory", f"{report.memory_gb:.1f} GB{free}"
    yield "backends", ", ".join(report.backends)
    if report.kernels:
        yield "cpu level", f"{report.kernels.level} (of {', '.join(report.kernels.levels)})"
        yield "cpu threads", str(report.kernels.threads)
        if report.kernels.bandwidth_gbs is not None:
            yield "read bandwidth", f"{report.kernels.bandwidth_gbs:.1f} GB/s, all threads"
        for kind, speed in (report.kernels.matmul_gflops or {}).items():
            yield f"{kind} products", f"{speed:,.0f} GFLOP/s, all threads" if speed else "no instruction for them at this level"
    for line in report.missing or ["nothing"]:
        yield "missing", line


def _missing(backends: list[str]) -> Iterator[str]:
    if "cpu" not in backends:
        yield "the kernels of the backend cpu: install pagelift again where a C++ compiler is found (g++ 11, clang 14 or newer)"
    elif platform.machine().lower() in ("x86_64", "amd64"):
        from pagelift.backends.cpu import supported_levels

        if "avx2" not in supported_levels():
            yield "AVX2: this processor is too old for models of useful size; use the engine layout, or another machine"
        elif "amx" not in supported_levels() and "amx_tile" in _flags():
            yield "AMX, which the processor has: the system does not let this process use it; it takes Linux 5.16 or newer"
    for extra, module, purpose in EXTRAS:
        if find_spec(module) is None and (module != "mlx" or sys.platform == "darwin"):
            yield f"{purpose}: pip install 'pagelift[{extra}]'"
    unknown = [name for name in BACKENDS if name not in backends and not name.startswith(("cpu", "mlx"))]
    if unknown:
        yield f"backends {', '.join(unknown)}: install pagelift again"


def _flags() -> set[str]:
    return set(_field("/proc/cpuinfo", "flags").split())


def _processor() -> str:
    return _field("/proc/cpuinfo", "model name") or platform.processor() or platform.machine()


def _memory() -> tuple[float | None, float | None]:
    """All memory and what is available of it."""
    total, free = (_field("/proc/meminfo", key).split() for key in ("MemTotal", "MemAvailable"))
    if total:
        return int(total[0]) * 1024 / 1e9, int(free[0]) * 1024 / 1e9 if free else None
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9, None
    return None, None


def _field(file: str, key: str) -> str:
    """The first value of a key in a file of lines `key: value`, "" where there is none."""
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    fields = (line.partition(":") for line in lines)
    return next((value.strip() for name, _, value in fields if name.strip() == key), "")
