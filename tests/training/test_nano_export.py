"""The checkpoint folder that the recipe writes: a whole model for pagelift, with nothing but NumPy."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nano.crops import whole
from nano.examples import encode
from nano.export import bfloat16, export
from nano.lessons import padded
from PIL import Image
from tokenizers import Tokenizer

from pagelift.evals.synthetic import make_sample
from pagelift.extract.words_prompt import wants_words, words_prompt
from pagelift.runtime import load_model
from pagelift.schema import Schema


def shapes(config: dict) -> dict[str, tuple[int, ...]]:
    """Names and shapes of all parameters, by the architecture of transformers."""
    text, vision = config["text_config"], config["vision_config"]
    hidden, wide = text["hidden_size"], text["intermediate_size"]
    made: dict[str, tuple[int, ...]] = {"model.language_model.embed_tokens.weight": (text["vocab_size"], hidden)}
    made["model.language_model.norm.weight"] = (hidden,)
    for index, kind in enumerate(text["layer_types"]):
        layer = f"model.language_model.layers.{index}."
        made |= {layer + f"{name}.weight": (hidden,) for name in ("input_layernorm", "post_attention_layernorm")}
        made |= {layer + f"mlp.{name}.weight": (wide, hidden) for name in ("gate_proj", "up_proj")}
        made[layer + "mlp.down_proj.weight"] = (hidden, wide)
        if kind == "full_attention":
            dim, heads, groups = text["head_dim"], text["num_attention_heads"], text["num_key_value_heads"]
            sizes = {"q": (2 * heads * dim, hidden), "k": (groups * dim, hidden), "v": (groups * dim, hidden), "o": (hidden, heads * dim)}
            made |= {layer + f"self_attn.{name}_proj.weight": size for name, size in sizes.items()}
            made |= {layer + f"self_attn.{name}_norm.weight": (dim,) for name in "qk"}
        else:
            heads, dim = text["linear_num_value_heads"], text["linear_value_head_dim"]
            keys = text["linear_num_key_heads"] * text["linear_key_head_dim"]
            net = layer + "linear_attn."
            mixed = 2 * keys + heads * dim
            made |= {net + "in_proj_qkv.weight": (mixed, hidden), net + "in_proj_z.weight": (heads * dim, hidden)}
            made |= {net + f"in_proj_{name}.weight": (heads, hidden) for name in "ab"}
            made |= {net + "conv1d.weight": (mixed, 1, 4), net + "A_log": (heads,), net + "dt_bias": (heads,)}
            made |= {net + "norm.weight": (dim,), net + "out_proj.weight": (hidden, heads * dim)}
    size, inner = vision["hidden_size"], vision["intermediate_size"]
    tower = "model.visual."
    made[tower + "patch_embed.proj.weight"] = (size, 3, 2, 16, 16)
    made[tower + "pos_embed.weight"] = (vision["num_position_embeddings"], size)
    linear = {"merger.linear_fc1": (4 * size, 4 * size), "merger.linear_fc2": (vision["out_hidden_size"], 4 * size)}
    norms = ["merger.norm"]
    for index in range(vision["depth"]):
        block = f"blocks.{index}."
        linear |= {block + "attn.qkv": (3 * size, size), block + "attn.proj": (size, size)}
        linear |= {block + "mlp.linear_fc1": (inner, size), block + "mlp.linear_fc2": (size, inner)}
        norms += [block + "norm1", block + "norm2"]
    made |= {tower + f"{name}.weight": shape for name, shape in linear.items()}
    made |= {tower + f"{name}.bias": shape[:1] for name, shape in linear.items()}
    made |= {tower + f"{name}.{part}": (size,) for name in norms for part in ("weight", "bias")}
    made[tower + "patch_embed.proj.bias"] = (size,)
    return made


@pytest.fixture(scope="module")
def checkpoint(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    config = json.loads((run_folder / "config.json").read_text())
    tensors = {name: rng.normal(0, 0.05, shape).astype(np.float32) for name, shape in shapes(config).items()}
    out = tmp_path_factory.mktemp("models") / "nano"
    export(run_folder, tensors | {"lm_head.weight": np.zeros((2, 2), np.float32)}, out)
    return out


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_the_folder_is_a_model_that_answers_about_picture_and_words(checkpoint: Path, backend: str) -> None:
    model = load_model(checkpoint, backend)
    sample = make_sample(5, "test")
    assert wants_words(checkpoint)
    text = words_prompt(sample.pages, Schema.load(sample.schema))
    prompt = model.prompt(text, [Image.new("RGB", (595, 842), "white")])
    (placed,) = prompt.pictures
    assert placed.tokens == 9 * 7
    answer = model.stream(prompt)
    first = next(iter(answer))
    assert first.token is not None


def test_what_is_taught_is_what_the_engine_will_ask(checkpoint: Path, words: Tokenizer) -> None:
    model = load_model(checkpoint, "reference")
    assert model.processor is not None
    sample = make_sample(2, "train", "letter")
    pictures = [sample.picture(60, page=page.number) for page in sample.pages]
    asked = model.prompt(words_prompt(sample.pages, Schema.load(sample.schema)), pictures)
    example = encode(whole(sample), words, [model.processor.picture(picture) for picture in pictures])
    taught = padded([example], 0, words.token_to_id("<|image_pad|>"))
    assert asked.tokens.tolist() == example.tokens[: example.answer].tolist()
    assert (asked.positions == taught["positions"][:, : example.answer]).all()
    assert (np.concatenate([placed.picture.patches() for placed in asked.pictures]) == taught["patches"]).all()


def test_the_answer_ends_at_the_end_of_the_turn(checkpoint: Path) -> None:
    model = load_model(checkpoint, "reference")
    assert model.tokenizer.id("<|im_end|>") in model.tokenizer.stop_tokens
    assert model.tokenizer.vocab_size == model.model.config.text.vocab_size


def test_small_files_hold_the_same(run_folder: Path, tmp_path: Path) -> None:
    tensors = {f"t{number}": np.full((100, 10), number, np.float32) for number in range(5)}
    export(run_folder, tensors, tmp_path, shard_bytes=4500)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    assert sorted(index["weight_map"]) == sorted(tensors)
    assert len(set(index["weight_map"].values())) == 3
    assert all((tmp_path / name).stat().st_size < 5500 for name in index["weight_map"].values())
    assert index["metadata"]["total_size"] == 10_000


@given(st.lists(st.floats(-(2.0**90), 2.0**90, width=32), min_size=1, max_size=20))
def test_numbers_are_rounded_to_the_nearest_bfloat16(values: list[float]) -> None:
    exact = np.array(values, np.float32)
    rounded = (bfloat16(exact).astype(np.uint32) << 16).view(np.float32)
    assert (np.abs(rounded - exact) <= np.abs(exact) * 2.0**-8 + 1e-38).all()
    assert (bfloat16(rounded) == bfloat16(exact)).all()
