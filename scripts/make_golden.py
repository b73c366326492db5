"""Write tests/golden: tiny random checkpoints and what transformers computes from them.

    pip install torch==2.13.0 "transformers>=5.2" && python scripts/make_golden.py

Needs torch and transformers, and nothing of pagelift, so that the expected values are independent of it. Each case is a
folder with config.json, model.safetensors and expected.npz. The weights are stored in 16 bits and computed with in float32.
"""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import torch
from transformers import Qwen3_5Config, Qwen3_5ForCausalLM, Qwen3_5ForConditionalGeneration, Qwen3_5TextConfig

GOLDEN = Path(__file__).parent.parent / "tests" / "golden"
IMAGE, VIDEO, START, END = 90, 91, 92, 93

WIDE = {
    "vocab_size": 96,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "max_position_embeddings": 4096,
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 10_000_000.0,
        "partial_rotary_factor": 0.5,
        "mrope_section": [3, 3, 2],
        "mrope_interleaved": True,
    },
}
ODD = WIDE | {
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "layer_types": ["full_attention", "linear_attention", "full_attention"],
    "num_attention_heads": 6,
    "num_key_value_heads": 1,
    "head_dim": 24,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 12,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 6,
    "linear_conv_kernel_dim": 3,
    "rope_parameters": WIDE["rope_parameters"] | {"rope_theta": 10_000.0, "mrope_section": [2, 2, 2]},
}
TOWER = {
    "depth": 2,
    "hidden_size": 32,
    "intermediate_size": 44,
    "num_heads": 2,
    "out_hidden_size": 48,
    "num_position_embeddings": 36,
    "patch_size": 4,
}


def fill(model: torch.nn.Module, dtype: torch.dtype, seed: int) -> None:
    """Random weights of a size that makes every part of the model matter, rounded to `dtype`."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if name.endswith("A_log"):
            value = torch.log(torch.rand(parameter.shape, generator=generator) * 4 + 0.05)
        elif parameter.ndim == 1:
            value = 0.3 * noise + (1.0 if name.endswith(("linear_attn.norm.weight", "norm1.weight", "norm2.weight")) else 0.0)
        elif name.endswith("embed_tokens.weight"):
            value = 0.3 * noise
        else:
            value = noise / parameter[0].numel() ** 0.5
        parameter.data = value.to(dtype).float()


def save(name: str, model: torch.nn.Module, dtype: torch.dtype, expected: dict[str, torch.Tensor]) -> None:
    folder = GOLDEN / name
    model.to(dtype).save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    np.savez_compressed(folder / "expected.npz", **{key: value.numpy() for key, value in expected.items()})
    logging.info("%s: logits of size %.2f", name, expected["logits"].std())


def text(name: str, config: dict, dtype: torch.dtype, length: int) -> None:
    """A text-only model over `length` tokens; logits of some rows, and 12 tokens of greedy continuation."""
    model = Qwen3_5ForCausalLM(Qwen3_5TextConfig(**config, attn_implementation="eager")).eval()
    fill(model, dtype, seed=length)
    tokens = torch.randint(0, config["vocab_size"], (1, length), generator=torch.Generator().manual_seed(1))
    logits = model(tokens).logits[0]
    rows = torch.unique(torch.cat([torch.arange(4), torch.linspace(4, length - 1, 60).long()]))
    greedy = model.generate(tokens, max_new_tokens=12, do_sample=False, eos_token_id=None)[0, length:]
    save(name, model, dtype, {"tokens": tokens[0], "rows": rows, "logits": logits[rows], "greedy": greedy})


def prompt(config: dict) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Tokens with pages of three sizes and a video of three frames, their kinds, and the grids of images and videos."""
    images, video = [(1, 8, 6), (1, 4, 10), (1, 2, 2)], (3, 4, 6)
    generator = torch.Generator().manual_seed(2)
    words = lambda count: torch.randint(0, IMAGE, (count,), generator=generator).tolist()  # noqa: E731
    tokens = words(5)
    for _, rows, columns in images:
        tokens += [START, *[IMAGE] * (rows * columns // 4), END]
    for _ in range(video[0]):
        tokens += [*words(3), START, *[VIDEO] * (video[1] * video[2] // 4), END]
    tokens = torch.tensor([tokens + words(9)])
    assert int(tokens.max()) < config["vocab_size"]
    kinds = (tokens == IMAGE).int() + 2 * (tokens == VIDEO).int()
    return tokens, kinds, torch.tensor(images), torch.tensor([video])


def pictures(name: str, config: dict, dtype: torch.dtype) -> None:
    """A whole model with tied embeddings over pages and a video; features, positions and all logits."""
    ids = {"image_token_id": IMAGE, "video_token_id": VIDEO, "vision_start_token_id": START, "vision_end_token_id": END}
    whole = Qwen3_5Config(text_config=config, vision_config=TOWER, tie_word_embeddings=True, attn_implementation="eager", **ids)
    model = Qwen3_5ForConditionalGeneration(whole).eval()
    fill(model, dtype, seed=3)
    model.tie_weights()
    tokens, kinds, images, videos = prompt(config)
    generator = torch.Generator().manual_seed(4)
    features = TOWER["patch_size"] ** 2 * 6
    patches, frames = (torch.randn(int(grid.prod(-1).sum()), features, generator=generator) for grid in (images, videos))
    inputs = {"image_grid_thw": images, "video_grid_thw": videos, "mm_token_type_ids": kinds}
    positions, delta = model.model.get_rope_index(tokens, **inputs)
    logits = model(tokens, pixel_values=patches, pixel_values_videos=frames, **inputs).logits[0]
    expected = {
        "tokens": tokens[0],
        "positions": positions[:, 0],
        "next_position": tokens.shape[1] + delta[0, 0],
        "image_patches": patches,
        "video_patches": frames,
        "image_grids": images,
        "video_grids": videos,
        "image_features": torch.cat(model.model.get_image_features(patches, images).pooler_output),
        "video_features": torch.cat(model.model.get_video_features(frames, videos).pooler_output),
        "logits": logits,
    }
    save(name, model, dtype, expected)


@torch.no_grad()
def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    text("text", WIDE, torch.bfloat16, length=200)
    text("text_long", WIDE, torch.float16, length=2000)
    pictures("pictures", ODD, torch.bfloat16)


if __name__ == "__main__":
    main()
