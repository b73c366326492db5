"""Which class runs which `model_type` of config.json, and how a checkpoint folder becomes a model."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from pagelift.backends import Backend
from pagelift.core.errors import WeightsError
from pagelift.models.config import ModelConfig, load_config
from pagelift.models.step import Head, Model
from pagelift.weights import WeightReader, fingerprint, load_checkpoint

log = logging.getLogger(__name__)

ARCHITECTURES = {
    "qwen3_5": "pagelift.models.qwen3_5:Qwen35",
    "qwen3_5_text": "pagelift.models.qwen3_5:Qwen35",
}
"""model_type to `module:class`, imported when first asked for. The class takes (Backend, ModelConfig, WeightReader), and so does the
class `OutputHead` of the same module."""


def open_model(folder: Path, backend: Backend, tile_cache: Path | None = None) -> Model:
    """Load a checkpoint folder onto a backend. Raises WeightsError when it is not complete, sound and supported.

    tile_cache: a folder for the form that the backend gives to weights, so that they are loaded faster the next time.
    """
    config = load_config(folder)
    module, attribute = _architecture(config)
    checkpoint = load_checkpoint(folder)
    reader = WeightReader(checkpoint, config.quantization)
    if config.vision and not reader.has("vision."):
        log.warning("%s describes a vision tower but holds none of its weights; it is used as a text-only model", folder)
        config = replace(config, vision=None)
    with backend.kept_weights(tile_cache, fingerprint(checkpoint), folder) if tile_cache else nullcontext():
        model: Model = getattr(import_module(module), attribute)(backend, config, reader)
    return model


def open_head(folder: Path, backend: Backend) -> Head:
    """Load the last norm and the output head of a checkpoint alone. Raises WeightsError as `open_model` does."""
    config = load_config(folder)
    module, _ = _architecture(config)
    head: Head = import_module(module).OutputHead(backend, config, WeightReader(load_checkpoint(folder), config.quantization))
    return head


def _architecture(config: ModelConfig) -> tuple[str, str]:
    if config.model_type not in ARCHITECTURES:
        raise WeightsError(f"model type {config.model_type!r} is not supported; supported are {', '.join(ARCHITECTURES)}")
    module, attribute = ARCHITECTURES[config.model_type].split(":")
    return module, attribute
