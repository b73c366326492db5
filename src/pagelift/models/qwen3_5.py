"""Qwen3.5: gated DeltaNet and gated full attention layers with SwiGLU, and a vision tower in front.

Written against `pagelift.backends.Backend` alone; shapes are for T rows of a ragged step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pagelift.backends import (
    Array,
    AttentionHeads,
    Backend,
    DeltaNet,
    DeltaState,
    Indices,
    KVCache,
    Linear,
    LinearHandle,
    Matrix,
    Ragged,
    RmsNorm,
    RotaryTable,
    SequenceCache,
)
from pagelift.core.errors import EngineError
from pagelift.models.config import ModelConfig
from pagelift.models.positions import Grid, text_angles
from pagelift.models.qwen3_5_vision import VisionTower
from pagelift.models.step import Step
from pagelift.weights import WeightReader


class Qwen35:
    """A whole model. Raises WeightsError when the checkpoint does not hold exactly its weights."""

    def __init__(self, backend: Backend, config: ModelConfig, weights: WeightReader) -> None:
        text = config.text
        self.config = config
        self._backend = backend
        embeddings = weights.embedding("text.embed_tokens", text.vocab_size, text.hidden_size)
        self._embeddings = backend.load_embedding(embeddings)
        builder = LayerBuilder(backend, config, weights)
        self._layers: list[FullLayer | LinearLayer] = [builder.layer(index) for index in range(len(text.layer_types))]
        self._norm = builder.norm("text.norm", text.hidden_size)
        self._head = builder.head(embeddings)
        self._vision = VisionTower(backend, config.vision, weights) if config.vision else None
        weights.finish()

    def new_cache(self) -> SequenceCache:
        return SequenceCache([layer.new_cache(self._backend) for layer in self._layers])

    def cache_bytes(self, tokens: int, draft: int = 0) -> int:
        return sum(layer.cache_bytes(self._backend, tokens, draft) for layer in self._layers)

    def forward(self, step: Step) -> Array:
        """Run the decoder over a step and advance the caches: hidden rows (T, hidden) before the last norm.

        Raises EngineError when a token is outside the vocabulary or a sequence grows beyond the model's context.
        """
        self._check(step)
        backend, batch = self._backend, step.batch
        x = backend.embedding(self._embeddings, step.tokens)  # (T, hidden)
        for picture in step.pictures:
            x = backend.put_rows(x, picture.start, picture.features)
        table = rotary_table(backend, text_angles(step.positions.astype(np.int64), self.config.text.rope))
        for index, layer in enumerate(self._layers):
            x = run_layer(backend, layer, x, table, (batch, index))
        backend.end_step(batch)
        for segment in batch.segments:
            segment.cache.advance(segment.length, segment.draft)
        return x

    def logits(self, hidden: Array, rows: Indices, tokens: Indices | None = None) -> npt.NDArray[np.float32]:
        """Logits of the chosen rows: (rows, vocabulary), or (rows, tokens) for only those tokens."""
        return self._backend.to_numpy(self._backend.logits(hidden, self._norm, self._head, rows, tokens))

    def encode(self, patches: npt.NDArray[np.float32], grids: Sequence[Grid]) -> Array:
        """Features (tokens, hidden) of pictures from their patches. Raises EngineError when the model has no vision tower."""
        if self._vision is None:
            raise EngineError("this checkpoint is text-only; it cannot read pictures")
        return self._backend.evaluate(self._vision.encode(patches, grids))

    def _check(self, step: Step) -> None:
        text = self.config.text
        if step.tokens.min() < 0 or step.tokens.max() >= text.vocab_size:
            raise EngineError(f"a token id is outside the vocabulary of {text.vocab_size}")
        longest = max(s.cache.length + s.length for s in step.batch.segments)
        if longest > text.max_positions:
            raise EngineError(f"a sequence of {longest} tokens is longer than the model's context of {text.max_positions}")


class OutputHead:
    """The last norm and the output head of a checkpoint alone: logits of hidden rows that were computed before."""

    def __init__(self, backend: Backend, config: ModelConfig, weights: WeightReader) -> None:
        text = config.text
        builder = LayerBuilder(backend, config, weights)
        self.vocab_size = text.vocab_size
        self._backend = backend
        self._norm = builder.norm("text.norm", text.hidden_size)
        self._head = builder.head(weights.embedding("text.embed_tokens", text.vocab_size, text.hidden_size))

    def logits(self, hidden: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Logits (rows, vocabulary) of hidden rows (rows, hidden) before the last norm."""
        rows = self._backend.logits(self._backend.from_numpy(hidden), self._norm, self._head, np.arange(len(hidden)))
        return self._backend.to_numpy(rows)


