"""A checkpoint in parts that are written one after the other, in the names and shapes that MLX reads (mlx-lm, mlx-vlm)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pagelift.backends.tensors import HostTensor, Packed
from pagelift.weights.checkpoint import Checkpoint, Layout
from pagelift.weights.quant.affine import to_float

_SHIFTED = re.compile(r"^text\.(.*\.)?(input_layernorm|post_attention_layernorm|norm|q_norm|k_norm)\.weight$")
"""RMS norms that Hugging Face stores as w of 1 + w and MLX as the factor itself; `linear_attn.norm` is a factor in both."""
_PREFIXES = (("text.", "language_model.model."), ("lm_head", "language_model.lm_head"), ("vision.", "vision_tower."))


@dataclass(frozen=True, slots=True)
class Part:
    """Tensors that are written to one file: the vision tower, the embeddings, one decoder block, or the head. names: canonical.

    block: which decoder block, None for the others.
    """

    name: str
    names: tuple[str, ...]
    block: int | None = None

    @property
    def modules(self) -> tuple[str, ...]:
        """Names of what may be a matrix."""
        return tuple(name.removesuffix(".weight") for name in self.names if name.endswith(".weight"))


def parts_of(checkpoint: Checkpoint, tied: bool) -> tuple[Part, ...]:
    """All parts in the order in which a model uses them. tied: a stored head is left out."""
    groups: dict[str, list[str]] = {"vision": [], "embeddings": []}
    blocks: dict[int, list[str]] = {}
    head = []
    for name in sorted(checkpoint.tensors):
        if name.startswith("vision."):
            groups["vision"].append(name)
        elif name.startswith("text.embed_tokens."):
            groups["embeddings"].append(name)
        elif name.startswith("text.layers."):
            blocks.setdefault(int(name.split(".")[2]), []).append(name)
        elif not (tied and name.startswith("lm_head.")):
            head.append(name)
    first = [Part(name, tuple(names)) for name, names in groups.items() if names]
    return (*first, *(Part(f"block {block}", tuple(blocks[block]), block) for block in sorted(blocks)), Part("head", tuple(head)))


def mlx_name(name: str) -> str:
    """The name of a tensor or module in an MLX file."""
    for old, new in _PREFIXES:
        if name.startswith(old):
            return new + name[len(old) :]
    return name


def in_mlx_layout(name: str, tensor: HostTensor, layout: Layout) -> HostTensor:
    """A tensor that stays unpacked, with the shape and the values that MLX conversions store."""
    if layout == "mlx":
        return tensor
    if name.endswith(".conv1d.weight"):
        return HostTensor(np.ascontiguousarray(tensor.array.swapaxes(1, 2)), tensor.dtype)
    if name == "vision.patch_embed.proj.weight":
        return HostTensor(np.ascontiguousarray(np.moveaxis(tensor.array, 1, -1)), tensor.dtype)
    if _SHIFTED.match(name) and not name.endswith(".linear_attn.norm.weight") and tensor.dtype != "u32":
        return to_float(tensor.to_float32() + np.float32(1), tensor.dtype)
    return tensor


def packed_tensors(module: str, packed: Packed) -> Iterator[tuple[str, HostTensor]]:
    """The three tensors of a packed module by their canonical names."""
    yield f"{module}.weight", packed.codes
    yield f"{module}.scales", packed.scales
    yield f"{module}.biases", packed.offsets
