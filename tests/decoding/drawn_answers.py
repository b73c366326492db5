"""A small byte-level vocabulary, and answers drawn from a grammar by random numbers."""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Sequence
from typing import Any

from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers import Tokenizer as Engine

from pagelift.decoding import Constraint, Vocabulary
from pagelift.weights import Tokenizer

WORDS = "name total date vendor rows item price street note invoice München 中文 null true false 2024-01-31 27.80 GmbH".split()
MARKS = ("<|box_start|>", "<|box_end|>")
SPLIT = r"(?i:'s|'t)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


@functools.cache
def vocabulary() -> Vocabulary:
    """About 600 tokens learnt from JSON in all styles, split like those of the real family, and two stop tokens."""
    engine = Engine(models.BPE())
    engine.normalizer = normalizers.NFC()
    engine.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(SPLIT), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    engine.decoder = decoders.ByteLevel()
    rng = random.Random(1)
    rows = [{rng.choice(WORDS): rng.choice([*WORDS, None, 1.5, [], {}, "a, b"]) for _ in range(4)} for _ in range(300)]
    texts = [json.dumps(rows, ensure_ascii=False, **style) for style in ({}, {"separators": (",", ":")}, {"indent": 2})]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    engine.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet, show_progress=False))
    engine.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in ("<|endoftext|>", "<|im_end|>", *MARKS)])
    tokenizer = Tokenizer(engine, {"eos_token": "<|endoftext|>"})
    return Vocabulary(tokenizer, tokenizer.vocab_size + 40)


def tokens_of(text: str) -> list[int]:
    return vocabulary().tokenizer.encode(text)


def text_of(tokens: Sequence[int]) -> str:
    stop = vocabulary().stop_tokens
    return b"".join(vocabulary().token_bytes[t] for t in tokens if t not in stop).decode()


def accepts(constraint: Constraint, text: str) -> bool:
    """Whether a text is an answer, token by token in the tokenizer's own tokens; forced tokens must agree with them."""
    tokens = [*tokens_of(text), vocabulary().stop_tokens[0]]
    for i, token in enumerate(tokens):
        forced = list(constraint.forced())
        if forced and forced != tokens[i : i + len(forced)]:
            return False
        if constraint.prefix([token]) != 1:
            return False
        constraint.accept([token])
    return constraint.finished


def draw(constraint: Constraint, rng: random.Random, most: int = 400, closing: float = 0.5) -> list[int]:
    """An answer from a model that knows nothing: uniform choice, with a push towards the end so that it comes to one."""
    tokens: list[int] = []
    stop = set(vocabulary().stop_tokens)
    ends = [t for t, text in enumerate(vocabulary().token_bytes) if text and text[:1] in b'"]},' and len(text) < 3]
    while len(tokens) < most:
        forced = list(constraint.forced())
        if forced:
            constraint.accept(forced)
            tokens += forced
            continue
        given = constraint.allowed()
        assert given.ids is not None
        ids = given.ids.tolist()
        assert ids, "no token is allowed"
        if stop & set(ids):
            return tokens
        good = [t for t in ends if t in ids] if rng.random() < closing else []
        token = rng.choice(good or ids)
        constraint.accept([token])
        tokens.append(token)
    return tokens


def validates(schema: Any, text: str) -> bool:
    return bool(schema.is_valid(json.loads(text)))