@dataclass(frozen=True, slots=True)
class Mlp:
    """SwiGLU: down(silu(gate(x)) * up(x)), with the norm before it."""

    norm: RmsNorm
    gate: LinearHandle
    up: LinearHandle
    down: LinearHandle


@dataclass(frozen=True, slots=True)
class FullLayer:
    """Causal attention with a sigmoid gate on its output. projections: q with its gate, k, v."""

    norm: RmsNorm
    projections: tuple[LinearHandle, LinearHandle, LinearHandle]
    heads: AttentionHeads
    output: LinearHandle
    mlp: Mlp

    def new_cache(self, backend: Backend) -> KVCache:
        return backend.new_kv_cache(self.heads)

    def cache_bytes(self, backend: Backend, tokens: int, draft: int) -> int:  # noqa: ARG002
        return backend.kv_bytes(self.heads, tokens)

    def mix(self, backend: Backend, x: Array, table: RotaryTable, batch: Ragged, index: int) -> Array:
        """x + attention(norm(x)): (T, hidden)."""
        q, k, v = backend.norm_linears(x, self.norm, self.projections, batch.prompt_rows)
        y = backend.head_attention((q, k, v), self.heads, table, batch, batch.layer_caches(index))  # (T, heads * head_dim)
        return backend.linear(y, self.output, x, batch.prompt_rows)


@dataclass(frozen=True, slots=True)
class LinearLayer:
    """Gated DeltaNet. projections: qkv, z, a, b."""

    norm: RmsNorm
    projections: tuple[LinearHandle, LinearHandle, LinearHandle, LinearHandle]
    net: DeltaNet
    output: LinearHandle
    mlp: Mlp

    def new_cache(self, backend: Backend) -> DeltaState:
        return backend.new_delta_state(self.net)

    def cache_bytes(self, backend: Backend, tokens: int, draft: int) -> int:  # noqa: ARG002
        return backend.state_bytes(self.net, draft)

    def mix(self, backend: Backend, x: Array, table: RotaryTable, batch: Ragged, index: int) -> Array:  # noqa: ARG002
        """x + delta_net(norm(x)): (T, hidden)."""
        qkv, z, a, b = backend.norm_linears(x, self.norm, self.projections, batch.prompt_rows)
        y = backend.delta_net((qkv, z, a, b), self.net, batch, batch.layer_caches(index))  # (T, value_heads * value_dim)
        return backend.linear(y, self.output, x, batch.prompt_rows)


