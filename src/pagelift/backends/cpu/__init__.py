"""Our own kernels, in C++ (csrc/)."""

from pagelift.backends.cpu._kernels import supported_levels
from pagelift.backends.cpu.backend import CpuBackend, ExactCpuBackend
from pagelift.backends.cpu.machine import available_processors, measure_bandwidth_gbs, measure_matmul_gflops

__all__ = ["CpuBackend", "ExactCpuBackend", "available_processors", "measure_bandwidth_gbs", "measure_matmul_gflops", "supported_levels"]
