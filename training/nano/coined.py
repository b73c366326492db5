"""Coined words: that a label says what is asked for is seen by its words, also by words that nobody has taught.

Words that stand both on the pages and in the outline are replaced by others, everywhere in the example and in all their spellings, so that
finding them again becomes a skill for any word.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from dataclasses import dataclass
from random import Random
from typing import Literal

import numpy as np
from tokenizers import Tokenizer

from nano.examples import HEAD, TAIL, Example
from pagelift.extract.words_prompt import ENDS

SHARE = 0.5
"""Of the words that could be replaced, so many are."""
SHORTEST = 3
"""Letters of such a word, at least; shorter tokens are ends of many words."""
KEPT = HEAD + TAIL + "string number integer boolean date list null true false"
"""What is said in words in every prompt."""
Spelling = Literal["small", "capital", "all capitals"]
Words = dict[str, dict[Spelling, int]]


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Tokens that are words. words: by their small letters, in all their spellings. of: the word of each token. ends: of segments."""

    words: Words
    of: dict[int, tuple[str, Spelling]]
    ends: frozenset[int]


def lexicon(tokenizer: Tokenizer) -> Lexicon:
    """The words among the tokens."""
    words: Words = defaultdict(dict)
    of = {}
    kept = set(tokenizer.encode(KEPT).ids)
    for token in range(tokenizer.get_vocab_size()):
        text = tokenizer.decode([token])
        spelling = _spelling(text)
        if spelling and text.isalpha() and len(text) >= SHORTEST and token not in kept:
            words[text.lower()][spelling] = token
            of[token] = text.lower(), spelling
    return Lexicon(dict(words), of, frozenset(tokenizer.token_to_id(mark) for mark in ENDS))


def _spelling(text: str) -> Spelling | None:
    return "small" if text.islower() else "capital" if text.istitle() else "all capitals" if text.isupper() else None


def with_coined_words(example: Example, lexicon: Lexicon, rng: Random, share: float = SHARE) -> Example:
    """The example with some of the words that its pages and its outline share replaced by words that occur nowhere in it."""
    tokens = example.tokens.tolist()
    outline = max((index for index in range(example.answer) if tokens[index] in lexicon.ends), default=-1) + 1
    known = [lexicon.of.get(token) for token in tokens]
    shared = {one[0] for one in known[:outline] if one} & {one[0] for one in known[outline : example.answer] if one}
    spelled: dict[str, set[Spelling]] = defaultdict(set)
    for one in filter(None, known):
        spelled[one[0]].add(one[1])
    taken = set(spelled)
    changed = {}
    for word in sorted(shared):
        free = [other for other, tokens_of in lexicon.words.items() if other not in taken and spelled[word] <= tokens_of.keys()]
        if free and rng.random() < share:
            other = rng.choice(free)
            taken.add(other)
            changed |= {lexicon.words[word][spelling]: lexicon.words[other][spelling] for spelling in spelled[word]}
    return dataclasses.replace(example, tokens=np.array([changed.get(token, token) for token in tokens], example.tokens.dtype))
