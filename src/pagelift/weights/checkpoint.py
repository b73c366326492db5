"""A checkpoint folder: its files mapped, its layout told, its tensors under canonical names."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Literal

from pagelift.backends.tensors import HostTensor
from pagelift.core.errors import WeightsError
from pagelift.weights.safetensors import map_file

Layout = Literal["hf", "mlx"]
INDEX = "model.safetensors.index.json"

# Longest prefixes first. "model." alone is a text-only HF checkpoint.
PREFIXES = (
    ("model.language_model.visual.", "vision."),
    ("model.language_model.", "text."),
    ("language_model.model.", "text."),
    ("language_model.lm_head.", "lm_head."),
    ("model.visual.", "vision."),
    ("vision_tower.", "vision."),
    ("lm_head.", "lm_head."),
    ("model.", "text."),
)
SAMPLE = 64
"""Numbers of a tensor that a fingerprint looks at."""
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
    for file, listed in weight_files(folder).items():
        found = map_file(file)
        _check_index(file, listed, found)
        for name, tensor in found.items():
            if name in mapped:
                raise WeightsError(f"{file}: tensor {name} is in another file of the checkpoint too")
            mapped[name] = tensor
    names = {canonical_name(name): name for name in mapped if not IGNORED.match(name)}
    kept = sum(not IGNORED.match(name) for name in mapped)
    if len(names) != kept:
        raise WeightsError(f"{folder} holds two tensors for one weight: names of the HF and the MLX layout are mixed")
    tensors = {new: mapped[old] for new, old in names.items()}
    return Checkpoint(folder, tell_layout(folder, tensors), tensors, names)


def fingerprint(checkpoint: Checkpoint) -> str:
    """Tells checkpoints apart, wherever they lie: names and shapes of all tensors, some numbers of each, and config.json.

    A change of numbers alone that spares the middle of every tensor is not seen. More of them would make a start slow on a cold disk.
    """
    digest = blake2b(digest_size=16)
    for name, tensor in sorted(checkpoint.tensors.items()):
        digest.update(repr((name, checkpoint.original[name], tensor.dtype, tensor.shape)).encode())
        flat = tensor.array.reshape(-1)
        begin = max(flat.size - SAMPLE, 0) // 2
        digest.update(flat[begin : begin + SAMPLE].tobytes())
    config = checkpoint.folder / "config.json"
    digest.update(config.read_bytes() if config.is_file() else b"")
    return digest.hexdigest()


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


def weight_files(folder: Path) -> dict[Path, set[str] | None]:
    """The weight files, each with the tensors that the index says it holds; without an index, model*.safetensors or what there is.

    Raises WeightsError when there is none, when a listed file is missing, or when the index is damaged.
    """
    index = folder / INDEX
    if not index.exists():
        found = [folder / "model.safetensors"] if (folder / "model.safetensors").is_file() else sorted(folder.glob("model*.safetensors"))
        files = found or sorted(folder.glob("*.safetensors"))
        if not files:
            raise WeightsError(f"{folder} has no .safetensors file; a checkpoint keeps its weights in them")
        return dict.fromkeys(files)
    try:
        places = json.loads(index.read_bytes())["weight_map"].items()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise WeightsError(f"{index} is damaged ({type(error).__name__}: {error}); fetch the checkpoint again") from error
    listed: dict[Path, set[str] | None] = {}
    for tensor, name in places:
        if not isinstance(name, str) or Path(name).name != name or not (folder / name).is_file():
            raise WeightsError(f"{index} lists {name!r}, which is not a file of the folder; fetch the checkpoint again")
        names = listed.setdefault(folder / name, set())
        assert names is not None
        names.add(tensor)
    if not listed:
        raise WeightsError(f"{index} lists no tensor; fetch the checkpoint again")
    return listed


def _check_index(file: Path, listed: set[str] | None, found: Mapping[str, HostTensor]) -> None:
    """Raises WeightsError when the index and the file do not name the same tensors, `mtp.*` apart."""
    if listed is None:
        return
    for fault, names in (("lacks", listed - found.keys()), ("holds besides those of the index", found.keys() - listed)):
        wrong = sorted(name for name in names if not IGNORED.match(name))
        if wrong:
            raise WeightsError(f"{file} {fault} {len(wrong)} tensors, first {wrong[0]}; the index and the file do not belong together")
