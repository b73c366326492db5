"""The three splits, and how lists of material are shared out between them without overlap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")
_TURNS: tuple[Split, ...] = ("train", "train", "validation", "test")

_T = TypeVar("_T")


def share(entries: Sequence[_T], split: Split) -> tuple[_T, ...]:
    """The entries of a list that belong to a split: of every four in turn, two to train, one to validation, one to test."""
    return tuple(entry for index, entry in enumerate(entries) if _TURNS[index % len(_TURNS)] == split)
