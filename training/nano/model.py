"""The model: transformers' modules with our forward pass, and the loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import Qwen3_5Config, Qwen3_5ForConditionalGeneration

from nano.forward import Pointing, decode


@dataclass(slots=True)
class Batch:
    """Padded sequences. tokens, sources: (B, T) int64. chosen: (B, T) bool. See `examples.Example`."""

    tokens: Tensor
    chosen: Tensor
    sources: Tensor

    def to(self, device: torch.device) -> Batch:
        return Batch(*(x.to(device, non_blocking=True) for x in (self.tokens, self.chosen, self.sources)))


@dataclass(slots=True)
class Outcome:
    """loss: to go down. right: (N,) whether each chosen token got the highest logit. pointed: share of sources that the last head found."""

    loss: Tensor
    choice_loss: float
    right: Tensor
    pointed: float


class Nano(nn.Module):
    """The checkpoint's modules. pointing_layers: whose head 0 is taught where values stand."""

    def __init__(self, config: dict[str, Any], pointing_layers: int = 2) -> None:
        super().__init__()
        parsed = Qwen3_5Config(**config)
        parsed._attn_implementation = "sdpa"
        self.model = Qwen3_5ForConditionalGeneration(parsed)
        self.text = self.model.model.language_model
        full = [index for index, kind in enumerate(parsed.text_config.layer_types) if kind == "full_attention"]
        self.null_token = -1
        self.pointing_layers = tuple(full[-1 - pointing_layers : -1]) if len(full) > pointing_layers else tuple(full)

    def rotary(self, length: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """cos and sin of text positions 0 ... length - 1, (1, length, rotary_dim)."""
        positions = torch.arange(length, device=device)[None, None].expand(3, 1, -1)
        cos, sin = self.text.rotary_emb(torch.zeros(1, device=device), positions)
        return cos, sin

    def forward(self, batch: Batch, pointing_weight: float) -> Outcome:
        """Loss of the chosen tokens and of the taught heads."""
        tokens, length = batch.tokens, batch.tokens.shape[1]
        rows = (batch.sources[:, 1:] >= 0).flatten().nonzero().squeeze(1)
        rows = rows + rows // (length - 1)  # of (B, T - 1) to those of (B, T): the token before looks
        pointing = Pointing(self.pointing_layers, rows)
        hidden = decode(self.text, self.text.embed_tokens(tokens).float(), self.rotary(length, tokens.device), pointing)
        asked = batch.chosen[:, 1:]
        logits = F.linear(hidden[:, :-1][asked], self.text.embed_tokens.weight).float()
        wanted = tokens[:, 1:][asked]
        choice = F.cross_entropy(logits, wanted)
        places = batch.sources[:, 1:][batch.sources[:, 1:] >= 0]
        looking = torch.stack([F.cross_entropy(found, places) for found in pointing.logits]).mean()
        right = logits.argmax(-1) == wanted
        pointed = (pointing.logits[-1].argmax(-1) == places).float().mean().item()
        return Outcome(choice + pointing_weight * looking, choice.item(), right, pointed)
