"""A quantized checkpoint without any measurement: an allocation given from outside, rounded to nearest."""

from __future__ import annotations

from pathlib import Path

from pagelift.backends.tensors import Packed
from pagelift.weights.checkpoint import Checkpoint
from pagelift.weights.quant.affine import round_to_nearest
from pagelift.weights.quant.formats import Allocation, Format
from pagelift.weights.quant.layout import parts_of
from pagelift.weights.quant.writer import ShardWriter


def write_plain(checkpoint: Checkpoint, out: Path, allocation: Allocation, tied: bool) -> None:
    """Write the checkpoint with every matrix of `allocation` rounded to nearest, as `mx.quantize` does.

    tied: config.json ties the head to the embeddings. One part is in memory at a time. Raises ConfigError.
    """
    parts = parts_of(checkpoint, tied)
    writer = ShardWriter(checkpoint, parts, out)
    for place, part in enumerate(parts):
        writer.write(place, {name: nearest(checkpoint, name, allocation[name]) for name in part.modules if name in allocation})
        for name in part.names:
            checkpoint.tensors[name].release()
    writer.finish(allocation)


def nearest(checkpoint: Checkpoint, module: str, form: Format) -> Packed:
    """One matrix of a checkpoint as `mx.quantize` packs it; scales have the type of its weights, bfloat16 for float32."""
    tensor = checkpoint.tensors[f"{module}.weight"]
    kind = tensor.dtype if tensor.dtype == "f16" else "bf16"
    return round_to_nearest(tensor.to_float32(), form, kind).packed(kind)
