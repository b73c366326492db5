"""A model run part by part: vision tower, embeddings, decoder blocks, head; only one of them is in memory at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np

from pagelift.backends import Backend, HostTensor, Indices, Matrix, Ragged, SequenceCache
from pagelift.backends.tensors import Floats
from pagelift.core.errors import ConfigError
from pagelift.evals.forced import Forced
from pagelift.models.config import ModelConfig, load_config
from pagelift.models.positions import text_angles
from pagelift.models.qwen3_5 import LayerBuilder, OutputHead, rotary_table, run_layer
from pagelift.models.qwen3_5_vision import VisionTower
from pagelift.quantization.carry import Carried
from pagelift.quantization.recording import Listener, Listening, SwappingReader, unheard
from pagelift.quantization.work import LOADING
from pagelift.weights import Checkpoint, load_checkpoint
from pagelift.weights.quant.formats import Module, Sizes
from pagelift.weights.quant.layout import Part, parts_of

LOGIT_ROWS = 64
"""Rows whose logits over the whole vocabulary are in memory together."""


@dataclass(frozen=True)
class Source:
    """A checkpoint in 16 bits that is to be quantized, and the backend that runs it."""

    checkpoint: Checkpoint
    config: ModelConfig
    sizes: Sizes
    parts: tuple[Part, ...]
    backend: Backend

    @classmethod
    def open(cls, folder: Path, backend: Backend) -> Source:
        """Map a checkpoint folder. Raises WeightsError, ConfigError when it is quantized already."""
        checkpoint, config = load_checkpoint(folder), load_config(folder)
        if not any(name.startswith("vision.") for name in checkpoint.tensors):
            config = replace(config, vision=None)
        sizes = Sizes.of(checkpoint, config.tied_embeddings)
        if not sizes.modules:
            raise ConfigError(f"{folder} has no matrix that can be packed: no row divides into groups of 32")
        return cls(checkpoint, config, sizes, parts_of(checkpoint, config.tied_embeddings), backend)

    def modules(self, part: Part) -> list[Module]:
        """The modules of a part that can be packed."""
        return [self.sizes.by_name[name] for name in part.modules if name in self.sizes.by_name]

    def weight(self, module: str, rows: Indices) -> Floats:
        """Rows of a matrix (rows, in) in float32."""
        tensor = self.checkpoint.tensors[f"{module}.weight"]
        return HostTensor(tensor.array[rows], tensor.dtype).to_float32()

    def release(self, part: Part) -> None:
        """Tell the system that the part's pages of the files are not needed any more."""
        for name in part.names:
            self.checkpoint.tensors[name].release()

    def size(self, part: Part) -> float:
        """Numbers in all tensors of a part."""
        return float(sum(self.checkpoint.tensors[name].array.size for name in part.names))

    def loading(self, part: Part) -> float:
        """Bringing a part into memory, in multiply-adds of running it."""
        return LOADING * self.size(part) if part.name != "embeddings" else 0.0

    def running(self, part: Part, documents: Iterable[Forced], listening: bool = False) -> float:
        """Documents through a part, in multiply-adds. listening: for the second moments of its inputs, too.

        The vision tower sees several patches for a token of a picture; rows of the embeddings are looked up; the head is for answers.
        """
        tokens = sum(self._tokens(part, document) for document in documents)
        if part.name == "embeddings":
            return float(tokens * self.config.text.hidden_size)
        inputs = {module.in_features for module in self.modules(part)} if listening else set()
        return tokens * (self.size(part) + sum(features**2 for features in inputs))

    def _tokens(self, part: Part, document: Forced) -> int:
        if part.name == "vision":
            merged = self.config.vision.merge_size**2 if self.config.vision else 1
            return merged * sum(placed.tokens for placed in document.pictures)
        return len(document) - document.answer if part.name == "head" else len(document)

    def carried(self, path: Path, part: Part, documents: Sequence[Forced]) -> Carried:
        """Where the rows of documents after a part are kept."""
        lengths = [sum(p.tokens for p in d.pictures) if part.name == "vision" else len(d) for d in documents]
        return Carried(path, lengths, self.config.text.hidden_size)

    def reader(self, swapped: Mapping[str, Matrix]) -> SwappingReader:
        return SwappingReader(self.checkpoint, {}, swapped)


class PartRunner:
    """One part of a model on the backend. swapped: its quantized modules. listener: told what its linear layers get."""

    def __init__(self, source: Source, part: Part, swapped: Mapping[str, Matrix], listener: Listener = unheard) -> None:
        self._source = source
        self._backend = cast(Backend, Listening(source.backend, listener))
        self._reader = source.reader(swapped)
        self._part = part
        builder = LayerBuilder(self._backend, source.config, self._reader)
        text = source.config.text
        match part.name:
            case "vision":
                assert source.config.vision is not None
                self._tower = VisionTower(self._backend, source.config.vision, self._reader)
            case "embeddings":
                table = self._reader.embedding("text.embed_tokens", text.vocab_size, text.hidden_size)
                self._table = self._backend.load_embedding(table)
            case "head":
                self._head = OutputHead(self._backend, source.config, self._reader)
            case _:
                assert part.block is not None
                self._layer = builder.layer(part.block)

    def rows(self, document: Forced, before: Floats | None) -> Floats:
        """A document through the part. before: its rows after the part before; of the vision tower only those of pictures.

        The head gives back what it gets: it is run over the answer, so that its listener hears it.
        """
        if self._part.name == "vision":
            return self.pictures(document)
        if self._part.name == "embeddings":
            return self.embed(document, before if document.pictures else None)
        assert before is not None
        if self._part.name != "head":
            return self.block(document, before)
        for _ in self.logits(before[document.answer - 1 : -1]):
            pass
        return before

    def pictures(self, document: Forced) -> Floats:
        """Features of all pictures of a document, one after the other: (tokens, hidden)."""
        if not document.pictures:
            return np.empty((0, self._source.config.text.hidden_size), np.float32)
        features = [self._backend.to_numpy(self._tower.encode(p.picture.patches(), [p.picture.grid])) for p in document.pictures]
        return np.concatenate(features)

    def embed(self, document: Forced, pictures: Floats | None) -> Floats:
        """The rows (T, hidden) that the first block gets. pictures: of `pictures`."""
        x: Floats = self._backend.to_numpy(self._backend.embedding(self._table, document.tokens)).copy()
        row = 0
        for placed in document.pictures if pictures is not None else ():
            assert pictures is not None
            x[placed.start : placed.start + placed.tokens] = pictures[row : row + placed.tokens]
            row += placed.tokens
        return x

    def block(self, document: Forced, x: Floats) -> Floats:
        """x (T, hidden) through the decoder block."""
        backend = self._backend
        batch = Ragged.of([(SequenceCache([self._layer.new_cache(backend)]), len(document), False)])
        table = rotary_table(backend, text_angles(document.positions, self._source.config.text.rope))
        y = run_layer(backend, self._layer, backend.from_numpy(x), table, (batch, 0))
        backend.end_step(batch)
        return backend.to_numpy(y)

    def logits(self, hidden: Floats) -> Iterator[Floats]:
        """Logits (rows, vocabulary) of hidden rows, some rows at a time."""
        for k in range(0, len(hidden), LOGIT_ROWS):
            yield self._head.logits(hidden[k : k + LOGIT_ROWS])
