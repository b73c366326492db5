"""Which pages of a document to read, as people write it: "1-3,7,12-"."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pagelift.core import ConfigError

_PART = re.compile(r"(\d{1,9})\s*(?:(-)\s*(\d{1,9})?)?")


def select_pages(selection: str | Iterable[int] | None, page_count: int) -> list[int]:
    """The page numbers meant by `selection`, each once and in page order; None means all.

    A range may be left open ("12-") or go past the last page, a single number may not. Raises ConfigError.
    """
    if selection is None:
        return list(range(1, page_count + 1))
    ranges = parse_pages(selection) if isinstance(selection, str) else [(int(n), int(n)) for n in selection]
    chosen: set[int] = set()
    for first, last in ranges:
        if not 1 <= first <= page_count:
            raise ConfigError(f"page {first} was asked for, but the document has pages 1 to {page_count}")
        chosen.update(range(first, min(last or page_count, page_count) + 1))
    if not chosen:
        raise ConfigError("no page was asked for; give at least one page number")
    return sorted(chosen)


def parse_pages(text: str) -> list[tuple[int, int | None]]:
    """The ranges in `text` as (first, last), last None for an open range. Raises ConfigError with the part that is wrong."""
    ranges: list[tuple[int, int | None]] = []
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        if not match:
            raise ConfigError(f"{part.strip()!r} is no page or range of pages; write them as in 1-3,7,12-")
        first = int(match[1])
        last = int(match[3]) if match[3] else None if match[2] else first
        if first < 1 or (last is not None and last < first):
            raise ConfigError(f"{part.strip()!r} is no range of pages; pages count from 1 and go upward")
        ranges.append((first, last))
    return ranges
