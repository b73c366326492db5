"""The tokenizer of pagelift-nano: byte-level BPE in which a word is cut in the same way wherever it stands, so that it can be copied.

A space is a token of its own, so are every digit and every sign; only letters merge, and two pieces of JSON around keys.

transformers and mlx-vlm read any tokenizer of this architecture with the splitting pattern of Qwen3.5. It is the one in the file,
therefore; the merges are learned with a finer one, and since none of them crosses its borders, the coarser gives the same tokens.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from nano.shape import CONTEXT
from pagelift.extract.words_prompt import MARKS

VOCABULARY = 2112
CHAT_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
FINE = r'":|\{"|\n+|[\p{L}\p{M}]+|.'
QWEN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_MARK = re.compile(r"<\|\w+\|>")
_SEED = 900_000_000
TEMPLATE = """\
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- if message.content is string %}
        {{- message.content }}
    {%- else %}
        {%- for part in message.content %}
            {%- if part.type == 'image' %}
                {{- '<|vision_start|><|image_pad|><|vision_end|>' }}
            {%- elif part.type == 'video' %}
                {{- '<|vision_start|><|video_pad|><|vision_end|>' }}
            {%- elif part.type == 'text' %}
                {{- part.text }}
            {%- endif %}
        {%- endfor %}
    {%- endif %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""


def fit_tokenizer(texts: Iterable[str]) -> Tokenizer:
    """Learn the merges from prompts and answers."""
    engine = Tokenizer(models.BPE())
    engine.normalizer = normalizers.NFC()
    engine.pre_tokenizer = _splitting(FINE)
    engine.decoder = decoders.ByteLevel()
    size = VOCABULARY - len(CHAT_TOKENS) - len(MARKS)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    engine.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False))
    engine.pre_tokenizer = _splitting(QWEN)
    engine.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in (*CHAT_TOKENS, *MARKS)])
    return engine


def _splitting(pattern: str) -> pre_tokenizers.PreTokenizer:
    by_pattern = pre_tokenizers.Split(Regex(pattern), "isolated")
    return pre_tokenizers.Sequence([by_pattern, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def write_tokenizer(engine: Tokenizer, folder: Path) -> None:
    """tokenizer.json, tokenizer_config.json and the chat template, in a checkpoint folder."""
    folder.mkdir(parents=True, exist_ok=True)
    engine.save(str(folder / "tokenizer.json"))
    names = {f"{name}_token": f"<|{text}|>" for name, text in (("image", "image_pad"), ("video", "video_pad"))}
    names |= {f"vision_{side}_token": f"<|vision_{side}|>" for side in ("start", "end")}
    config = {
        "tokenizer_class": "Qwen2Tokenizer",
        "processor_class": "Qwen3VLProcessor",
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "clean_up_tokenization_spaces": False,
        "model_max_length": CONTEXT,
        **names,
        "extra_special_tokens": names,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    (folder / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")


def training_texts(count: int) -> Iterator[str]:
    """Prompts and answers of the train split, without marks, to fit the tokenizer to."""
    from pagelift.evals.spelling import Printed, answer_pieces
    from pagelift.evals.synthetic import make_sample
    from pagelift.extract.words_prompt import words_prompt
    from pagelift.schema import Schema

    for seed in range(count):
        sample = make_sample(_SEED + seed, "train")
        yield _MARK.sub("", words_prompt(sample.pages, Schema.load(sample.schema)))
        yield "".join(piece.text for piece in answer_pieces(sample.expected, Printed.at(sample.evidence)))
