"""Backends: the operations that models are written against, and who runs them.

`reference` is plain NumPy and the oracle of all kernel tests; `cpu` are our own kernels (`cpu-exact`: without 8-bit and bf16
products); `mlx` is for Apple silicon.
"""

from __future__ import annotations

from importlib import import_module

from pagelift.backends.batch import Ragged, RowMask, Segment
from pagelift.backends.cache import DeltaState, KVCache, LayerCache, SequenceCache
from pagelift.backends.protocol import (
    Array,
    AttentionHeads,
    Backend,
    DeltaNet,
    EmbeddingHandle,
    Indices,
    LayerNorm,
    LinearHandle,
    Norm,
    RmsNorm,
    RotaryTable,
)
from pagelift.backends.tensors import Dense, HostTensor, Linear, Matrix, Packed
from pagelift.core.errors import EngineError

BACKENDS = {
    "reference": "pagelift.backends.reference:ReferenceBackend",
    "cpu": "pagelift.backends.cpu:CpuBackend",
    "cpu-exact": "pagelift.backends.cpu:ExactCpuBackend",
    "mlx": "pagelift.backends.mlx:MlxBackend",
}
"""Name to `module:class`, imported when first asked for."""


def open_backend(name: str) -> Backend:
    """Make a backend by name, with its default settings. Raises EngineError when it is unknown or not installed."""
    if name not in BACKENDS:
        raise EngineError(f"no backend is called {name!r}; there are {', '.join(BACKENDS)}")
    module, attribute = BACKENDS[name].split(":")
    try:
        backend: Backend = getattr(import_module(module), attribute)()
    except ImportError as error:
        raise EngineError(f"backend {name!r} is not installed here: {error}") from error
    return backend


def installed_backends() -> list[str]:
    """Names of the backends that can be imported here."""
    return [name for name, target in BACKENDS.items() if _importable(target.split(":")[0])]


def _importable(module: str) -> bool:
    try:
        import_module(module)
    except ImportError:
        return False
    return True


__all__ = [
    "BACKENDS",
    "Array",
    "AttentionHeads",
    "Backend",
    "DeltaNet",
    "DeltaState",
    "Dense",
    "EmbeddingHandle",
    "HostTensor",
    "Indices",
    "KVCache",
    "LayerCache",
    "LayerNorm",
    "Linear",
    "LinearHandle",
    "Matrix",
    "Norm",
    "Packed",
    "Ragged",
    "RmsNorm",
    "RotaryTable",
    "RowMask",
    "Segment",
    "SequenceCache",
    "installed_backends",
    "open_backend",
]
