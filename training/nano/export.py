"""A run as a checkpoint folder in Hugging Face's layout, for pagelift, transformers and mlx-vlm.

python -m nano.export --run runs/nano --out models/pagelift-nano
"""

from __future__ import annotations

import argparse
import json
import shutil
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nano.shape import write_json
from pagelift.extract.words_prompt import SETTINGS_FILE

FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "config.json", "generation_config.json")
FILES += ("preprocessor_config.json", "video_preprocessor_config.json", SETTINGS_FILE)
CARD = Path(__file__).parents[1] / "model_card.md"
SHARD_BYTES = 1 << 30
ALIGNMENT = 64
"""The data of a safetensors file begins at a multiple of so many bytes."""


def export(run: Path, tensors: Mapping[str, npt.NDArray[np.float32]], out: Path, shard_bytes: int = SHARD_BYTES) -> None:
    """Write a checkpoint folder. run: a folder with all files but the weights. tensors: by the names of transformers."""
    out.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        shutil.copyfile(run / name, out / name)
    shutil.copyfile(CARD, out / "README.md")
    kept = {name: tensor for name, tensor in sorted(tensors.items()) if name != "lm_head.weight"}  # tied to the embeddings
    files = list(_shards(kept, shard_bytes))
    if len(files) == 1:
        write_safetensors(out / "model.safetensors", files[0])
        return
    where = {}
    for number, contents in enumerate(files, 1):
        name = f"model-{number:05}-of-{len(files):05}.safetensors"
        write_safetensors(out / name, contents)
        where |= dict.fromkeys(contents, name)
    total = sum(2 * tensor.size for tensor in kept.values())
    write_json(out / "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": where})


def _shards(tensors: Mapping[str, npt.NDArray[np.float32]], most: int) -> Iterator[dict[str, npt.NDArray[np.float32]]]:
    """The tensors in order, in files of at most so many bytes unless a single one is larger."""
    shard: dict[str, npt.NDArray[np.float32]] = {}
    size = 0
    for name, tensor in tensors.items():
        if shard and size + 2 * tensor.size > most:
            yield shard
            shard, size = {}, 0
        shard[name] = tensor
        size += 2 * tensor.size
    yield shard


def write_safetensors(path: Path, tensors: Mapping[str, npt.NDArray[np.float32]]) -> None:
    """All tensors in bfloat16 (https://huggingface.co/docs/safetensors: length of the header, header as JSON, data)."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, tensor in sorted(tensors.items()):
        header[name] = {"dtype": "BF16", "shape": list(tensor.shape), "data_offsets": [at, at + 2 * tensor.size]}
        at += 2 * tensor.size
    text = json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, tensor in sorted(tensors.items()):
            file.write(bfloat16(tensor).tobytes())


def bfloat16(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """The bits of finite numbers rounded to bfloat16, ties to even."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def main() -> None:
    import torch

    parser = argparse.ArgumentParser(description="Write a trained run as a checkpoint folder.")
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--shard-mb", type=int, default=1024, help="largest file, for machines that give back small files only")
    given = parser.parse_args()
    state = torch.load(given.run / "state.pt", map_location="cpu", weights_only=True)["model"]
    prefix = "model."  # of nano.model.Nano
    tensors = {name.removeprefix(prefix): tensor.float().numpy() for name, tensor in state.items() if name.startswith(f"{prefix}model.")}
    export(given.run, tensors, given.out, given.shard_mb << 20)


if __name__ == "__main__":
    main()
