"""Model architectures, written once against the operations of `pagelift.backends`."""

from pagelift.models.config import ModelConfig, load_config
from pagelift.models.positions import Grid, prompt_positions, text_positions
from pagelift.models.registry import ARCHITECTURES, open_head, open_model
from pagelift.models.step import Head, Model, PictureRows, Step

__all__ = [
    "ARCHITECTURES",
    "Grid",
    "Head",
    "Model",
    "ModelConfig",
    "PictureRows",
    "Step",
    "load_config",
    "open_head",
    "open_model",
    "prompt_positions",
    "text_positions",
]
