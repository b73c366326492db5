"""A known answer through a model: the hidden rows from which it would have drawn each token, with everything before it right."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pagelift.backends import Array, Backend, Ragged, SequenceCache
from pagelift.extract.regenerate import behind
from pagelift.models import PictureRows, Step
from pagelift.models.prompt import Prompt
from pagelift.runtime import LoadedModel
from pagelift.runtime.prefixes import picture_key


def hidden_rows(
    loaded: LoadedModel, backend: Backend, prompt: Prompt, tokens: npt.NDArray[np.int64], chosen: npt.NDArray[np.int64]
) -> npt.NDArray[np.float32]:
    """Show a model a prompt and its answer: the rows (n, hidden) before the last norm, from which it would draw each chosen token.

    tokens: of the answer. chosen: ascending indexes of those whose distribution is wanted. The service of the model must be idle;
    what it keeps of the prompt is used. Raises EngineError when prompt and answer are longer than the context.
    """
    whole = behind(prompt, tokens.tolist())
    rows = len(prompt) - 1 + chosen
    start, cache = _known_beginning(loaded, prompt)
    end = int(rows[-1]) + 1 if len(rows) else start
    features: dict[int, Array] = {}
    parts = []
    begin = start
    while begin < end:
        stop = min(end, begin + loaded.settings.step_tokens)
        hidden = backend.to_numpy(_step(loaded, (prompt, whole), (begin, stop), cache, features))
        parts.append(hidden[rows[(rows >= begin) & (rows < stop)] - begin])
        begin = stop
    size = loaded.model.config.text.hidden_size
    return np.concatenate([np.empty((0, size), np.float32), *parts]).astype(np.float32)


def _known_beginning(loaded: LoadedModel, prompt: Prompt) -> tuple[int, SequenceCache]:
    """How much of a prompt is known from an answer to it, and caches that go on from there."""
    prefixes = loaded.service.runner.prefixes
    found = prefixes.find(prefixes.points(prompt))
    return (found[0].length, found[1]) if found else (0, loaded.model.new_cache())


def _step(
    loaded: LoadedModel, prompts: tuple[Prompt, Prompt], span: tuple[int, int], cache: SequenceCache, features: dict[int, Array]
) -> Array:
    """Tokens [begin, end) through the model. prompts: without and with the answer. features: of begun pictures, by their index."""
    (prompt, whole), (begin, end) = prompts, span
    pictures = []
    for index, placed in enumerate(whole.pictures):
        first, last = max(begin, placed.start), min(end, placed.start + placed.tokens)
        if first < last:
            if index not in features:
                known = loaded.service.runner.prefixes.features(picture_key(placed.picture))
                features[index] = loaded.model.encode(placed.picture.patches(), [placed.picture.grid]) if known is None else known
            pictures.append(PictureRows(first - begin, features[index][first - placed.start : last - placed.start]))
    batch = Ragged.of([(cache, end - begin, False)], [min(max(len(prompt) - begin, 0), end - begin)])
    return loaded.model.forward(Step(whole.tokens[begin:end], whole.positions[:, begin:end], batch, tuple(pictures)))
