"""The shapes of pagelift-nano and its config.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from pagelift.extract.words_prompt import SETTINGS_FILE, WORDS_PROMPT


@dataclass(frozen=True, slots=True)
class Shape:
    """interval: every so many-th layer has full attention, the others are gated DeltaNet; mlx-vlm knows regular patterns only.

    heads, linear_heads: of 64 features.
    """

    layers: int = 8
    interval: int = 2
    hidden: int = 256
    intermediate: int = 768
    heads: int = 4
    kv_heads: int = 2
    linear_heads: int = 2
    vision_depth: int = 4
    vision_hidden: int = 256


SHAPES = {
    "small": Shape(),  # two CPU cores
    "medium": Shape(layers=10, hidden=384, intermediate=1152, heads=6, kv_heads=3, linear_heads=4),  # a GPU
}
HEAD_DIM = 64
CONTEXT = 32768
PATCH = 16
PIXELS = {"shortest_edge": 32 * 32, "longest_edge": 320 * 224}
"""Area of the picture in pixels: at most 70 tokens, since this model reads the words."""


def model_config(shape: Shape, tokenizer: Tokenizer) -> dict[str, Any]:
    """config.json of a checkpoint of architecture qwen3_5."""

    def token(text: str) -> int:
        return int(tokenizer.token_to_id(f"<|{text}|>"))

    kinds = ["linear_attention"] * (shape.interval - 1) + ["full_attention"]
    text = {
        "model_type": "qwen3_5_text",
        "vocab_size": tokenizer.get_vocab_size(),
        "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate,
        "num_hidden_layers": shape.layers,
        "full_attention_interval": shape.interval,
        "layer_types": [kinds[index % shape.interval] for index in range(shape.layers)],
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": HEAD_DIM,
        "hidden_act": "silu",
        "linear_num_key_heads": shape.linear_heads,
        "linear_num_value_heads": shape.linear_heads,
        "linear_key_head_dim": HEAD_DIM,
        "linear_value_head_dim": HEAD_DIM,
        "linear_conv_kernel_dim": 4,
        "rms_norm_eps": 1e-6,
        "max_position_embeddings": CONTEXT,
        "attention_bias": False,
        "tie_word_embeddings": True,
        "eos_token_id": token("im_end"),
        "pad_token_id": token("endoftext"),
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10000.0,
            "partial_rotary_factor": 0.5,
            "mrope_section": [6, 5, 5],
            "mrope_interleaved": True,
        },
    }
    vision = {
        "model_type": "qwen3_5_vision",
        "depth": shape.vision_depth,
        "hidden_size": shape.vision_hidden,
        "intermediate_size": 4 * shape.vision_hidden,
        "num_heads": shape.vision_hidden // HEAD_DIM,
        "hidden_act": "gelu_pytorch_tanh",
        "in_channels": 3,
        "patch_size": PATCH,
        "temporal_patch_size": 2,
        "spatial_merge_size": 2,
        "out_hidden_size": shape.hidden,
        "num_position_embeddings": 32 * 32,
    }
    return {
        "architectures": ["Qwen3_5ForConditionalGeneration"],
        "model_type": "qwen3_5",
        "text_config": text,
        "vision_config": vision,
        "image_token_id": token("image_pad"),
        "video_token_id": token("video_pad"),
        "vision_start_token_id": token("vision_start"),
        "vision_end_token_id": token("vision_end"),
        "tie_word_embeddings": True,
    }


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")


def write_settings(folder: Path, shape: Shape, tokenizer: Tokenizer) -> None:
    """config.json, and how pictures and answers are handled, in a checkpoint folder."""
    config = model_config(shape, tokenizer)
    write_json(folder / "config.json", config | {"dtype": "bfloat16"})
    text = config["text_config"]
    stops = [text["eos_token_id"], text["pad_token_id"]]
    write_json(folder / "generation_config.json", {"do_sample": False, "eos_token_id": stops, "pad_token_id": text["pad_token_id"]})
    picture: dict[str, Any] = {
        "patch_size": PATCH,
        "temporal_patch_size": 2,
        "merge_size": 2,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
        "size": PIXELS,
        "processor_class": "Qwen3VLProcessor",
    }
    write_json(folder / "preprocessor_config.json", picture | {"image_processor_type": "Qwen2VLImageProcessorFast"})
    write_json(folder / "video_preprocessor_config.json", picture | {"video_processor_type": "Qwen3VLVideoProcessor"})
    write_json(folder / SETTINGS_FILE, {"prompt": WORDS_PROMPT})
