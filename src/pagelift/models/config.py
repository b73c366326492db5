"""`config.json` of a checkpoint as typed values.

What the file says is believed and what it does not say is an error that names the key, except for the few keys whose absence
has one documented meaning. Keys that do not change the computation are ignored.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from pagelift.core.errors import WeightsError

LayerType = Literal["linear_attention", "full_attention"]
MAX_SIZE = 1 << 24
"""No dimension of a real model is larger; a damaged file must not make us allocate by it."""
MAX_PIXELS = 1 << 40


@dataclass(frozen=True, slots=True)
class Rope:
    """Rotary embedding of the text decoder. sections: frequencies for time, height and width, interleaved."""

    theta: float
    rotary_dim: int
    sections: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class TextConfig:
    """The text decoder. `linear_*` belong to the gated DeltaNet layers."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    layer_types: tuple[LayerType, ...]
    heads: int
    kv_heads: int
    head_dim: int
    attention_bias: bool
    linear_key_heads: int
    linear_value_heads: int
    linear_key_dim: int
    linear_value_dim: int
    conv_kernel: int
    rms_norm_eps: float
    max_positions: int
    rope: Rope


@dataclass(frozen=True, slots=True)
class VisionConfig:
    """The vision tower. position_side: side of the square table of learned positions."""

    depth: int
    hidden_size: int
    intermediate_size: int
    heads: int
    in_channels: int
    patch_size: int
    temporal_patch_size: int
    merge_size: int
    out_hidden_size: int
    position_side: int
    rope_theta: float

    @property
    def patch_features(self) -> int:
        """Numbers in one flattened patch, in the order channel, frame, row, column."""
        return self.in_channels * self.temporal_patch_size * self.patch_size**2


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A whole model. vision and the token ids of pictures are None for a text-only checkpoint.

    quantization: the `quantization` and `quantization_config` objects of the file in one, {} when the checkpoint is not quantized.
    """

    model_type: str
    text: TextConfig
    vision: VisionConfig | None
    tied_embeddings: bool
    image_token: int | None
    video_token: int | None
    quantization: Mapping[str, Any]


class Section:
    """One object of the file; reads typed values and names the full key in every error."""

    def __init__(self, values: Any, path: str, file: str = "config.json") -> None:
        if not isinstance(values, Mapping):
            raise WeightsError(f"{file}: {path or 'the file'} must be an object, not {values!r}")
        self.values = values
        self.path = path
        self.file = file

    def key(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def fail(self, name: str, wanted: str) -> WeightsError:
        found = repr(self.values[name])[:80] if name in self.values else "missing"
        return WeightsError(f"{self.file}: {self.key(name)} must be {wanted}; it is {found}")

    def section(self, name: str) -> Section:
        if name not in self.values:
            raise self.fail(name, "an object")
        return Section(self.values[name], self.key(name), self.file)

    def size(self, name: str) -> int:
        """An integer from 1 to MAX_SIZE."""
        value = self.values.get(name)
        if type(value) is not int or not 1 <= value <= MAX_SIZE:
            raise self.fail(name, f"an integer from 1 to {MAX_SIZE}")
        return value

    def pixels(self, name: str) -> int:
        """An area in pixels, at least 1."""
        value = self.values.get(name)
        if type(value) is not int or not 1 <= value <= MAX_PIXELS:
            raise self.fail(name, f"a number of pixels from 1 to {MAX_PIXELS}")
        return value

    def token(self, name: str) -> int:
        """An integer of at least 0."""
        value = self.values.get(name)
        if type(value) is not int or value < 0:
            raise self.fail(name, "a token id")
        return value

    def positive(self, name: str) -> float:
        value = self.values.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= sys.float_info.max:
            raise self.fail(name, "a number above 0")
        return float(value)

    def flag(self, name: str, default: bool) -> bool:
        value = self.values.get(name, default)
        if not isinstance(value, bool):
            raise self.fail(name, "true or false")
        return value

    def expect(self, name: str, *allowed: Any) -> None:
        """The key must have one of these values, because nothing else is implemented."""
        if self.values.get(name) not in allowed:
            raise self.fail(name, " or ".join(map(repr, allowed)))


def load_config(folder: Path) -> ModelConfig:
    """Read `config.json` of a checkpoint folder. Raises WeightsError when it is missing, damaged or not supported."""
    path = folder / "config.json"
    try:
        values = json.loads(path.read_bytes())
    except OSError as error:
        raise WeightsError(f"{path} cannot be read: {error.strerror}; a checkpoint folder has a config.json") from error
    except (ValueError, RecursionError) as error:
        raise WeightsError(f"{path} is not JSON: {error}") from error
    return parse_config(values)


def parse_config(values: Any) -> ModelConfig:
    """The typed form of a parsed `config.json`, of a whole model or of a text-only one. Raises WeightsError."""
    root = Section(values, "")
    root.expect("model_type", "qwen3_5", "qwen3_5_text")
    whole = root.values["model_type"] == "qwen3_5"
    text = root.section("text_config") if whole else root
    vision = root.section("vision_config") if whole and root.values.get("vision_config") is not None else None
    tied_in = root if "tie_word_embeddings" in root.values else text
    # MLX files say it twice; where the two differ, `quantization` is the one that MLX reads.
    given = [root.section(key).values for key in ("quantization_config", "quantization") if root.values.get(key) is not None]
    return ModelConfig(
        model_type=root.values["model_type"],
        text=_text(text),
        vision=_vision(vision) if vision else None,
        tied_embeddings=tied_in.flag("tie_word_embeddings", False),
        image_token=root.token("image_token_id") if vision else None,
        video_token=root.token("video_token_id") if vision else None,
        quantization={key: value for values in given for key, value in values.items()},
    )


def _text(c: Section) -> TextConfig:
    c.expect("hidden_act", "silu")
    config = TextConfig(
        vocab_size=c.size("vocab_size"),
        hidden_size=c.size("hidden_size"),
        intermediate_size=c.size("intermediate_size"),
        layer_types=_layer_types(c),
        heads=c.size("num_attention_heads"),
        kv_heads=c.size("num_key_value_heads"),
        head_dim=c.size("head_dim"),
        attention_bias=c.flag("attention_bias", False),
        linear_key_heads=c.size("linear_num_key_heads"),
        linear_value_heads=c.size("linear_num_value_heads"),
        linear_key_dim=c.size("linear_key_head_dim"),
        linear_value_dim=c.size("linear_value_head_dim"),
        conv_kernel=c.size("linear_conv_kernel_dim"),
        rms_norm_eps=c.positive("rms_norm_eps"),
        max_positions=c.size("max_position_embeddings"),
        rope=_rope(c),
    )
    if config.heads % config.kv_heads:
        raise c.fail("num_key_value_heads", f"a divisor of num_attention_heads = {config.heads}")
    if config.linear_value_heads % config.linear_key_heads:
        raise c.fail("linear_num_key_heads", f"a divisor of linear_num_value_heads = {config.linear_value_heads}")
    return config


def _layer_types(c: Section) -> tuple[LayerType, ...]:
    """Layer types as listed, or every `full_attention_interval`-th layer full where older files give that instead."""
    layers = c.size("num_hidden_layers")
    types = c.values.get("layer_types")
    if types is None and "full_attention_interval" in c.values:
        interval = c.size("full_attention_interval")
        types = ["linear_attention" if (i + 1) % interval else "full_attention" for i in range(layers)]
    if not isinstance(types, list) or len(types) != layers or not set(types) <= {"linear_attention", "full_attention"}:
        raise c.fail("layer_types", f"a list of {layers} of 'linear_attention' and 'full_attention'")
    return cast(tuple[LayerType, ...], tuple(types))


def _rope(c: Section) -> Rope:
    """Rotary parameters from `rope_parameters`, or from `rope_scaling` and the keys beside it in older files."""
    name = "rope_scaling" if "rope_parameters" not in c.values and "rope_scaling" in c.values else "rope_parameters"
    inner = c.section(name)
    inner.expect("rope_type" if "rope_type" in inner.values else "type", "default", "mrope")
    inner.expect("mrope_interleaved", True)
    theta = inner if "rope_theta" in inner.values else c
    factor = inner if "partial_rotary_factor" in inner.values else c
    rotary_dim = int(c.size("head_dim") * factor.positive("partial_rotary_factor"))
    sections = inner.values.get("mrope_section")
    if not isinstance(sections, list) or len(sections) != 3 or any(type(s) is not int or s < 0 for s in sections):
        raise inner.fail("mrope_section", "a list of three integers")
    if rotary_dim % 2 or not 0 < rotary_dim <= c.size("head_dim") or sum(sections) != rotary_dim // 2:
        raise inner.fail("mrope_section", f"three integers that add up to {rotary_dim} / 2 rotary frequencies")
    return Rope(theta.positive("rope_theta"), rotary_dim, (sections[0], sections[1], sections[2]))


def _vision(c: Section) -> VisionConfig:
    c.expect("hidden_act", "gelu_pytorch_tanh")
    if c.values.get("deepstack_visual_indexes"):
        raise c.fail("deepstack_visual_indexes", "absent or empty")
    positions = c.size("num_position_embeddings")
    side = round(positions**0.5)
    if side * side != positions:
        raise c.fail("num_position_embeddings", "a square number")
    # Checkpoints written before transformers 5.15 do not state the tower's rotary base; it has always been 10,000.
    rope = c.section("rope_parameters") if "rope_parameters" in c.values else Section({"rope_theta": 10_000.0}, "")
    config = VisionConfig(
        depth=c.size("depth"),
        hidden_size=c.size("hidden_size"),
        intermediate_size=c.size("intermediate_size"),
        heads=c.size("num_heads"),
        in_channels=c.size("in_channels"),
        patch_size=c.size("patch_size"),
        temporal_patch_size=c.size("temporal_patch_size"),
        merge_size=c.size("spatial_merge_size"),
        out_hidden_size=c.size("out_hidden_size"),
        position_side=side,
        rope_theta=rope.positive("rope_theta"),
    )
    if config.hidden_size % (4 * config.heads):
        raise c.fail("hidden_size", f"a multiple of 4 * num_heads = {4 * config.heads}")
    return config