class LayerBuilder:
    """Reads the decoder's layers from a checkpoint into a backend."""

    def __init__(self, backend: Backend, config: ModelConfig, weights: WeightReader) -> None:
        self._backend = backend
        self._config = config
        self._weights = weights

    def layer(self, index: int) -> FullLayer | LinearLayer:
        full = self._config.text.layer_types[index] == "full_attention"
        return self._full(f"text.layers.{index}") if full else self._linear_attention(f"text.layers.{index}")

    def norm(self, name: str, size: int) -> RmsNorm:
        return RmsNorm(self._backend.from_numpy(self._weights.norm(name, size)), self._config.text.rms_norm_eps)

    def head(self, embeddings: Matrix) -> LinearHandle:
        """The output head: its own weights, or the embeddings where they are tied."""
        text = self._config.text
        if self._config.tied_embeddings:
            self._weights.drop_tied_head()
            return self._backend.load_linear(Linear(embeddings))
        return self._linear("lm_head", text.vocab_size, text.hidden_size)

    def _linear(self, name: str, out_features: int, in_features: int, bias: bool = False) -> LinearHandle:
        return self._backend.load_linear(self._weights.linear(name, out_features, in_features, bias))

    def _mlp(self, layer: str) -> Mlp:
        hidden, inner = self._config.text.hidden_size, self._config.text.intermediate_size
        return Mlp(
            norm=self.norm(f"{layer}.post_attention_layernorm", hidden),
            gate=self._linear(f"{layer}.mlp.gate_proj", inner, hidden),
            up=self._linear(f"{layer}.mlp.up_proj", inner, hidden),
            down=self._linear(f"{layer}.mlp.down_proj", hidden, inner),
        )

    def _full(self, layer: str) -> FullLayer:
        text, part = self._config.text, f"{layer}.self_attn"
        hidden, bias, q_size, kv_size = text.hidden_size, text.attention_bias, text.heads * text.head_dim, text.kv_heads * text.head_dim
        q = self._linear(f"{part}.q_proj", 2 * q_size, hidden, bias)
        k = self._linear(f"{part}.k_proj", kv_size, hidden, bias)
        v = self._linear(f"{part}.v_proj", kv_size, hidden, bias)
        norms = self.norm(f"{part}.q_norm", text.head_dim), self.norm(f"{part}.k_norm", text.head_dim)
        return FullLayer(
            norm=self.norm(f"{layer}.input_layernorm", hidden),
            projections=(q, k, v),
            heads=AttentionHeads(text.heads, text.kv_heads, text.head_dim, *norms),
            output=self._linear(f"{part}.o_proj", hidden, q_size, bias),
            mlp=self._mlp(layer),
        )

    def _linear_attention(self, layer: str) -> LinearLayer:
        part, hidden = f"{layer}.linear_attn", self._config.text.hidden_size
        net = self._delta_net(part)
        values = net.value_heads * net.value_dim
        return LinearLayer(
            norm=self.norm(f"{layer}.input_layernorm", hidden),
            projections=(
                self._linear(f"{part}.in_proj_qkv", net.channels, hidden),
                self._linear(f"{part}.in_proj_z", values, hidden),
                self._linear(f"{part}.in_proj_a", net.value_heads, hidden),
                self._linear(f"{part}.in_proj_b", net.value_heads, hidden),
            ),
            net=net,
            output=self._linear(f"{part}.out_proj", hidden, values),
            mlp=self._mlp(layer),
        )

    def _delta_net(self, part: str) -> DeltaNet:
        text, weights, to_array = self._config.text, self._weights, self._backend.from_numpy
        channels = 2 * text.linear_key_heads * text.linear_key_dim + text.linear_value_heads * text.linear_value_dim
        return DeltaNet(
            key_heads=text.linear_key_heads,
            value_heads=text.linear_value_heads,
            key_dim=text.linear_key_dim,
            value_dim=text.linear_value_dim,
            conv=to_array(weights.conv1d(f"{part}.conv1d", channels, text.conv_kernel)),
            a_log=to_array(weights.vector(f"{part}.A_log", (text.linear_value_heads,))),
            dt_bias=to_array(weights.vector(f"{part}.dt_bias", (text.linear_value_heads,))),
            norm=RmsNorm(to_array(weights.vector(f"{part}.norm.weight", (text.linear_value_dim,))), text.rms_norm_eps),
        )


def run_layer(backend: Backend, layer: FullLayer | LinearLayer, x: Array, table: RotaryTable, caches: tuple[Ragged, int]) -> Array:
    """One decoder layer over the rows of a step: (T, hidden). caches: the batch, and the place of the layer in its caches."""
    mixed, mlp = layer.mix(backend, x, table, *caches), layer.mlp
    return backend.swiglu_block(mixed, mlp.norm, (mlp.gate, mlp.up, mlp.down), caches[0].prompt_rows)


def rotary_table(backend: Backend, angles: npt.NDArray[np.float32]) -> RotaryTable:
    """The table of rotary angles (T, rotary_dim / 2)."""
    return RotaryTable(backend.from_numpy(np.cos(angles)), backend.from_numpy(np.sin(angles)))
