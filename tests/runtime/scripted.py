"""A loaded model that says what it is told to; no weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from tokenizers import AddedToken

from pagelift.models import load_config
from pagelift.models.pictures import PictureProcessor
from pagelift.models.prompt import PromptBuilder
from pagelift.runtime import LoadedModel
from pagelift.weights import ChatTemplate, Tokenizer
from runtime.fakes import FakeModel, Next

FOLDER = Path(__file__).parent.parent / "golden" / "document"


def script(answer: list[int], vocabulary: int, logit: float = 5.0) -> Next:
    """Logits that give the tokens of `answer` behind any prompt that does not end with its beginning. logit: over 0 for the others."""

    known = np.array(answer, np.int32).tobytes()

    def logits(past: tuple[int, ...]) -> np.ndarray:
        said = np.array(past[-len(answer) :], np.int32).tobytes()
        place = next(k for k in range(min(len(past), len(answer) - 1), -1, -1) if said.endswith(known[: 4 * k]))
        row = np.zeros(vocabulary, np.float32)
        row[answer[place]] = logit
        return row

    return logits


def scripted(answer: str, end: bool = True, marks: Sequence[str] = ()) -> LoadedModel:
    """A loaded model that answers with this text, over the tokenizer, template and processor of the golden checkpoint.

    marks: special tokens that the tokenizer has besides its own.
    """
    config, tokenizer = load_config(FOLDER), Tokenizer.load(FOLDER)
    if marks:
        tokenizer.engine.add_special_tokens([AddedToken(mark, special=True, normalized=False) for mark in marks])
        tokenizer = Tokenizer(tokenizer.engine, tokenizer.config, tokenizer.stop_tokens)
        size = max(config.text.vocab_size, tokenizer.vocab_size)
        config = replace(config, text=replace(config.text, vocab_size=size))
    assert config.vision
    tokens = [*tokenizer.encode(answer), *([tokenizer.id("<|im_end|>")] if end else [0] * 5000)]
    processor = PictureProcessor.load(FOLDER, config.vision)
    prompts = PromptBuilder(config, tokenizer, ChatTemplate.load(FOLDER, tokenizer), processor)
    return LoadedModel("scripted", "none", FakeModel(config, script(tokens, config.text.vocab_size)), tokenizer, prompts, processor)
