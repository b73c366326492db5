"""Our own kernels, in C++ (csrc/)."""

from pagelift.backends.cpu.backend import CpuBackend

__all__ = ["CpuBackend"]
