"""Model architectures, written once against the operations of `pagelift.backends`."""

from pagelift.models.config import ModelConfig, load_config
from pagelift.models.positions import Grid, prompt_positions, text_positions
from pagelift.models.registry import ARCHITECTURES, open_model
from pagelift.models.step import Model, PictureRows, Step

__all__ = [
    "ARCHITECTURES",
    "Grid",
    "Model",
    "ModelConfig",
    "PictureRows",
    "Step",
    "load_config",
    "open_model",
    "prompt_positions",
    "text_positions",
]
