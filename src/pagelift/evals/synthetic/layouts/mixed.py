"""Layout families of the train split that are put together at random, so that no way of putting parts together is learned by heart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from random import Random
from typing import Any, Protocol, TypeVar

from pagelift.evals.synthetic.splits import Split


class _Family(Protocol):
    @property
    def id(self) -> str: ...

    @property
    def split(self) -> Split: ...


_F = TypeVar("_F", bound=_Family)


def mixed(named: Sequence[_F], parts: Mapping[str, Sequence[Any]], count: int) -> tuple[_F, ...]:
    """Further families of dataclass `_F`, the same ones everywhere. parts: by field, what it may be.

    None has more than half of its parts in common with a family that is held out, so that those stay unknown.
    """
    rng = Random("/".join(parts))
    held_out = [family for family in named if family.split != "train"]
    made: list[_F] = []
    while len(made) < count:
        drawn = {name: rng.choice(options) for name, options in parts.items()}
        family: Any = replace(named[0], id=f"mixed{len(made) + 1}", split="train", **drawn)  # type: ignore[type-var]
        if all(2 * _common(family, other) <= len(parts) for other in held_out):
            made.append(family)
    return tuple(made)


def _common(one: Any, other: Any) -> int:
    names = [field.name for field in fields(one) if field.name not in ("id", "split")]
    return sum(getattr(one, name) == getattr(other, name) for name in names)
