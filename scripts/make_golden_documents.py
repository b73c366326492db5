"""Write tests/golden/document and document_mlx: a whole checkpoint with tokenizer and processors, and its quantized MLX form.

    pip install torch torchvision "transformers>=5.12" mlx mlx-vlm && python scripts/make_golden_documents.py

Expected values come from transformers (processor, template, model) and, for the quantized folder, from mlx and mlx_vlm; nothing of
pagelift is used. Pictures are stored as 8-bit numbers, which is what processors work on until they normalise.
"""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path

import mlx.core as mx
import numpy as np
import torch
from make_golden import GOLDEN, TOWER, WIDE, fill
from mlx_vlm.utils import load_model
from PIL import Image
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import (
    PreTrainedTokenizerFast,
    Qwen2VLImageProcessor,
    Qwen3_5Config,
    Qwen3_5ForConditionalGeneration,
    Qwen3VLProcessor,
    Qwen3VLVideoProcessor,
)
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
from transformers.models.qwen2_vl.image_processing_qwen2_vl import smart_resize
from transformers.models.qwen3_vl.video_processing_qwen3_vl import smart_resize as smart_resize_video

FOLDER, MLX_FOLDER = GOLDEN / "document", GOLDEN / "document_mlx"
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|box_start|>", "<|box_end|>"]
SPECIAL += ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
SPLIT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
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
            {%- else %}
                {{- raise_exception('unknown part ' + part.type) }}
            {%- endif %}
        {%- endfor %}
    {%- endif %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking %}
        {{- '<think>\\n' }}
    {%- endif %}
{%- endif %}
"""
TEXT = WIDE | {
    "vocab_size": 320,
    "intermediate_size": 64,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "linear_key_head_dim": 32,
    "linear_value_head_dim": 32,
    "linear_num_key_heads": 1,
    "linear_num_value_heads": 2,
    "full_attention_interval": 4,
}
SETTINGS = {
    "patch_size": 4,
    "temporal_patch_size": 2,
    "merge_size": 2,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
}
PIXELS = {"shortest_edge": 1024, "longest_edge": 3000}
PROMPTS = {
    "one": ("Total? 1.234,50 \u20ac \u91d1\u984d", [(40, 56)], None),
    "three": ("Three pages, <|box_start|>in order<|box_end|>.", [(61, 33), (90, 70), (20, 31)], None),
    "video": ("What moves?", [(33, 40)], (5, 32, 24)),
}


def tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE as Qwen's, over 300 ordinary tokens."""
    engine = Tokenizer(models.BPE())
    engine.normalizer = normalizers.NFC()
    engine.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(SPLIT), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    engine.decoder = decoders.ByteLevel()
    text = ["the total of the invoice in pages, the amount of the order", "assistant user system", '{"total": null, "date": "2024'] * 4
    engine.train_from_iterator(
        text, trainers.BpeTrainer(vocab_size=300, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    )
    engine.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    engine.add_tokens([AddedToken(token, special=False, normalized=False) for token in ("<think>", "</think>")])
    return PreTrainedTokenizerFast(tokenizer_object=engine, eos_token="<|endoftext|>", pad_token="<|endoftext|>")


def picture(height: int, width: int, seed: int) -> np.ndarray:
    """(height, width, 3) in 8 bits: stripes, squares and noise."""
    row, column = np.mgrid[:height, :width]
    noise = np.random.default_rng(seed).integers(0, 256, (height, width))
    return np.stack([(row * 7 + column * 3) % 256, (column // 5 + row // 3) % 2 * 255, noise], axis=-1).astype(np.uint8)


def as_bytes(patches: np.ndarray) -> np.ndarray:
    """Normalised patches back as 8-bit numbers."""
    numbers = (patches * 0.5 + 0.5) * 255
    assert np.abs(numbers - numbers.round()).max() < 1e-3
    return numbers.round().astype(np.uint8)


def build(words: PreTrainedTokenizerFast) -> tuple[Qwen3_5ForConditionalGeneration, Qwen3VLProcessor]:
    names = {"image_token_id": "<|image_pad|>", "video_token_id": "<|video_pad|>"}
    names |= {"vision_start_token_id": "<|vision_start|>", "vision_end_token_id": "<|vision_end|>"}
    ids = {key: words.convert_tokens_to_ids(token) for key, token in names.items()}
    config = Qwen3_5Config(text_config=TEXT, vision_config=TOWER | {"out_hidden_size": 64}, attn_implementation="eager", **ids)
    model = Qwen3_5ForConditionalGeneration(config).eval()
    fill(model, torch.bfloat16, seed=7)
    images = Qwen2VLImageProcessorPil(size=PIXELS, **SETTINGS)
    videos = Qwen3VLVideoProcessor(size=PIXELS | {"longest_edge": 6000}, do_sample_frames=False, cap_pixels_per_frame=False, **SETTINGS)
    return model, Qwen3VLProcessor(images, words, videos, chat_template=TEMPLATE)


def case(name: str, model: Qwen3_5ForConditionalGeneration, processor: Qwen3VLProcessor) -> dict[str, np.ndarray]:
    """One prompt through processor, template and model: tokens, patches, logits of the last rows, 12 greedy tokens."""
    text, sizes, clip = PROMPTS[name]
    pages = [picture(*size, seed=k) for k, size in enumerate(sizes)]
    content = [{"type": "image"}] * len(pages) + [{"type": "video"}] * bool(clip) + [{"type": "text", "text": text}]
    prompt = processor.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True)
    frames = np.stack([picture(*clip[1:], seed=10 + k) for k in range(clip[0])]) if clip else None
    metadata = [{"fps": 3.0, "total_num_frames": 12, "frames_indices": [0, 3, 6, 8, 11], "duration": 4.0}]
    video = {"videos": [torch.from_numpy(frames).permute(0, 3, 1, 2)], "video_metadata": metadata} if clip else {}
    inputs = processor(images=[Image.fromarray(page) for page in pages], text=[prompt], return_tensors="pt", **video)
    torchvision = Qwen2VLImageProcessor(size=PIXELS, **SETTINGS)([Image.fromarray(page) for page in pages], return_tensors="pt")
    assert torch.equal(torchvision["image_grid_thw"], inputs["image_grid_thw"])
    assert (torchvision["pixel_values"] - inputs["pixel_values"]).abs().max() < 1.01 / 127.5
    logits = model(**inputs).logits[0]
    greedy = model.generate(**inputs, max_new_tokens=12, do_sample=False, eos_token_id=None)[0, inputs["input_ids"].shape[1] :]
    expected = {f"page{k}": page for k, page in enumerate(pages)}
    expected |= {"tokens": inputs["input_ids"][0], "image_grids": inputs["image_grid_thw"], "logits": logits[-16:], "greedy": greedy}
    expected |= {"image_patches": as_bytes(inputs["pixel_values"].numpy())}
    if clip:
        expected |= {
            "frames": frames,
            "video_grid": inputs["video_grid_thw"][0],
            "video_patches": as_bytes(inputs["pixel_values_videos"].numpy()),
        }
    logging.info("%s: %d tokens, %r", name, len(expected["tokens"]), words_of(processor, expected["tokens"])[:200])
    return {f"{name}/{key}": np.asarray(value) for key, value in expected.items()}


def words_of(processor: Qwen3VLProcessor, tokens: torch.Tensor) -> str:
    return processor.tokenizer.decode(tokens).replace("<|image_pad|>", "").replace("<|video_pad|>", "")


def sizes() -> dict[str, np.ndarray]:
    """Sizes that pictures and videos are resized to, at the limits of the real checkpoint."""
    random = np.random.default_rng(5)
    sides = np.exp(random.uniform(np.log(8), np.log(6000), (150, 2))).astype(int)
    sides = sides[sides.max(axis=1) <= 200 * sides.min(axis=1)]
    limits = {"factor": 32, "min_pixels": 65536, "max_pixels": 16777216}
    counts = random.integers(2, 100, len(sides))
    video = [smart_resize_video(int(n), int(h), int(w), temporal_factor=2, **limits) for n, (h, w) in zip(counts, sides, strict=True)]
    return {
        "sides": sides,
        "counts": counts,
        "picture_sizes": np.array([smart_resize(int(h), int(w), **limits) for h, w in sides]),
        "video_sizes": np.array(video),
    }


def quantized(name: str) -> dict[str, int] | None:
    """What oQ-like plans do: 4 bits in groups of 64, more where it hurts, small and vision modules left or at 8 bits."""
    if "vision_tower" in name:
        return {"bits": 8, "group_size": 32} if name.endswith(("attn.qkv", "linear_fc1", "pos_embed")) else None
    if name.endswith(("in_proj_a", "in_proj_b", "embed_tokens", "lm_head")):
        return {"bits": 8, "group_size": 64}
    if name.endswith(("down_proj", "v_proj")):
        return {"bits": 6, "group_size": 32}
    if name.endswith(("o_proj", "out_proj")):
        return {"bits": 5, "group_size": 64}
    if name.endswith("in_proj_z"):
        return {"bits": 3, "group_size": 64}
    return {"bits": 4, "group_size": 64}


def write_mlx(model_folder: Path) -> dict[str, np.ndarray]:
    """The checkpoint in MLX layout, quantized by mlx, in two shards; returns the first rows of what mx.dequantize gives."""
    shutil.rmtree(MLX_FOLDER, ignore_errors=True)
    MLX_FOLDER.mkdir()
    for file in model_folder.iterdir():
        if file.suffix not in (".safetensors", ".npz"):
            shutil.copy(file, MLX_FOLDER)
    plain, _ = load_model(model_folder, lazy=True), None
    weights = plain.sanitize(mx.load(str(model_folder / "model.safetensors")))
    weights = plain.vision_tower.sanitize(weights)
    tensors, overrides, expected = {}, {}, {}
    for name, value in weights.items():
        module = name.removesuffix(".weight")
        plan = quantized(module) if value.ndim == 2 and name.endswith(".weight") else None
        if plan is None or value.shape[-1] % plan["group_size"]:
            tensors[name] = value
            continue
        parts = mx.quantize(value, **plan)
        tensors |= dict(zip((name, f"{module}.scales", f"{module}.biases"), parts, strict=True))
        overrides[module] = plan | {"mode": "affine"}
        rows = mx.dequantize(*(part[:2].astype(mx.float32) if part.dtype != mx.uint32 else part[:2] for part in parts), **plan)
        expected[f"rows/{module}"] = np.array(rows)
    names = sorted(tensors)
    index = {}
    for k, part in enumerate((names[::2], names[1::2])):
        file = f"model-0000{k + 1}-of-00002.safetensors"
        mx.save_safetensors(str(MLX_FOLDER / file), {name: tensors[name] for name in part}, metadata={"format": "mlx"})
        index |= dict.fromkeys(part, file)
    size = sum(value.nbytes for value in tensors.values())
    (MLX_FOLDER / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": size}, "weight_map": index}, indent=1))
    config = json.loads((model_folder / "config.json").read_text())
    quantization = {"group_size": 64, "bits": 4, "mode": "affine"} | {
        name: plan for name, plan in overrides.items() if plan != {"bits": 4, "group_size": 64, "mode": "affine"}
    }
    config |= {"quantization": quantization, "quantization_config": quantization}
    (MLX_FOLDER / "config.json").write_text(json.dumps(config, indent=1))
    return expected


def mlx_greedy(expected: dict[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    """Logits and greedy tokens of mlx_vlm in float32 over the quantized folder, from the same tokens and patches."""
    model = load_model(MLX_FOLDER)
    model.update(tree_float32(model.parameters()))
    tokens = mx.array(expected[f"{name}/tokens"])[None]
    patches = mx.array((expected[f"{name}/image_patches"].astype(np.float32) / 255 - 0.5) / 0.5)
    output, greedy, logits = None, [], None
    for _ in range(8):
        output = model(tokens, patches, image_grid_thw=mx.array(expected[f"{name}/image_grids"])).logits[0, -1]
        logits = output if logits is None else logits
        greedy.append(int(output.argmax()))
        tokens = mx.concatenate([tokens, mx.array([[greedy[-1]]])], axis=1)
    return {f"{name}/logits": np.array(logits), f"{name}/greedy": np.array(greedy)}


def tree_float32(tree: object) -> object:
    if isinstance(tree, dict):
        return {key: tree_float32(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [tree_float32(value) for value in tree]
    return tree.astype(mx.float32) if isinstance(tree, mx.array) and mx.issubdtype(tree.dtype, mx.floating) else tree


@torch.no_grad()
def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    shutil.rmtree(FOLDER, ignore_errors=True)
    model, processor = build(tokenizer())
    expected = sizes()
    for name in PROMPTS:
        expected |= case(name, model, processor)
    model.to(torch.bfloat16).save_pretrained(FOLDER)
    words = processor.tokenizer
    words.save_pretrained(FOLDER)
    (FOLDER / "chat_template.jinja").write_text(TEMPLATE)
    images = SETTINGS | {"size": PIXELS, "image_processor_type": "Qwen2VLImageProcessorFast", "processor_class": "Qwen3VLProcessor"}
    (FOLDER / "preprocessor_config.json").write_text(json.dumps(images, indent=1))
    videos = SETTINGS | {"size": PIXELS | {"longest_edge": 6000}, "video_processor_type": "Qwen3VLVideoProcessor"}
    (FOLDER / "video_preprocessor_config.json").write_text(json.dumps(videos, indent=1))
    (FOLDER / "generation_config.json").write_text(json.dumps({"eos_token_id": words.convert_tokens_to_ids("<|endoftext|>")}))
    np.savez_compressed(FOLDER / "expected.npz", **expected)
    quantized_expected = write_mlx(FOLDER)
    for name in ("one", "three"):
        quantized_expected |= mlx_greedy(expected, name)
    np.savez_compressed(MLX_FOLDER / "expected.npz", **quantized_expected)


if __name__ == "__main__":
    main()
