"""Safetensors files by memory map: the header is read and checked, tensors are views of the mapping.

Format: 8 bytes little-endian header length, a JSON object name -> {dtype, shape, data_offsets}, then the data
(https://huggingface.co/docs/safetensors). The `safetensors` package cannot give bfloat16 to NumPy, nor views.
"""

from __future__ import annotations

import json
import math
import mmap
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pagelift.backends.tensors import CARRIER, DType, HostTensor
from pagelift.core.errors import WeightsError

DTYPES: Mapping[str, DType] = {"F32": "f32", "F16": "f16", "BF16": "bf16", "U32": "u32"}
MAX_HEADER_BYTES = 100_000_000


def map_file(path: Path) -> dict[str, HostTensor]:
    """All tensors of one file by name, as views of its mapping. Raises WeightsError when the file is damaged or truncated."""
    try:
        with path.open("rb") as file:
            mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise WeightsError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise WeightsError(f"{path} is empty") from error
    header, start = _header(path, mapping)
    tensors: dict[str, HostTensor] = {}
    end = 0
    for name, begin, stop, entry in sorted(_entries(path, header), key=lambda e: (e[1], e[2])):
        if begin != end:
            raise WeightsError(f"{path}: tensor {name} begins at byte {begin} of the data, not at {end}; the file is damaged")
        end = stop
        tensors[name] = replace(_tensor(f"{path}: tensor {name}", mapping, (start + begin, start + stop), entry), name=name)
    if start + end != len(mapping):
        raise WeightsError(f"{path} has {len(mapping)} bytes instead of {start + end}; it is damaged or was not fetched completely")
    return tensors


def _header(path: Path, mapping: mmap.mmap) -> tuple[dict[str, Any], int]:
    """The parsed header and the byte at which the data begin."""
    size = int.from_bytes(mapping[:8], "little")
    if len(mapping) < 8 or size > min(MAX_HEADER_BYTES, len(mapping) - 8):
        raise WeightsError(f"{path} is not a safetensors file or is truncated: a header of {size} bytes does not fit in it")
    try:
        header = json.loads(mapping[8 : 8 + size])
    except (ValueError, RecursionError) as error:
        raise WeightsError(f"{path} has a damaged header: {error}") from error
    if not isinstance(header, dict):
        raise WeightsError(f"{path} has a damaged header: not an object")
    header.pop("__metadata__", None)
    return header, 8 + size


def _entries(path: Path, header: dict[str, Any]) -> list[tuple[str, int, int, dict[str, Any]]]:
    entries = []
    for name, entry in header.items():
        try:
            begin, stop = entry["data_offsets"]
            whole = all(type(v) is int and v >= 0 for v in (begin, stop, *entry["shape"]))
        except (KeyError, TypeError, ValueError) as error:
            raise WeightsError(f"{path}: the header entry of tensor {name} is damaged: {entry!r}") from error
        if not whole or entry.get("dtype") not in DTYPES:
            raise WeightsError(f"{path}: tensor {name} has an element type or shape that is not supported: {entry!r}")
        entries.append((name, begin, stop, entry))
    return entries


def _tensor(what: str, mapping: mmap.mmap, span: tuple[int, int], entry: dict[str, Any]) -> HostTensor:
    dtype = DTYPES[entry["dtype"]]
    shape = tuple(entry["shape"])
    kind = np.dtype(CARRIER[dtype])
    begin, stop = span
    count = math.prod(shape)
    if stop - begin != count * kind.itemsize or stop > len(mapping):
        raise WeightsError(f"{what} of shape {shape} in {dtype} needs {count * kind.itemsize} bytes, the file has {stop - begin} for it")
    array = np.frombuffer(mapping, kind, count, begin).reshape(shape)
    return HostTensor(array, dtype, partial(_release, mapping, begin, stop))


def _release(mapping: mmap.mmap, begin: int, stop: int) -> None:
    """Drop the pages that lie wholly within the span; where the system offers no such advice, do nothing."""
    first, last = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE, stop // mmap.PAGESIZE * mmap.PAGESIZE
    if hasattr(mmap, "MADV_DONTNEED") and last > first:
        mapping.madvise(mmap.MADV_DONTNEED, first, last - first)
