"""A model that says what it is told to, token by token, and notes what it was shown; no weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pagelift.backends import Array, Indices, SequenceCache
from pagelift.models import Grid, ModelConfig, Step, load_config
from pagelift.models.pictures import PictureProcessor
from pagelift.models.prompt import PromptBuilder
from pagelift.runtime import LoadedModel
from pagelift.weights import ChatTemplate, Tokenizer

FOLDER = Path(__file__).parent.parent / "golden" / "document"


class ScriptedModel:
    """After any prompt it gives the tokens of `answer` and then ends its turn. logit: of the scripted token, over 0 for all others."""

    def __init__(self, config: ModelConfig, answer: Sequence[int], logit: float = 5.0) -> None:
        self.config = config
        self.answer = list(answer)
        self.logit = logit
        self.steps: list[Step] = []
        self._given: dict[int, int] = {}
        self._last: list[SequenceCache] = []

    def new_cache(self) -> SequenceCache:
        return SequenceCache([])

    def forward(self, step: Step) -> Array:
        self.steps.append(step)
        self._rows = {segment.start + segment.length - 1: segment.cache for segment in step.batch.segments}
        for segment in step.batch.segments:
            segment.cache.advance(segment.length, segment.draft)
        return np.zeros((step.batch.rows, 1), np.float32)

    def logits(self, hidden: Array, rows: Indices, tokens: Indices | None = None) -> np.ndarray:  # noqa: ARG002
        result = np.zeros((len(rows), self.config.text.vocab_size), np.float32)
        for k, row in enumerate(rows):
            cache = id(self._rows[int(row)])
            place = self._given.get(cache, 0)
            self._given[cache] = place + 1
            result[k, self.answer[place]] = self.logit
        return result

    def encode(self, patches: np.ndarray, grids: Sequence[Grid]) -> Array:  # noqa: ARG002
        return np.zeros((sum(grid.merged(2).patches for grid in grids), 1), np.float32)


def scripted(answer: str, end: bool = True) -> LoadedModel:
    """A loaded model that answers with this text, over the tokenizer, template and processor of the golden checkpoint."""
    config, tokenizer = load_config(FOLDER), Tokenizer.load(FOLDER)
    assert config.vision
    tokens = [*tokenizer.encode(answer), *([tokenizer.id("<|im_end|>")] if end else [0] * 100_000)]
    processor = PictureProcessor.load(FOLDER, config.vision)
    prompts = PromptBuilder(config, tokenizer, ChatTemplate.load(FOLDER, tokenizer), processor)
    return LoadedModel("scripted", "none", ScriptedModel(config, tokens), tokenizer, prompts, processor)
