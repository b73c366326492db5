"""A model that says a text whatever it is allowed to say it in: by characters, not tokens, since grammars force tokens of their own."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from pagelift.runtime import LoadedModel
from pagelift.weights import Tokenizer
from runtime.fakes import Next
from runtime.scripted import scripted


def speaking(text: str, logit: float = 5.0) -> LoadedModel:
    """A loaded model that writes `text` after any prompt, as far as it is allowed to, and then ends its turn."""
    loaded = scripted("")
    loaded.model.next_logits = _speech(text, loaded.tokenizer, loaded.model.config.text.vocab_size, logit)  # type: ignore[attr-defined]
    return loaded


def _speech(text: str, tokenizer: Tokenizer, vocabulary: int, logit: float) -> Next:
    data = text.encode()
    by_byte: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
    for index in range(tokenizer.vocab_size):
        if index not in tokenizer.special_ids and (token := tokenizer.token_bytes(index)):
            by_byte[token[0]].append((index, token))

    def logits(past: tuple[int, ...]) -> np.ndarray:
        said = b"".join(tokenizer.token_bytes(index) for index in past[-len(data) - 1 :])
        place = next(k for k in range(len(data), -1, -1) if said.endswith(data[:k]))
        row = np.zeros(vocabulary, np.float32)
        if place == len(data):
            row[list(tokenizer.stop_tokens)] = logit
        for index, token in by_byte[data[place]] if place < len(data) else ():
            if data.startswith(token, place):
                row[index] = logit + 0.5 * len(token)
        return row

    return logits
