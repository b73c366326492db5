"""Every operation in plain NumPy float32: slow, short, and what all kernels are compared with."""

from pagelift.backends.reference.backend import ReferenceBackend
from pagelift.backends.reference.packing import unpack_codes, unpack_matrix

__all__ = ["ReferenceBackend", "unpack_codes", "unpack_matrix"]
