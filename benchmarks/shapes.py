"""Shapes of the Qwen3.5 family, and which tensors a checkpoint of such a shape holds, in the layout that MLX writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

VOCABULARY = 248_320
CONV_KERNEL = 4
LINEAR_KEY_HEADS = 16
PATCH_FEATURES = (2, 16, 16, 3)  # frames, rows, columns, channels
POSITIONS = 48 * 48
MERGED = 4  # patches in a token


@dataclass(frozen=True, slots=True)
class Vision:
    depth: int
    hidden: int
    heads: int
    inner: int


@dataclass(frozen=True, slots=True)
class Shape:
    """linear_dim: of keys and values of the gated DeltaNet heads; head_dim: of full attention."""

    layers: int
    hidden: int
    inner: int
    heads: int
    kv_heads: int
    linear_value_heads: int
    tied: bool
    vision: Vision
    head_dim: int = 256
    linear_key_heads: int = LINEAR_KEY_HEADS
    linear_dim: int = 128

    @property
    def layer_types(self) -> list[str]:
        return ["full_attention" if (index + 1) % 4 == 0 else "linear_attention" for index in range(self.layers)]

    @property
    def channels(self) -> int:
        return (2 * self.linear_key_heads + self.linear_value_heads) * self.linear_dim


SHAPES = {
    "9b": Shape(32, 4096, 12288, 16, 4, 32, False, Vision(27, 1152, 16, 4304)),
    "4b": Shape(32, 2560, 9216, 16, 4, 32, True, Vision(24, 1024, 16, 4096)),
    "2b": Shape(24, 2048, 6144, 8, 2, 16, True, Vision(24, 1024, 16, 4096)),
    "0.8b": Shape(24, 1024, 3584, 8, 2, 16, True, Vision(12, 768, 12, 3072)),
    "tiny": Shape(8, 256, 768, 4, 2, 4, True, Vision(2, 128, 4, 256), head_dim=64, linear_key_heads=2, linear_dim=64),
}


@dataclass(frozen=True, slots=True)
class Linear:
    """A linear layer `name` (out, in) that may be packed."""

    name: str
    out_features: int
    in_features: int


@dataclass(frozen=True, slots=True)
class Small:
    """A tensor of floats. kind: "ones", "zeros", "log" (logarithms of 1 to 16), or "normal" with a deviation of `spread`."""

    name: str
    shape: tuple[int, ...]
    kind: str = "ones"
    spread: float = 1.0


def tensors(shape: Shape) -> Iterator[Linear | Small]:
    """Everything that a checkpoint holds; only what is a Linear is packed."""
    text, hidden = "language_model.model", shape.hidden
    yield Linear(f"{text}.embed_tokens", VOCABULARY, hidden)
    for index, kind in enumerate(shape.layer_types):
        layer = f"{text}.layers.{index}"
        yield Small(f"{layer}.input_layernorm.weight", (hidden,))
        yield from (
            _linear_attention(f"{layer}.linear_attn", shape) if kind == "linear_attention" else _attention(f"{layer}.self_attn", shape)
        )
        yield Small(f"{layer}.post_attention_layernorm.weight", (hidden,))
        yield Linear(f"{layer}.mlp.gate_proj", shape.inner, hidden)
        yield Linear(f"{layer}.mlp.up_proj", shape.inner, hidden)
        yield Linear(f"{layer}.mlp.down_proj", hidden, shape.inner)
    yield Small(f"{text}.norm.weight", (hidden,))
    if not shape.tied:
        yield Linear("language_model.lm_head", VOCABULARY, hidden)
    yield from _vision(shape.vision, hidden)


def _linear_attention(name: str, shape: Shape) -> Iterator[Linear | Small]:
    values, heads, hidden = shape.linear_value_heads * shape.linear_dim, shape.linear_value_heads, shape.hidden
    yield Linear(f"{name}.in_proj_qkv", shape.channels, hidden)
    yield Linear(f"{name}.in_proj_z", values, hidden)
    yield Linear(f"{name}.in_proj_a", heads, hidden)
    yield Linear(f"{name}.in_proj_b", heads, hidden)
    yield Small(f"{name}.conv1d.weight", (shape.channels, CONV_KERNEL, 1), "normal", CONV_KERNEL**-0.5)
    yield Small(f"{name}.A_log", (heads,), "log")
    yield Small(f"{name}.dt_bias", (heads,), "zeros")
    yield Small(f"{name}.norm.weight", (shape.linear_dim,))
    yield Linear(f"{name}.out_proj", hidden, values)


def _attention(name: str, shape: Shape) -> Iterator[Linear | Small]:
    q, kv, hidden = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim, shape.hidden
    yield Linear(f"{name}.q_proj", 2 * q, hidden)
    yield Linear(f"{name}.k_proj", kv, hidden)
    yield Linear(f"{name}.v_proj", kv, hidden)
    yield Linear(f"{name}.o_proj", hidden, q)
    yield Small(f"{name}.q_norm.weight", (shape.head_dim,))
    yield Small(f"{name}.k_norm.weight", (shape.head_dim,))


def _vision(vision: Vision, out_hidden: int) -> Iterator[Small]:
    name, hidden = "vision_tower", vision.hidden
    merged = hidden * MERGED
    patch = PATCH_FEATURES[0] * PATCH_FEATURES[1] * PATCH_FEATURES[2] * PATCH_FEATURES[3]
    yield Small(f"{name}.patch_embed.proj.weight", (hidden, *PATCH_FEATURES), "normal", patch**-0.5)
    yield Small(f"{name}.patch_embed.proj.bias", (hidden,), "zeros")
    yield Small(f"{name}.pos_embed.weight", (POSITIONS, hidden), "normal", 0.02)
    for index in range(vision.depth):
        block = f"{name}.blocks.{index}"
        yield from _vision_norm(f"{block}.norm1", hidden)
        yield from _vision_linear(f"{block}.attn.qkv", 3 * hidden, hidden)
        yield from _vision_linear(f"{block}.attn.proj", hidden, hidden)
        yield from _vision_norm(f"{block}.norm2", hidden)
        yield from _vision_linear(f"{block}.mlp.linear_fc1", vision.inner, hidden)
        yield from _vision_linear(f"{block}.mlp.linear_fc2", hidden, vision.inner)
    yield from _vision_norm(f"{name}.merger.norm", hidden)
    yield from _vision_linear(f"{name}.merger.linear_fc1", merged, merged)
    yield from _vision_linear(f"{name}.merger.linear_fc2", out_hidden, merged)


def _vision_linear(name: str, out_features: int, in_features: int) -> Iterator[Small]:
    yield Small(f"{name}.weight", (out_features, in_features), "normal", in_features**-0.5)
    yield Small(f"{name}.bias", (out_features,), "zeros")


def _vision_norm(name: str, hidden: int) -> Iterator[Small]:
    yield Small(f"{name}.weight", (hidden,))
    yield Small(f"{name}.bias", (hidden,), "zeros")
