"""Apple silicon through MLX; the same operations also run on MLX's CPU device, on which they are tested."""

from pagelift.backends.mlx.backend import MlxBackend

__all__ = ["MlxBackend"]
