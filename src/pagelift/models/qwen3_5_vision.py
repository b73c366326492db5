"""The vision tower of Qwen3.5: a ViT with learned and rotary positions, and a merger of 2 x 2 patches into one token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pagelift.backends import Array, Backend, LayerNorm, LinearHandle, RotaryTable
from pagelift.core.errors import EngineError
from pagelift.models.config import VisionConfig
from pagelift.models.positions import Grid, interpolate_table, vision_angles
from pagelift.weights import WeightReader

LAYER_NORM_EPS = 1e-6


@dataclass(frozen=True, slots=True)
class Block:
    """Attention inside each frame, then an MLP, each with its norm before and a residual around."""

    norm1: LayerNorm
    qkv: LinearHandle
    output: LinearHandle
    norm2: LayerNorm
    first: LinearHandle
    second: LinearHandle


class VisionTower:
    """Pictures to rows that take the places of their placeholders in the decoder."""

    def __init__(self, backend: Backend, config: VisionConfig, weights: WeightReader) -> None:
        self._backend = backend
        self._config = config
        self._weights = weights
        c, hidden = config, config.hidden_size
        patch = (c.in_channels, c.temporal_patch_size, c.patch_size, c.patch_size)
        self._patches = backend.load_linear(weights.patch_projection("vision.patch_embed.proj", hidden, patch))
        self._positions = self._position_table()
        self._blocks = [self._block(f"vision.blocks.{index}") for index in range(c.depth)]
        merged = hidden * c.merge_size**2
        self._merger_norm = self._norm("vision.merger.norm")
        self._merger_first = self._linear("vision.merger.linear_fc1", merged, merged)
        self._merger_second = self._linear("vision.merger.linear_fc2", c.out_hidden_size, merged)

    def encode(self, patches: npt.NDArray[np.float32], grids: Sequence[Grid]) -> Array:
        """Features (tokens, out_hidden) of pictures, one after the other.

        patches: (patches, patch_features), those of each picture frame by frame in the order of `block_order`, each flattened
        as channel, frame of the pair, row, column. Raises EngineError when they do not fit the grids.
        """
        c, backend = self._config, self._backend
        if not grids or patches.shape != (sum(g.patches for g in grids), c.patch_features):
            raise EngineError(f"patches {patches.shape} do not fit the grids {list(grids)} of {c.patch_features} numbers a patch")
        angles = vision_angles(grids, c.merge_size, c.rope_theta, c.hidden_size // c.heads)
        table = RotaryTable(backend.from_numpy(np.cos(angles)), backend.from_numpy(np.sin(angles)))
        places = np.concatenate([interpolate_table(self._positions, grid, c.merge_size) for grid in grids])
        lengths = [grid.rows * grid.columns for grid in grids for _ in range(grid.frames)]
        prompt = np.ones(len(patches), np.bool_)  # like the tokens that they become
        x = backend.linear(backend.from_numpy(patches), self._patches, backend.from_numpy(places), prompt)  # (patches, hidden)
        for block in self._blocks:
            (qkv,) = backend.norm_linears(x, block.norm1, (block.qkv,), prompt)  # (patches, 3 * hidden)
            x = backend.linear(backend.picture_attention(qkv, c.heads, table, lengths), block.output, x, prompt)
            x = backend.gelu_block(x, block.norm2, (block.first, block.second), "tanh", prompt)
        merged = backend.norm(x, self._merger_norm).reshape(-1, c.hidden_size * c.merge_size**2)
        prompt = prompt[: merged.shape[0]]
        hidden = backend.gelu(backend.linear(merged, self._merger_first, prompt=prompt), "erf")
        return backend.linear(hidden, self._merger_second, prompt=prompt)

    def _position_table(self) -> npt.NDArray[np.float32]:
        """The learned positions (side * side, hidden) on the host, where they are interpolated."""
        places = self._config.position_side**2
        handle = self._backend.load_embedding(self._weights.embedding("vision.pos_embed", places, self._config.hidden_size))
        return self._backend.to_numpy(self._backend.embedding(handle, np.arange(places)))

    def _block(self, name: str) -> Block:
        hidden, inner = self._config.hidden_size, self._config.intermediate_size
        return Block(
            norm1=self._norm(f"{name}.norm1"),
            qkv=self._linear(f"{name}.attn.qkv", 3 * hidden, hidden),
            output=self._linear(f"{name}.attn.proj", hidden, hidden),
            norm2=self._norm(f"{name}.norm2"),
            first=self._linear(f"{name}.mlp.linear_fc1", inner, hidden),
            second=self._linear(f"{name}.mlp.linear_fc2", hidden, inner),
        )

    def _norm(self, name: str) -> LayerNorm:
        size = (self._config.hidden_size,)
        weight, bias = (self._backend.from_numpy(self._weights.vector(f"{name}.{part}", size)) for part in ("weight", "bias"))
        return LayerNorm(weight, bias, LAYER_NORM_EPS)

    def _linear(self, name: str, out_features: int, in_features: int) -> LinearHandle:
        return self._backend.load_linear(self._weights.linear(name, out_features, in_features, bias=True))
