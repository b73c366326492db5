"""The model: transformers' modules with our forward pass, and the loss."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import Qwen3_5Config, Qwen3_5ForConditionalGeneration

from nano.forward import Heads, Pointing, decode


@dataclass(slots=True)
class Batch:
    """Padded sequences. tokens, sources, outline, lines, beside: (B, T) int64. chosen: (B, T) bool. positions: (3, T), of all.

    See `lessons.padded`. patches, grids: of the pictures, if there are any.
    """

    tokens: Tensor
    chosen: Tensor
    sources: Tensor
    outline: Tensor
    lines: Tensor
    beside: Tensor
    positions: Tensor
    patches: Tensor | None = None
    grids: Tensor | None = None

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray], device: torch.device) -> Batch:
        """Arrays by the names of the fields."""
        return cls(**{name: torch.from_numpy(np.ascontiguousarray(array)).to(device) for name, array in arrays.items()})


@dataclass(slots=True)
class Outcome:
    """loss: to go down. best: (N,) the token with the highest logit at each chosen one. right: (N,) whether it is that one. pointed: share
    of sources that the last head found. outlined: share of values found at their lines of the outline. lined: share of lines of the outline
    found where their values begin. numbered: share of words that found the mark of their line."""

    loss: Tensor
    choice_loss: float
    best: Tensor
    right: Tensor
    pointed: float
    outlined: float
    lined: float
    numbered: float


class Nano(nn.Module):
    """The checkpoint's modules. pointing_layers: so many of the last layers with attention have heads that are taught where values stand;
    those of the last layer can hand what they find to the output directly. In the layer with attention before them, heads are taught to
    find the value at the end of its line of the outline, so that the answer does not have to find it in one step; and another head of each
    group, there and in the next one, finds this line where the value begins. In the first layer with attention, heads find the mark of its
    line from each word of a page, so that who finds the word knows the line: from there to the layers that copy, words say this mark."""

    def __init__(self, config: dict[str, Any], pointing_layers: int = 2) -> None:
        super().__init__()
        parsed = Qwen3_5Config(**{key: value for key, value in config.items() if key != "dtype"})
        parsed._attn_implementation = "sdpa"
        self.model = Qwen3_5ForConditionalGeneration(parsed)
        full = [index for index, kind in enumerate(parsed.text_config.layer_types) if kind == "full_attention"]
        self.image_token = parsed.image_token_id
        last, before = full[-pointing_layers:], full[-pointing_layers - 1 : -pointing_layers]
        self.value_heads = tuple(Heads(layer, 0) for layer in last)
        self.outline_heads = tuple(Heads(layer, 0) for layer in before)
        self.line_heads = tuple(Heads(layer, 1) for layer in (*before, last[0]))
        self.mark_heads = (Heads(full[0], 0),) if full[0] < last[0] else ()
        self.naming_layers = tuple(sorted({full[0], *(one.layer - 1 for one in self.value_heads)})) if self.mark_heads else ()

    @property
    def text(self) -> Any:
        """The text decoder, Qwen3_5TextModel."""
        return self.model.model.language_model

    def hidden(self, batch: Batch, pointing: Pointing | None = None) -> Tensor:
        """The last hidden states (B, T, hidden), the tokens of pictures replaced by what the vision tower makes of them."""
        x = self.text.embed_tokens(batch.tokens).float()
        if batch.patches is not None:
            seen = self.model.model.visual(batch.patches, grid_thw=batch.grids).pooler_output
            x = x.masked_scatter((batch.tokens == self.image_token)[..., None], seen.float())
        rotary = self.text.rotary_emb(x, batch.positions[:, None])
        return decode(self.text, x, rotary, pointing)

    def forward(self, batch: Batch, pointing_weight: float) -> Outcome:
        """Loss of the chosen tokens and of the taught heads."""
        taught = (
            (self.value_heads, *_looking(batch.sources, ahead=True)),
            (self.outline_heads, *_looking(batch.outline, ahead=False)),
            (self.line_heads, *_looking(batch.lines, ahead=True)),
            (self.mark_heads, *_looking(batch.beside, ahead=False)),
        )
        pointing = Pointing({one: rows for heads, rows, _ in taught for one in heads}, layers=self.naming_layers)
        hidden = self.hidden(batch, pointing)
        asked = batch.chosen[:, 1:]
        logits = F.linear(hidden[:, :-1][asked], self.text.embed_tokens.weight).float()
        wanted = batch.tokens[:, 1:][asked]
        choice = F.cross_entropy(logits, wanted)
        losses, shares = zip(*(_found([pointing.logits[one] for one in heads], places) for heads, _, places in taught), strict=True)
        if pointing.hidden and (batch.beside >= 0).any():
            losses += (torch.stack([self._named(batch, early) for early in pointing.hidden.values()]).mean(),)
        best = logits.argmax(-1)
        return Outcome(choice + pointing_weight * sum(losses), choice.item(), best, best == wanted, *shares)

    def _named(self, batch: Batch, hidden: Tensor) -> Tensor:
        """Mean loss of the words of pages saying the mark of their line, among all marks of the batch, by hidden states on the way: so that
        whoever copies from a word can copy the mark as well."""
        rows, columns = (batch.beside >= 0).nonzero(as_tuple=True)
        marks, wanted = batch.tokens[rows, batch.beside[rows, columns]].unique(return_inverse=True)
        return F.cross_entropy(F.linear(hidden[rows, columns], self.text.embed_tokens.weight[marks]).float(), wanted)


def _looking(places: Tensor, ahead: bool) -> tuple[Tensor, Tensor]:
    """The tokens that should look at places (B, T), as indices into B * T, and the places. ahead: the token before each one looks."""
    rows = (places >= 0).flatten().nonzero().squeeze(1)
    return rows - int(ahead), places[places >= 0]


def _found(logits: list[list[Tensor]], places: Tensor) -> tuple[Tensor, float]:
    """Mean loss of heads that should look at these places, and the share that the last of them finds; 0 and nan without any."""
    if not logits or not len(places):
        return places.new_zeros((), dtype=torch.float32), math.nan
    loss = torch.stack([F.cross_entropy(found, places) for layer in logits for found in layer]).mean()
    return loss, (logits[-1][-1].argmax(-1) == places).float().mean().item()


def load_checkpoint(nano: Nano, folder: Path) -> None:
    """Take the weights of an exported folder; the head is tied to the embeddings."""
    tensors: dict[str, Tensor] = {}
    for file in sorted(folder.glob("*.safetensors")):
        tensors |= load_file(file)
    missing, unknown = nano.model.load_state_dict({name: tensor.float() for name, tensor in tensors.items()}, strict=False)
    if unknown or set(missing) - {"lm_head.weight"}:
        raise ValueError(f"{folder} is of another shape: {[*unknown, *missing][:5]}; name its --shape")
