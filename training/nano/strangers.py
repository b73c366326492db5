"""Words that nobody has seen: copying is learned for any token, not only for those that names on invoices are made of.

In some values each token of letters that is copied from the page is replaced by another, there and in the answer.
"""

from __future__ import annotations

import dataclasses
from random import Random

from tokenizers import Tokenizer

from nano.examples import Example

SHARE = 0.3
"""Of the values, so many are written in strange words."""


def letter_tokens(tokenizer: Tokenizer) -> frozenset[int]:
    """The tokens that are letters and nothing else."""
    return frozenset(token for token in range(tokenizer.get_vocab_size()) if tokenizer.decode([token]).isalpha())


def with_strangers(example: Example, letters: frozenset[int], rng: Random, share: float = SHARE) -> Example:
    """The example with some of its words replaced."""
    tokens, sources = example.tokens, example.sources
    choices = sorted(letters)
    replaced: dict[int, int] = {}
    for first, last in example.values.values():
        if rng.random() >= share:
            continue
        for index in range(first, last):
            source = int(sources[index])
            if source >= 0 and tokens[source] == tokens[index] and int(tokens[index]) in letters:
                replaced[source] = rng.choice(choices)
    changed = tokens.copy()
    for index in range(example.answer, len(tokens)):
        source = int(sources[index])
        if source in replaced and tokens[source] == tokens[index]:
            changed[index] = replaced[source]
    for source, token in replaced.items():
        changed[source] = token
    return dataclasses.replace(example, tokens=changed)
