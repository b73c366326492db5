"""A model that says a text whatever it is allowed to say it in: by characters, not tokens, since grammars force tokens of their own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np

from pagelift.runtime import LoadedModel
from pagelift.weights import Tokenizer
from runtime.fakes import Next
from runtime.scripted import scripted


def speaking(text: str | Callable[[str], str], logit: float = 5.0) -> LoadedModel:
    """A loaded model that writes `text` after any prompt, or what it gives for the prompt, as far as it is allowed to, and then ends."""
    loaded = scripted("")
    say = text if callable(text) else lambda _: text
    loaded.model.next_logits = _speech(say, loaded.tokenizer, loaded.model.config.text.vocab_size, logit)  # type: ignore[attr-defined]
    return loaded


def _speech(say: Callable[[str], str], tokenizer: Tokenizer, vocabulary: int, logit: float) -> Next:
    by_byte: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
    for index in range(tokenizer.vocab_size):
        if index not in tokenizer.special_ids and (token := tokenizer.token_bytes(index)):
            by_byte[token[0]].append((index, token))
    turn = tokenizer.id("<|im_start|>")

    def logits(past: tuple[int, ...]) -> np.ndarray:
        start = len(past) - 1 - past[::-1].index(turn)
        data = say(tokenizer.decode(past[:start])).encode()
        said = b"".join(tokenizer.token_bytes(index) for index in past[start:])
        place = next(k for k in range(len(data), -1, -1) if said.endswith(data[:k]))
        row = np.zeros(vocabulary, np.float32)
        if place == len(data):
            row[list(tokenizer.stop_tokens)] = logit
        for index, token in by_byte[data[place]] if place < len(data) else ():
            if data.startswith(token, place):
                row[index] = logit + 0.5 * len(token)
        return row

    return logits
