"""Counts and times of several answers as those of one extraction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pagelift.core import Json


def summed(parts: Sequence[Mapping[str, Json]]) -> dict[str, Json]:
    """Counts and times together; lists one behind the other; of other things the first, of sizes in memory the largest."""
    total: dict[str, Json] = {}
    for part in parts:
        for name, value in part.items():
            known = total.get(name)
            if known is None or isinstance(value, str | bool) or isinstance(known, str | bool):
                total.setdefault(name, value)
            elif isinstance(value, list) and isinstance(known, list):
                total[name] = [*known, *(entry for entry in value if entry not in known)]
            elif isinstance(value, int | float):
                total[name] = max(known, value) if name.endswith("_bytes") else round(known + value, 4)
    return total
