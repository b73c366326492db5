"""How a matrix may be packed, which matrices of a checkpoint may be, and what that takes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from pagelift.backends.tensors import BITS, GROUP_SIZES
from pagelift.core.errors import ConfigError
from pagelift.weights.checkpoint import Checkpoint

DENSE_BYTES = 2
"""Of a number that is not packed: bfloat16 or float16."""
GRID_BYTES = 4
"""Of a scale and an offset in 16 bits."""
_KEPT = re.compile(r"^vision\.(pos_embed|patch_embed)\b")
"""Tables and convolutions that readers take as they are."""


@dataclass(frozen=True, slots=True, order=True)
class Format:
    """MLX affine format: so many bits for each weight, a scale and an offset for each group of one row. Raises ConfigError."""

    bits: int
    group_size: int = 64

    def __post_init__(self) -> None:
        if self.bits not in BITS or self.group_size not in GROUP_SIZES:
            raise ConfigError(f"{self.bits} bits in groups of {self.group_size} is not one of {BITS} bits in groups of {GROUP_SIZES}")

    def fits(self, in_features: int) -> bool:
        return in_features % self.group_size == 0

    def nbytes(self, out_features: int, in_features: int) -> int:
        """Codes, scales and offsets of a matrix."""
        return out_features * (in_features * self.bits // 8 + in_features // self.group_size * GRID_BYTES)

    @property
    def bits_per_weight(self) -> float:
        return self.bits + 8 * GRID_BYTES / self.group_size


Allocation: TypeAlias = Mapping[str, Format]
"""By canonical module name; a module that is not in it keeps its 16 bits."""
FORMATS = tuple(Format(bits, group_size) for bits in BITS for group_size in GROUP_SIZES)


@dataclass(frozen=True, slots=True)
class Module:
    """A matrix that can be packed, by its canonical name."""

    name: str
    out_features: int
    in_features: int

    @property
    def parameters(self) -> int:
        return self.out_features * self.in_features

    @property
    def is_text(self) -> bool:
        return not self.name.startswith("vision.")

    @property
    def block(self) -> int | None:
        """The decoder block that it belongs to."""
        steps = self.name.split(".")
        return int(steps[2]) if steps[:2] == ["text", "layers"] else None

    @property
    def role(self) -> str:
        """The last part of the name: what it does in its block."""
        return self.name.rsplit(".", 1)[-1]

    def nbytes(self, form: Format | None) -> int:
        return self.parameters * DENSE_BYTES if form is None else form.nbytes(self.out_features, self.in_features)


@dataclass(frozen=True)
class Sizes:
    """modules: what can be packed, in the order of the model. rest, text_rest: bytes of all other tensors, and of those outside the
    vision tower. text_parameters: numbers in all tensors outside the vision tower."""

    modules: tuple[Module, ...]
    rest: int
    text_rest: int
    text_parameters: int

    @classmethod
    def of(cls, checkpoint: Checkpoint, tied: bool = False) -> Sizes:
        """Count a checkpoint that is not packed yet. tied: the head is the embeddings, whether or not it is stored too.

        What can be packed are two-dimensional weights whose rows divide into groups. Raises ConfigError when something is packed.
        """
        modules, rest, text_rest, text_parameters = [], 0, 0, 0
        for name, tensor in checkpoint.tensors.items():
            if name.endswith(".scales"):
                raise ConfigError(f"{checkpoint.folder} is quantized already; give the checkpoint in 16 bits")
            if tied and name.startswith("lm_head."):
                continue
            text = not name.startswith("vision.")
            text_parameters += tensor.array.size * text
            module = name.removesuffix(".weight")
            packable = name.endswith(".weight") and tensor.array.ndim == 2 and not _KEPT.match(name)
            if packable and tensor.shape[1] % GROUP_SIZES[0] == 0:
                modules.append(Module(module, *tensor.shape))
            else:
                rest += tensor.array.nbytes
                text_rest += tensor.array.nbytes * text
        return cls(tuple(sorted(modules, key=_order)), rest, text_rest, text_parameters)

    @cached_property
    def by_name(self) -> dict[str, Module]:
        return {module.name: module for module in self.modules}

    @property
    def text_modules(self) -> tuple[Module, ...]:
        return tuple(module for module in self.modules if module.is_text)

    @property
    def vision_bytes(self) -> int:
        """Bytes of the vision tower in 16 bits."""
        return self.rest - self.text_rest + sum(module.nbytes(None) for module in self.modules if not module.is_text)

    def nbytes(self, allocation: Allocation) -> int:
        """Bytes of all tensors."""
        return self.rest + sum(module.nbytes(allocation.get(module.name)) for module in self.modules)

    def text_bits(self, allocation: Allocation) -> float:
        """Bits per weight of everything but the vision tower, scales and offsets included."""
        size = self.text_rest + sum(module.nbytes(allocation.get(module.name)) for module in self.text_modules)
        return 8 * size / self.text_parameters

    def budget(self, text_bits: float) -> int:
        """The bytes of a file whose text part has so many bits per weight and whose vision tower has 16."""
        return int(text_bits * self.text_parameters / 8) + self.vision_bytes

    def bits_of(self, nbytes: int) -> float:
        """The inverse of `budget`: bits per weight that a file of so many bytes is worth, the vision tower taken in 16 bits."""
        return 8 * (nbytes - self.vision_bytes) / self.text_parameters


def _order(module: Module) -> tuple[int, int, str]:
    """Vision tower, embeddings, decoder blocks, head."""
    if module.name.startswith("vision."):
        steps = module.name.split(".")
        return 0, int(steps[2]) if steps[1] == "blocks" else 10_000, module.name
    if module.block is None:
        return (1, 0, module.name) if module.name == "text.embed_tokens" else (3, 0, module.name)
    return 2, module.block, module.name
