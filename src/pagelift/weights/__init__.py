"""From a checkpoint folder to the weights that a model asks for.

    load_checkpoint(folder) -> Checkpoint      maps the files, tells the layout, renames; copies nothing
    WeightReader(checkpoint, quantization)     what a model's constructor is given; checks every request
    reader.linear("text.layers.0.mlp.gate_proj", 12288, 4096) -> Linear      dense or packed, as the file has it
    reader.embedding("text.embed_tokens", 248320, 4096) -> Matrix
    reader.norm("text.norm", 4096) -> float32  the factor itself in both layouts
    reader.vector("text.layers.0.linear_attn.A_log", (32,)) -> float32
    reader.finish()                            raises when tensors are left that nobody asked for

Canonical names
    text.*      the decoder: text.embed_tokens, text.layers.N.*, text.norm; below that the names of the HF layout
    lm_head     absent when the embeddings are tied
    vision.*    the vision tower: vision.patch_embed.proj, vision.pos_embed, vision.blocks.N.*, vision.merger.*
    `mtp.*` tensors (multi-token prediction) are dropped wherever they stand.

Layouts. HF and MLX files differ in names, in convolution weights and in RMS norms (HF stores w of 1 + w for all but
`linear_attn.norm`). Which one a checkpoint has is read off the shape of its `linear_attn.conv1d.weight`: (channels, 1, kernel) is
HF, (channels, kernel, 1) is MLX. Readers get the same values from both: convolutions arrive in HF order.

Strictness. Missing, misshapen or left-over tensors, unknown element types, overlapping or truncated files are a
`WeightsError` that names the tensor or the file.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pagelift.weights.chat import ChatTemplate, Message
    from pagelift.weights.checkpoint import Checkpoint, fingerprint, load_checkpoint
    from pagelift.weights.hub import find_model
    from pagelift.weights.reader import WeightReader
    from pagelift.weights.tokenizer import TextStream, Tokenizer, read_json

__all__ = [
    "ChatTemplate",
    "Checkpoint",
    "Message",
    "TextStream",
    "Tokenizer",
    "WeightReader",
    "find_model",
    "fingerprint",
    "load_checkpoint",
    "read_json",
]

_ELSEWHERE = {
    "ChatTemplate": "chat",
    "Message": "chat",
    "Checkpoint": "checkpoint",
    "fingerprint": "checkpoint",
    "load_checkpoint": "checkpoint",
    "find_model": "hub",
    "WeightReader": "reader",
    "TextStream": "tokenizer",
    "Tokenizer": "tokenizer",
    "read_json": "tokenizer",
}


def __getattr__(name: str) -> Any:
    """Imported when first used: every start asks the hub's cache for a model, and few use one."""
    if name not in _ELSEWHERE:
        raise AttributeError(f"module 'pagelift.weights' has no attribute {name!r}")
    return getattr(import_module(f"pagelift.weights.{_ELSEWHERE[name]}"), name)
