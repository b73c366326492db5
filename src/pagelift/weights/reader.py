"""What a model asks a checkpoint for: every request is checked against the file, and every tensor must be asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pagelift.backends.tensors import BITS, GROUP_SIZES, Dense, Floats, HostTensor, Linear, Matrix, Packed
from pagelift.core.errors import WeightsError
from pagelift.weights.checkpoint import IGNORED, PREFIXES, Checkpoint, canonical_name


class WeightReader:
    """Typed access to a checkpoint by canonical module or tensor name.

    quantization: the `quantization` object of config.json; {} when nothing is packed. All methods raise WeightsError naming
    the tensor as the file calls it.
    """

    def __init__(self, checkpoint: Checkpoint, quantization: Mapping[str, Any]) -> None:
        self._checkpoint = checkpoint
        self._defaults = {key: value for key, value in quantization.items() if not isinstance(value, Mapping | bool)}
        self._overrides = _overrides(quantization)
        self._left = dict(checkpoint.tensors)

    def linear(self, name: str, out_features: int, in_features: int, bias: bool = False) -> Linear:
        """The linear layer `name`, from `<name>.weight` and, if packed, `.scales` and `.biases`."""
        matrix = self.embedding(name, out_features, in_features)
        return Linear(matrix, self._take(f"{name}.bias", (out_features,)) if bias else None)

    def embedding(self, name: str, rows: int, features: int) -> Matrix:
        """The matrix of the module `name`, dense or packed."""
        if f"{name}.scales" not in self._left:
            return Dense(self._take(f"{name}.weight", (rows, features)))
        bits, group_size = self.packing(name)
        groups = (rows, features // group_size)
        codes = self._take(f"{name}.weight", (rows, features * bits // 32))
        return Packed(codes, self._take(f"{name}.scales", groups), self._take(f"{name}.biases", groups), bits, group_size)

    def norm(self, name: str, size: int) -> Floats:
        """The factors (size,) of an RMS norm that HF stores as w of 1 + w."""
        weight = self._floats(f"{name}.weight", (size,))
        return weight + np.float32(1) if self._checkpoint.layout == "hf" else weight

    def vector(self, name: str, shape: tuple[int, ...]) -> Floats:
        """The tensor `name` as it is, in float32."""
        return self._floats(name, shape)

    def conv1d(self, name: str, channels: int, kernel: int) -> Floats:
        """A depthwise convolution's weights (channels, kernel)."""
        hf = self._checkpoint.layout == "hf"
        return self._floats(f"{name}.weight", (channels, 1, kernel) if hf else (channels, kernel, 1)).reshape(channels, kernel)

    def patch_projection(self, name: str, out_features: int, patch: tuple[int, int, int, int]) -> Linear:
        """A patch convolution as a linear layer over flattened patches. patch: channels, frames, rows, columns."""
        channels, *place = patch
        if self._checkpoint.layout == "hf":
            weight = self._take(f"{name}.weight", (out_features, channels, *place))
            array = weight.array
        else:
            weight = self._take(f"{name}.weight", (out_features, *place, channels))
            array = np.moveaxis(weight.array, -1, 1)
        matrix = Dense(HostTensor(array.reshape(out_features, -1), weight.dtype))
        return Linear(matrix, self._take(f"{name}.bias", (out_features,)))

    def has(self, prefix: str) -> bool:
        """Whether any tensor not asked for yet has a name that starts with `prefix`."""
        return any(name.startswith(prefix) for name in self._left)

    def drop_tied_head(self) -> None:
        """Pass over an `lm_head` stored beside the embeddings it is tied to. Raises WeightsError when it is not the same matrix."""
        for part in ("weight", "scales", "biases"):
            head, table = self._left.pop(f"lm_head.{part}", None), self._checkpoint.tensors.get(f"text.embed_tokens.{part}")
            if head is not None and (table is None or head.dtype != table.dtype or not np.array_equal(head.array, table.array)):
                raise WeightsError(
                    f"{self._checkpoint.folder}: config.json ties the head to the embeddings, but the file holds another "
                    f"{self._checkpoint.original[f'lm_head.{part}']}; set tie_word_embeddings to false if that one is meant"
                )

    def finish(self) -> None:
        """Raises WeightsError when the checkpoint holds tensors that the model did not ask for."""
        if self._left:
            names = sorted(self._checkpoint.original[name] for name in self._left)
            raise WeightsError(f"{self._checkpoint.folder} has {len(names)} tensors that the model does not know, first {names[0]}")

    def _floats(self, name: str, shape: tuple[int, ...]) -> Floats:
        tensor = self._take(name, shape)
        if tensor.dtype == "u32":
            raise WeightsError(f"{self._checkpoint.folder}: tensor {self._checkpoint.original[name]} must hold floats")
        return tensor.to_float32()

    def _take(self, name: str, shape: tuple[int, ...]) -> HostTensor:
        tensor = self._left.pop(name, None)
        if tensor is None:
            raise WeightsError(f"{self._checkpoint.folder} has no tensor for {name}")
        if tensor.shape != shape:
            found = self._checkpoint.original[name]
            raise WeightsError(f"{self._checkpoint.folder}: tensor {found} has shape {tensor.shape}; the model needs {shape}")
        return tensor

    def packing(self, name: str) -> tuple[int, int]:
        """Bits and group size of a packed module: its own override in config.json, else the defaults there."""
        override = self._overrides.get(name, {})
        values = {**self._defaults, **override} if isinstance(override, Mapping) else self._defaults if override else {}
        bits, group_size, mode = values.get("bits"), values.get("group_size"), values.get("mode", "affine")
        if bits not in BITS or group_size not in GROUP_SIZES or type(bits) is not int or type(group_size) is not int or mode != "affine":
            module = self._checkpoint.original[f"{name}.scales"].removesuffix(".scales")
            raise WeightsError(
                f"{self._checkpoint.folder}: {module} is packed, and config.json must give bits out of {BITS}, group_size out of "
                f"{GROUP_SIZES} and mode 'affine' for it; it gives {values!r}"
            )
        return bits, group_size


def _overrides(quantization: Mapping[str, Any]) -> dict[str, Any]:
    """The per-module entries of config.json by canonical module name; they may be written in the names of either layout."""
    prefixes = tuple(old for old, _ in PREFIXES)
    modules = {f"{key}.": value for key, value in quantization.items() if isinstance(value, Mapping | bool)}
    known = {key: value for key, value in modules.items() if key.startswith(prefixes) and not IGNORED.match(key)}
    return {canonical_name(key).removesuffix("."): value for key, value in known.items()}
