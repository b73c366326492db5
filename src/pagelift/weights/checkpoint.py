"""A checkpoint folder: its files mapped, its layout told, its tensors under canonical names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pagelift.backends.tensors import HostTensor
from pagelift.core.errors import WeightsError
from pagelift.weights.safetensors import map_file

Layout = Literal["hf", "mlx"]
INDEX = "model.safetensors.index.json"

# Longest prefixes first. "model." alone is a text-only HF checkpoint.
PREFIXES = (
    ("model.language_model.", "text."),
    ("language_model.model.", "text."),
    ("language_model.lm_head.", "lm_head."),
    ("model.visual.", "vision."),
    ("vision_tower.", "vision."),
    ("lm_head.", "lm_head."),
    ("model.", "text."),
)
IGNORED = re.compile(r"^((language_model\.)?(model\.)?|model\.language_model\.)mtp\.")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """tensors: by canonical name, `mtp.*` left out. original: canonical name -> name in the file, for messages and overrides."""

    folder: Path
    layout: Layout
    tensors: Mapping[str, HostTensor]
    original: Mapping[str, str]


def load_checkpoint(folder: Path) -> Checkpoint:
    """Map all safetensors files of a folder. Raises WeightsError when one is missing or damaged, or a name is unknown."""
    mapped: dict[str, HostTensor] = {}
    for file in _files(folder):
        for name, tensor in map_file(file).items():
            if name in mapped:
                raise WeightsError(f"{file}: tensor {name} is in another file of the checkpoint too")
            mapped[name] = tensor
    names = {canonical_name(name): name for name in mapped if not IGNORED.match(name)}
    kept = sum(not IGNORED.match(name) for name in mapped)
    if len(names) != kept:
        raise WeightsError(f"{folder} holds two tensors for one weight: names of the HF and the MLX layout are mixed")
    tensors = {new: mapped[old] for new, old in names.items()}
    return Checkpoint(folder, tell_layout(folder, tensors), tensors, names)


def canonical_name(name: str) -> str:
    """The name that models use for a tensor of either layout. Raises WeightsError when it has an unknown prefix."""
    for old, new in PREFIXES:
        if name.startswith(old):
            return new + name[len(old) :]
    raise WeightsError(f"tensor {name} does not belong to a model that is supported")


def tell_layout(folder: Path, tensors: Mapping[str, HostTensor]) -> Layout:
    """HF or MLX by the shape of the causal convolutions. Raises WeightsError when there is none or they disagree."""
    layouts: set[Layout] = set()
    for name, tensor in tensors.items():
        if name.endswith(".linear_attn.conv1d.weight"):
            match tensor.shape:
                case (_, 1, kernel) if kernel > 1:
                    layouts.add("hf")
                case (_, kernel, 1) if kernel > 1:
                    layouts.add("mlx")
                case shape:
                    raise WeightsError(f"{folder}: {name} of shape {shape} is neither (channels, 1, kernel) nor (channels, kernel, 1)")
    if len(layouts) != 1:
        raise WeightsError(f"{folder}: the layout (HF or MLX) cannot be told from the linear_attn.conv1d weights")
    return layouts.pop()


def _files(folder: Path) -> Iterable[Path]:
    """The weight files: those that the index lists, else every *.safetensors. Raises WeightsError when there are none."""
    index = folder / INDEX
    if not index.exists():
        files = sorted(folder.glob("*.safetensors"))
        if not files:
            raise WeightsError(f"{folder} has no .safetensors file")
        return files
    try:
        names = sorted(set(json.loads(index.read_bytes())["weight_map"].values()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise WeightsError(f"{index} is damaged: {error}") from error
    for name in names:
        if not isinstance(name, str) or Path(name).name != name or not (folder / name).is_file():
            raise WeightsError(f"{index} lists {name!r}, which is not a file of the folder; fetch the checkpoint again")
    return [folder / name for name in names]
