"""Bytes and operations of a checkpoint by formula, whatever its layout."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pagelift.models import ModelConfig, load_config
from pagelift.weights import Checkpoint, WeightReader, load_checkpoint

KV_BYTES = 2  # of one key or value feature in bfloat16


@dataclass(frozen=True, slots=True)
class Sizes:
    """weight_bytes: all tensors. token_bytes: what one decoded token reads, the head whole and one row of the embeddings.
    layer_macs: multiplications of a token in the decoder's linear layers, without the head."""

    config: ModelConfig
    weight_bytes: int
    token_bytes: int
    layer_macs: int

    @classmethod
    def of(cls, folder: Path) -> Sizes:
        """Read off the headers of a checkpoint's files."""
        config = load_config(folder)
        checkpoint = load_checkpoint(folder)
        nbytes = {name: tensor.array.nbytes for name, tensor in checkpoint.tensors.items()}
        table = sum(size for name, size in nbytes.items() if name.startswith("text.embed_tokens."))
        head = table if config.tied_embeddings else sum(size for name, size in nbytes.items() if name.startswith("lm_head."))
        layers = sum(size for name, size in nbytes.items() if name.startswith("text.")) - table
        return cls(config, sum(nbytes.values()), layers + head + table // config.text.vocab_size, _layer_macs(checkpoint, config))

    def cache_bytes(self, tokens: int) -> int:
        """Keys and values of a sequence in bfloat16 and its recurrent states in float32."""
        t = self.config.text
        full = t.layer_types.count("full_attention")
        channels = 2 * t.linear_key_heads * t.linear_key_dim + t.linear_value_heads * t.linear_value_dim
        state = t.linear_value_heads * t.linear_key_dim * t.linear_value_dim + (t.conv_kernel - 1) * channels
        return full * 2 * t.kv_heads * t.head_dim * tokens * KV_BYTES + (len(t.layer_types) - full) * state * 4

    def prefill_flops(self, tokens: int) -> int:
        """Linear layers of all tokens, and causal attention; neither the delta rule nor the head's one row."""
        t = self.config.text
        attended = tokens * (tokens + 1) // 2
        return 2 * self.layer_macs * tokens + t.layer_types.count("full_attention") * 4 * t.heads * t.head_dim * attended


def _layer_macs(checkpoint: Checkpoint, config: ModelConfig) -> int:
    reader = WeightReader(checkpoint, config.quantization)
    total = 0
    for name, tensor in checkpoint.tensors.items():
        module = name.removesuffix(".weight")
        if module == name or not name.startswith("text.layers.") or tensor.array.ndim != 2:
            continue
        packed = f"{module}.scales" in checkpoint.tensors
        total += tensor.array.size * 32 // reader.packing(module)[0] if packed else tensor.array.size
    return total
