"""The files of a quantized checkpoint: shards one by one, then index, config and what goes with them."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pagelift.backends.tensors import HostTensor, Packed
from pagelift.core.errors import ConfigError
from pagelift.core.files import make_folder, write_atomic
from pagelift.weights.checkpoint import INDEX, Checkpoint
from pagelift.weights.quant.formats import Allocation
from pagelift.weights.quant.layout import Part, in_mlx_layout, mlx_name, packed_tensors
from pagelift.weights.tokenizer import Tokenizer, read_json

DTYPES = {"f32": "F32", "f16": "F16", "bf16": "BF16", "u32": "U32"}
ALIGNMENT = 64
"""The data of a file begins at a multiple of so many bytes."""
CARRIED = re.compile(r".*\.(json|jinja|txt|model|tiktoken)|(LICEN[SC]E|NOTICE|COPYING|USE_POLICY).*", re.IGNORECASE)
"""Files that are copied from the source: tokenizer, template, preprocessor, licence."""
OWN = {"config.json", "generation_config.json", INDEX}


class ShardWriter:
    """Writes the parts of a checkpoint as numbered files, each whole or not at all.

    source: the checkpoint whose unpacked tensors are carried over.
    """

    def __init__(self, source: Checkpoint, parts: Sequence[Part], out: Path) -> None:
        self._source = source
        self._parts = parts
        self._out = out
        make_folder(out)

    def path(self, place: int) -> Path:
        return self._out / f"model-{place + 1:05}-of-{len(self._parts):05}.safetensors"

    def is_written(self, place: int) -> bool:
        return self.path(place).is_file()

    def write(self, place: int, packed: Mapping[str, Packed]) -> None:
        """The file of a part. packed: its modules that are quantized. Raises ConfigError when it cannot be written."""
        tensors: dict[str, HostTensor] = {}
        for name in self._parts[place].names:
            module = name.removesuffix(".weight")
            if module in packed and name.endswith(".weight"):
                tensors |= {mlx_name(key): tensor for key, tensor in packed_tensors(module, packed[module])}
            else:
                tensors[mlx_name(name)] = in_mlx_layout(name, self._source.tensors[name], self._source.layout)
        write_tensors(self.path(place), tensors)

    def finish(self, allocation: Allocation) -> None:
        """Index, config.json, generation_config.json and the files carried over. Raises ConfigError."""
        where: dict[str, str] = {}
        total = 0
        for place in range(len(self._parts)):
            header = read_header(self.path(place))
            where |= dict.fromkeys(header, self.path(place).name)
            total += sum(entry["data_offsets"][1] - entry["data_offsets"][0] for entry in header.values())
        _write_json(self._out / INDEX, {"metadata": {"total_size": total}, "weight_map": dict(sorted(where.items()))})
        write_settings(self._source.folder, self._out, allocation)


def write_settings(source: Path, out: Path, allocation: Allocation) -> None:
    """Everything but the weights, from the files of the source. Raises ConfigError, WeightsError."""
    for file in sorted(source.iterdir()):
        if file.is_file() and CARRIED.fullmatch(file.name) and file.name not in OWN and not file.name.endswith(".index.json"):
            shutil.copyfile(file, out / file.name)
    stops = sorted(Tokenizer.load(source).stop_tokens)
    generation = read_json(source, "generation_config.json") if (source / "generation_config.json").is_file() else {}
    _write_json(out / "generation_config.json", generation | {"eos_token_id": stops})
    settings = quantization_settings(allocation)
    config = {key: value for key, value in read_json(source, "config.json").items() if key not in ("quantization", "quantization_config")}
    if settings:
        config |= {"quantization": settings, "quantization_config": settings}
    _write_json(out / "config.json", config)


def quantization_settings(allocation: Allocation) -> dict[str, Any]:
    """`quantization` of config.json as mlx-lm reads it: the most frequent format, and each module that has another."""
    if not allocation:
        return {}
    usual = Counter(allocation.values()).most_common(1)[0][0]
    settings: dict[str, Any] = {"group_size": usual.group_size, "bits": usual.bits, "mode": "affine"}
    for name, form in sorted(allocation.items()):
        if form != usual:
            settings[mlx_name(name)] = {"group_size": form.group_size, "bits": form.bits, "mode": "affine"}
    return settings


def write_tensors(path: Path, tensors: Mapping[str, HostTensor]) -> None:
    """One safetensors file, under its name only when it is complete. Raises ConfigError.

    Length of the header, header as JSON, data (https://huggingface.co/docs/safetensors).
    """
    header: dict[str, Any] = {"__metadata__": {"format": "mlx"}}
    at = 0
    for name, tensor in sorted(tensors.items()):
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + tensor.array.nbytes]}
        at += tensor.array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    temporary = path.with_name(f".{path.name}.part")
    try:
        with temporary.open("wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for _, tensor in sorted(tensors.items()):
                file.write(np.ascontiguousarray(tensor.array).data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise ConfigError(f"{path}: it cannot be written ({error.strerror or error}); choose another place") from error


def read_header(path: Path) -> dict[str, Any]:
    """The entries of a safetensors file that was written by `write_tensors`."""
    with path.open("rb") as file:
        header: dict[str, Any] = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    header.pop("__metadata__")
    return header


def _write_json(path: Path, values: Mapping[str, Any]) -> None:
    write_atomic(path, json.dumps(values, indent=1, ensure_ascii=False) + "\n")
