"""Write a checkpoint with random weights, in the layout that MLX conversions have, to measure speed and memory with.

    python benchmarks/make_checkpoint.py OUT --shape 9b|4b|2b|0.8b|tiny --bits 4|5|6|8|16 [--layers 4]

Text layers are packed in groups of 64 (16: bfloat16), the vision tower is bfloat16. The vocabulary is the real one. Tensors are
written one after the other, so memory stays small whatever the shape.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import logging
import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from qwen_tokenizer_json import build_tokenizer
from shapes import CONV_KERNEL, PATCH_FEATURES, POSITIONS, SHAPES, VOCABULARY, Linear, Shape, Small, tensors
from tokenizers import Tokenizer

GROUP_SIZE = 64
SHARD_BYTES = 2_000_000_000
ITEM_BYTES = {"U32": 4, "BF16": 2, "F32": 4}
CHUNK = 1 << 24  # numbers made at a time
TEMPLATE = """\
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- if message.content is string %}
        {{- message.content }}
    {%- else %}
        {%- for part in message.content %}
            {%- if part.type == 'text' %}
                {{- part.text }}
            {%- else %}
                {{- '<|vision_start|><|' + part.type + '_pad|><|vision_end|>' }}
            {%- endif %}
        {%- endfor %}
    {%- endif %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """One tensor of a file. fill: how its numbers are drawn (see `numbers`), with `spread` as their scale."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    fill: str
    spread: float = 1.0

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * ITEM_BYTES[self.dtype]


def entries(shape: Shape, bits: int) -> Iterator[Entry]:
    """The tensors of all files; a linear layer gives weights with a deviation of about in ** -0.5."""
    for part in tensors(shape):
        if isinstance(part, Small):
            yield Entry(part.name, "F32" if part.kind == "log" else "BF16", part.shape, part.kind, part.spread)
        elif bits == 16:
            yield Entry(f"{part.name}.weight", "BF16", (part.out_features, part.in_features), "normal", part.in_features**-0.5)
        else:
            yield from packed_entries(part, bits)


def packed_entries(part: Linear, bits: int) -> Iterator[Entry]:
    """Uniform codes have a deviation of 2 ** bits / sqrt(12); the offset centres them."""
    groups = (part.out_features, part.in_features // GROUP_SIZE)
    scale = math.sqrt(12 / part.in_features) / 2**bits
    yield Entry(f"{part.name}.weight", "U32", (part.out_features, part.in_features * bits // 32), "codes")
    yield Entry(f"{part.name}.scales", "BF16", groups, "value", scale)
    yield Entry(f"{part.name}.biases", "BF16", groups, "value", -scale * (2**bits - 1) / 2)


def numbers(entry: Entry, count: int, rng: np.random.Generator) -> np.ndarray:
    """`count` numbers of a tensor, of the type that its file holds."""
    match entry.fill:
        case "codes":
            return rng.integers(0, 2**32, count, np.uint32)
        case "log":
            values = np.log(rng.uniform(1, 16, count))
        case "normal":
            values = rng.standard_normal(count, np.float32) * entry.spread
        case kind:
            values = np.full(count, {"ones": 1.0, "zeros": 0.0, "value": entry.spread}[kind])
    values = values.astype(np.float32)
    return (values.view(np.uint32) >> 16).astype(np.uint16) if entry.dtype == "BF16" else values


def shards(all_entries: Iterable[Entry]) -> list[list[Entry]]:
    """Entries by file, each of about SHARD_BYTES at most."""
    result: list[list[Entry]] = [[]]
    size = 0
    for entry in all_entries:
        if result[-1] and size + entry.nbytes > SHARD_BYTES:
            result.append([])
            size = 0
        result[-1].append(entry)
        size += entry.nbytes
    return result


def write_shard(path: Path, contents: list[Entry], rng: np.random.Generator) -> None:
    """One safetensors file: header length, header, tensors in order."""
    header: dict[str, Any] = {"__metadata__": {"format": "mlx"}}
    end = 0
    for entry in contents:
        header[entry.name] = {"dtype": entry.dtype, "shape": entry.shape, "data_offsets": [end, end + entry.nbytes]}
        end += entry.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for entry in contents:
            left = math.prod(entry.shape)
            while left:
                file.write(numbers(entry, min(left, CHUNK), rng).data)
                left -= min(left, CHUNK)


def write_weights(folder: Path, shape: Shape, bits: int) -> int:
    """All weight files and their index; returns their size in bytes."""
    rng = np.random.Generator(np.random.SFC64(0))
    files = shards(entries(shape, bits))
    names = [f"model-{number + 1:05}-of-{len(files):05}.safetensors" for number in range(len(files))]
    for name, contents in zip(names, files, strict=True):
        write_shard(folder / name, contents, rng)
    total = sum(entry.nbytes for contents in files for entry in contents)
    where = {entry.name: name for name, contents in zip(names, files, strict=True) for entry in contents}
    write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": where})
    return total


def text_config(shape: Shape) -> dict[str, Any]:
    rotary = shape.head_dim // 8  # frequencies: a quarter of the head, in pairs
    sections = [rotary - 2 * (rotary * 10 // 32), rotary * 10 // 32, rotary * 10 // 32]
    if shape.head_dim == 256:
        sections = [11, 11, 10]
    rope = {"rope_type": "default", "rope_theta": 10_000_000, "partial_rotary_factor": 0.25}
    return {
        "model_type": "qwen3_5_text",
        "hidden_act": "silu",
        "vocab_size": VOCABULARY,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.inner,
        "num_hidden_layers": shape.layers,
        "layer_types": shape.layer_types,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "attention_bias": False,
        "linear_num_key_heads": shape.linear_key_heads,
        "linear_num_value_heads": shape.linear_value_heads,
        "linear_key_head_dim": shape.linear_dim,
        "linear_value_head_dim": shape.linear_dim,
        "linear_conv_kernel_dim": CONV_KERNEL,
        "rms_norm_eps": 1e-6,
        "max_position_embeddings": 262_144,
        "rope_parameters": rope | {"mrope_interleaved": True, "mrope_section": sections},
        "tie_word_embeddings": shape.tied,
    }


def vision_config(shape: Shape) -> dict[str, Any]:
    frames, side, _, channels = PATCH_FEATURES
    return {
        "model_type": "qwen3_5",
        "hidden_act": "gelu_pytorch_tanh",
        "depth": shape.vision.depth,
        "hidden_size": shape.vision.hidden,
        "intermediate_size": shape.vision.inner,
        "num_heads": shape.vision.heads,
        "in_channels": channels,
        "patch_size": side,
        "temporal_patch_size": frames,
        "spatial_merge_size": 2,
        "out_hidden_size": shape.hidden,
        "num_position_embeddings": POSITIONS,
        "deepstack_visual_indexes": [],
    }


def write_settings(folder: Path, shape: Shape, bits: int, tokenizer: Tokenizer) -> None:
    """Everything but the weights."""
    ids = {name: tokenizer.token_to_id(f"<|{name}|>") for name in ("image_pad", "video_pad", "vision_start", "vision_end")}
    config = {
        "architectures": ["Qwen3_5ForConditionalGeneration"],
        "model_type": "qwen3_5",
        "dtype": "bfloat16",
        "tie_word_embeddings": shape.tied,
        "image_token_id": ids["image_pad"],
        "video_token_id": ids["video_pad"],
        "vision_start_token_id": ids["vision_start"],
        "vision_end_token_id": ids["vision_end"],
        "text_config": text_config(shape),
        "vision_config": vision_config(shape),
    }
    if bits != 16:
        packed = {"group_size": GROUP_SIZE, "bits": bits, "mode": "affine"}
        config |= {"quantization": packed, "quantization_config": packed}
    ends = [tokenizer.token_to_id(name) for name in ("<|im_end|>", "<|endoftext|>")]
    pictures = {"patch_size": 16, "temporal_patch_size": 2, "merge_size": 2, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    write_json(folder / "config.json", config)
    write_json(folder / "generation_config.json", {"eos_token_id": ends, "pad_token_id": ends[1]})
    write_json(
        folder / "preprocessor_config.json",
        pictures | {"image_processor_type": "Qwen2VLImageProcessorFast", "size": {"shortest_edge": 65_536, "longest_edge": 16_777_216}},
    )
    write_json(
        folder / "video_preprocessor_config.json",
        pictures | {"video_processor_type": "Qwen3VLVideoProcessor", "size": {"shortest_edge": 4096, "longest_edge": 25_165_824}},
    )
    tokens = {"tokenizer_class": "Qwen2Tokenizer", "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "model_max_length": 262_144}
    write_json(folder / "tokenizer_config.json", tokens)
    (folder / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)


def write_json(path: Path, values: dict[str, Any]) -> None:
    path.write_text(json.dumps(values, indent=1), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a checkpoint with random weights.")
    parser.add_argument("out", type=Path, help="folder to write; made if need be")
    parser.add_argument("--shape", choices=SHAPES, default="9b")
    parser.add_argument("--bits", type=int, choices=(4, 5, 6, 8, 16), default=4)
    parser.add_argument("--layers", type=int, help="only so many of the text's")
    options = parser.parse_args()
    shape = SHAPES[options.shape]
    if options.layers:
        shape = dataclasses.replace(shape, layers=options.layers)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    start = time.perf_counter()
    options.out.mkdir(parents=True, exist_ok=True)
    write_settings(options.out, shape, options.bits, build_tokenizer())
    total = write_weights(options.out, shape, options.bits)
    logging.info("%s: %.2f GB of weights in %.0f s", options.out, total / 1e9, time.perf_counter() - start)


if __name__ == "__main__":
    main()
