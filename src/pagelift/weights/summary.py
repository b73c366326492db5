"""What a checkpoint folder holds, read from its headers alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pagelift.weights.checkpoint import Layout, load_checkpoint
from pagelift.weights.reader import WeightReader


@dataclass(frozen=True, slots=True)
class Summary:
    """parameters: numbers the weights stand for. size: bytes of all tensors. formats: matrices by format, such as "4 bits / 64".

    text_parameters, text_size: without the vision tower, embeddings and output head included.
    """

    layout: Layout
    tensors: int
    parameters: int
    size: int
    formats: Mapping[str, int]
    text_parameters: int
    text_size: int

    @property
    def bits_per_weight(self) -> float:
        return 8 * self.size / self.parameters

    @property
    def text_bits_per_weight(self) -> float:
        return 8 * self.text_size / self.text_parameters


def summarise(folder: Path, quantization: Mapping[str, Any]) -> Summary:
    """Count what a checkpoint holds; `mtp.*` tensors are left out. Raises WeightsError as loading does."""
    checkpoint = load_checkpoint(folder)
    reader = WeightReader(checkpoint, quantization)
    formats: Counter[str] = Counter()
    parameters: Counter[bool] = Counter()  # by whether they belong to the vision tower
    size: Counter[bool] = Counter()
    for name, tensor in checkpoint.tensors.items():
        seeing = name.startswith("vision.")
        size[seeing] += tensor.array.nbytes
        if name.endswith((".scales", ".biases")) and f"{name.rpartition('.')[0]}.scales" in checkpoint.tensors:
            continue
        module = name.removesuffix(".weight")
        if f"{module}.scales" in checkpoint.tensors:
            bits, group_size = reader.packing(module)
            formats[f"{bits} bits / {group_size}"] += 1
            parameters[seeing] += tensor.array.size * 32 // bits
        else:
            formats[tensor.dtype] += tensor.array.ndim == 2
            parameters[seeing] += tensor.array.size
    counts = {key: n for key, n in sorted(formats.items()) if n}
    totals = parameters.total(), size.total()
    return Summary(checkpoint.layout, len(checkpoint.tensors), *totals, counts, parameters[False], size[False])
