"""Layouts, shards and faults of checkpoint folders, made from the golden ones; every fault is an error that names its tensor or file."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pagelift.backends import Ragged, open_backend
from pagelift.core.errors import WeightsError
from pagelift.models import Model, Step, load_config, open_model, text_positions
from pagelift.weights import fingerprint, load_checkpoint
from pagelift.weights.summary import summarise

GOLDEN = Path(__file__).parent.parent / "golden"
DOCUMENT, QUANTIZED = GOLDEN / "document", GOLDEN / "document_mlx"
Tensors = dict[str, tuple[dict[str, Any], bytes]]


def read(file: Path) -> Tensors:
    """Header entry and bytes of every tensor of a safetensors file."""
    content = file.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header.pop("__metadata__", None)
    return {name: (entry, content[8 + size :][slice(*entry["data_offsets"])]) for name, entry in header.items()}


def write(file: Path, tensors: Tensors) -> None:
    header, at = {}, 0
    for name, (entry, content) in tensors.items():
        header[name] = entry | {"data_offsets": [at, at + len(content)]}
        at += len(content)
    text = json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(content for _, content in tensors.values()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    target = tmp_path / "model"
    shutil.copytree(DOCUMENT, target, ignore=shutil.ignore_patterns("*.npz"))
    return target


@pytest.fixture
def quantized(tmp_path: Path) -> Path:
    target = tmp_path / "quantized"
    shutil.copytree(QUANTIZED, target, ignore=shutil.ignore_patterns("*.npz"))
    return target


def open_reference(folder: Path) -> Model:
    return open_model(folder, open_backend("reference"))


def logits(folder: Path) -> np.ndarray:
    model = open_reference(folder)
    tokens = np.arange(20, 40)
    hidden = model.forward(Step(tokens, text_positions(0, 20), Ragged.of([(model.new_cache(), 20, False)])))
    return model.logits(hidden, np.arange(20))


def change_config(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    config = json.loads((folder / "config.json").read_text())
    change(config)
    (folder / "config.json").write_text(json.dumps(config))


def change_tensors(folder: Path, change: Callable[[Tensors], Any]) -> None:
    tensors = read(folder / "model.safetensors")
    change(tensors)
    write(folder / "model.safetensors", tensors)


def split(folder: Path) -> dict[str, Any]:
    """Turn the single file into two shards with an index, which is returned."""
    tensors = read(folder / "model.safetensors")
    names = sorted(tensors)
    places = {}
    for k, part in enumerate((names[::2], names[1::2])):
        file = f"model-{k}.safetensors"
        write(folder / file, {name: tensors[name] for name in part})
        places |= dict.fromkeys(part, file)
    (folder / "model.safetensors").unlink()
    return write_index(folder, {"metadata": {}, "weight_map": places})


def write_index(folder: Path, index: dict[str, Any]) -> dict[str, Any]:
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return index


def test_shards_and_one_file_are_the_same(folder: Path) -> None:
    one = logits(folder)
    split(folder)
    assert np.array_equal(logits(folder), one)


def test_shards_without_an_index(folder: Path) -> None:
    one = logits(folder)
    split(folder)
    (folder / "model.safetensors.index.json").unlink()
    assert np.array_equal(logits(folder), one)


def test_other_files_beside_the_model_are_not_read(folder: Path) -> None:
    (folder / "adapter.safetensors").write_bytes(b"not ours")
    open_reference(folder)


def test_tensors_for_several_tokens_at_once_are_passed_over(folder: Path) -> None:
    one = logits(folder)
    entry = ({"dtype": "F32", "shape": [2]}, bytes(8))
    change_tensors(folder, lambda t: t.update({"mtp.fc.weight": entry, "model.language_model.mtp.norm.weight": entry}))
    assert np.array_equal(logits(folder), one)


def test_mlx_layout_unquantized_gives_the_same(folder: Path) -> None:
    """Names, convolutions and norms as MLX conversions store them."""
    one = logits(folder)

    def convert(tensors: Tensors) -> None:
        for name, (entry, content) in list(tensors.items()):
            del tensors[name]
            new = name.replace("model.language_model.", "language_model.model.").replace("model.visual.", "vision_tower.")
            new = new.replace("lm_head.", "language_model.lm_head.")
            array = np.frombuffer(content, np.uint16).reshape(entry["shape"])
            if name.endswith("conv1d.weight"):
                array = array.transpose(0, 2, 1)
            if name.endswith("patch_embed.proj.weight"):
                array = np.moveaxis(array, 1, -1)
            dtype = entry["dtype"]
            if "norm" in name and "visual" not in name and "linear_attn" not in name:
                array, dtype = (array.astype(np.uint32) << 16).view(np.float32) + np.float32(1), "F32"
            tensors[new] = ({"dtype": dtype, "shape": list(array.shape)}, np.ascontiguousarray(array).tobytes())

    change_tensors(folder, convert)
    assert np.array_equal(logits(folder), one)


def test_tied_embeddings_with_and_without_a_stored_head(folder: Path) -> None:
    change_config(folder, lambda c: c.update(tie_word_embeddings=True))
    with pytest.raises(WeightsError, match=r"lm_head\.weight"):
        open_reference(folder)
    change_tensors(folder, lambda t: t.update({"lm_head.weight": t["model.language_model.embed_tokens.weight"]}))
    stored = logits(folder)
    change_tensors(folder, lambda t: t.pop("lm_head.weight"))
    assert np.array_equal(logits(folder), stored)
    change_config(folder, lambda c: c.update(tie_word_embeddings=False))
    with pytest.raises(WeightsError, match="lm_head"):
        open_reference(folder)


def test_a_tower_left_out_by_a_text_conversion(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    change_tensors(folder, lambda t: [t.pop(name) for name in list(t) if "visual" in name])
    assert open_reference(folder).config.vision is None
    assert "text-only" in caplog.text


def test_biases_of_attention(folder: Path) -> None:
    one = logits(folder)
    change_config(folder, lambda c: c["text_config"].update(attention_bias=True))
    with pytest.raises(WeightsError, match=r"self_attn\.q_proj\.bias"):
        open_reference(folder)
    part, sizes = "model.language_model.layers.3.self_attn", {"q": 128, "k": 32, "v": 32, "o": 64}
    for value, same in ((0.0, True), (0.5, False)):
        biases = {
            f"{part}.{k}_proj.bias": ({"dtype": "F32", "shape": [n]}, np.full(n, value, np.float32).tobytes()) for k, n in sizes.items()
        }
        change_tensors(folder, lambda t, biases=biases: t.update(biases))
        assert np.array_equal(logits(folder), one) is same


def test_released_pages_stay_readable() -> None:
    checkpoint = load_checkpoint(DOCUMENT)
    before = {name: tensor.to_float32() for name, tensor in checkpoint.tensors.items()}
    for tensor in checkpoint.tensors.values():
        tensor.release()
    assert all(np.array_equal(tensor.to_float32(), before[name]) for name, tensor in checkpoint.tensors.items())


NAME = "model.language_model.layers.0.mlp.up_proj.weight"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda t: t.pop(NAME), r"layers\.0\.mlp\.up_proj"),
        (lambda t: t.pop("model.visual.blocks.1.norm2.bias"), r"blocks\.1\.norm2\.bias"),
        (lambda t: t.update({NAME.replace("up", "sideways"): t[NAME]}), "sideways_proj"),
        (lambda t: t.update({"adapter.weight": t[NAME]}), "adapter"),
        (lambda t: t.update({NAME: ({"dtype": "BF16", "shape": [32, 128]}, t[NAME][1])}), "up_proj.*shape"),
        (lambda t: t.update({NAME: ({"dtype": "F8_E4M3", "shape": [64, 128]}, t[NAME][1])}), "up_proj.*F8_E4M3"),
        (lambda t: t.update({NAME: ({"dtype": "F32", "shape": [64, 64]}, t[NAME][1])}), "up_proj"),
        (lambda t: t.update({"language_model.model.norm.weight": t["model.language_model.norm.weight"]}), "mixed"),
    ],
)
def test_wrong_tensors_are_named(change: Callable[[Tensors], Any], named: str, folder: Path) -> None:
    change_tensors(folder, change)
    with pytest.raises(WeightsError, match=named):
        open_reference(folder)


@pytest.mark.parametrize("length", [0, 5, 100, 200_000, -1])
def test_truncated_files_are_refused(length: int, folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:length])
    with pytest.raises(WeightsError, match=r"model\.safetensors"):
        open_reference(folder)


def test_a_flipped_header_byte_is_never_a_wrong_answer(folder: Path) -> None:
    file = folder / "model.safetensors"
    content = file.read_bytes()
    one = logits(folder)
    for at in np.random.default_rng(0).integers(0, int.from_bytes(content[:8], "little"), 40):
        file.write_bytes(content[: at + 8] + bytes([content[at + 8] ^ 0x15]) + content[at + 9 :])
        try:
            assert np.array_equal(logits(folder), one)  # a byte of the metadata
        except WeightsError:
            continue


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda i: i["weight_map"].update({NAME: "model-9.safetensors"}), r"model-9\.safetensors"),
        (lambda i: i["weight_map"].update({NAME: "../model-0.safetensors"}), r"\.\./model"),
        (lambda i: i["weight_map"].update({NAME: 3}), "3"),
        (lambda i: i["weight_map"].pop(NAME), "up_proj"),
        (lambda i: i["weight_map"].update({"lost.weight": "model-0.safetensors"}), r"lost\.weight"),
        (lambda i: i["weight_map"].clear(), "no tensor"),
        (lambda i: i.update(weight_map=[]), "damaged"),
        (lambda i: i.pop("weight_map"), "damaged"),
    ],
)
def test_an_index_that_lies_is_refused(change: Callable[[dict[str, Any]], Any], named: str, folder: Path) -> None:
    index = split(folder)
    change(index)
    write_index(folder, index)
    with pytest.raises(WeightsError, match=named):
        open_reference(folder)


def test_a_tensor_in_the_wrong_shard_is_refused(folder: Path) -> None:
    index = split(folder)
    places = index["weight_map"]
    places[NAME] = "model-1.safetensors" if places[NAME] == "model-0.safetensors" else "model-0.safetensors"
    write_index(folder, index)
    with pytest.raises(WeightsError, match="up_proj"):
        open_reference(folder)


def test_a_folder_without_weights(tmp_path: Path, folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    with pytest.raises(WeightsError, match="safetensors"):
        open_reference(folder)
    with pytest.raises(WeightsError, match=r"config\.json"):
        open_reference(tmp_path)


Q = "language_model.model.layers.0.mlp.down_proj"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda q: q.pop(Q), "down_proj"),
        (lambda q: q.update({Q: q[Q] | {"bits": 7}}), "down_proj"),
        (lambda q: q.update({Q: q[Q] | {"bits": 8}}), "down_proj"),
        (lambda q: q.update({Q: q[Q] | {"group_size": 64}}), "down_proj"),
        (lambda q: q.update({Q: q[Q] | {"mode": "mxfp4"}}), "down_proj.*mxfp4"),
        (lambda q: q.update({Q: False}), "down_proj"),
        (lambda q: q.update({"bits": "4"}), "packed"),
        (lambda q: q.clear(), "packed"),
    ],
)
def test_quantization_settings_that_do_not_fit_are_refused(change: Callable[[dict[str, Any]], Any], named: str, quantized: Path) -> None:
    def apply(config: dict[str, Any]) -> None:
        change(config["quantization"])
        config["quantization_config"] = config["quantization"]

    change_config(quantized, apply)
    with pytest.raises(WeightsError, match=named):
        open_reference(quantized)


def test_overrides_in_other_names_and_under_the_other_key(quantized: Path) -> None:
    one = logits(quantized)

    def rename(config: dict[str, Any]) -> None:
        names = {key.replace("language_model.model.", "model.language_model."): value for key, value in config["quantization"].items()}
        config["quantization_config"] = names | {"mtp.fc": {"bits": 4, "group_size": 64}, "quant_method": "mlx"}
        del config["quantization"]

    change_config(quantized, rename)
    assert np.array_equal(logits(quantized), one)
    change_config(quantized, lambda c: c.update(quantization={"bits": 4, "group_size": 64}))
    assert np.array_equal(logits(quantized), one)


def test_summary_counts_parameters_alike_in_both_forms() -> None:
    plain = summarise(DOCUMENT, load_config(DOCUMENT).quantization)
    packed = summarise(QUANTIZED, load_config(QUANTIZED).quantization)
    assert plain.parameters == packed.parameters
    assert (plain.layout, packed.layout) == ("hf", "mlx")
    assert plain.bits_per_weight == 16
    assert packed.bits_per_weight < 8
    assert packed.formats["5 bits / 64"] == 4


def test_a_fingerprint_knows_content_and_not_places(tmp_path: Path) -> None:
    """The same of a copy, another when a value of any tensor, its shape or config.json changes."""
    known = fingerprint(load_checkpoint(QUANTIZED))
    copy = tmp_path / "copy"
    shutil.copytree(QUANTIZED, copy)
    assert fingerprint(load_checkpoint(copy)) == known
    config = copy / "config.json"
    config.write_bytes(config.read_bytes() + b" ")
    assert fingerprint(load_checkpoint(copy)) != known
    checkpoint = load_checkpoint(QUANTIZED)
    for name in list(checkpoint.tensors)[::10]:
        tensor = checkpoint.tensors[name]
        array = tensor.array.copy()
        array.reshape(-1)[array.size // 2] += array.dtype.type(1)
        changed = replace(checkpoint, tensors={**checkpoint.tensors, name: replace(tensor, array=array)})
        assert fingerprint(changed) != known
