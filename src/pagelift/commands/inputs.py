"""Which documents the arguments of a command mean, and what their results are called."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

SUFFIXES = frozenset({".pdf", ".png", ".jpg", ".jpeg", ".jpe", ".webp", ".gif", ".bmp", ".tif", ".tiff"})
"""What is taken from a folder. A file that is named itself may have any name: its content decides."""

STDIN = "-"


@dataclass(frozen=True, slots=True)
class Input:
    """One document. source: the path as the user wrote it, or "-". place: where results go inside an output folder, without suffix."""

    source: str
    place: PurePath


def find_inputs(arguments: Sequence[str], skip: Collection[Path] = ()) -> list[Input]:
    """The documents that `arguments` (files, folders, "-") name, each once; folders are searched to the bottom, in sorted order.

    skip: folders inside those, such as the output folder. Results keep the folders below the deepest folder that all
    inputs share, and are named after the document without its suffix; with it where two would have the same name.
    """
    found = _sources(arguments, {os.path.realpath(folder) for folder in skip})
    sources = list({source if source == STDIN else os.path.abspath(source): source for source in found}.values())
    roots = [os.path.abspath(a) if os.path.isdir(a) else os.path.dirname(os.path.abspath(a)) for a in arguments if a != STDIN]
    try:
        shared = os.path.commonpath(roots) if roots else ""
    except ValueError:  # different drives
        shared = ""
    places = [
        PurePath("stdin") if s == STDIN else PurePath(os.path.relpath(s, shared)) if shared else PurePath(os.path.basename(s))
        for s in sources
    ]
    return [Input(source, name) for source, name in zip(sources, _short_names(places), strict=True)]


def is_batch(arguments: Sequence[str]) -> bool:
    """Whether the arguments may mean several documents: more than one, or a folder."""
    return len(arguments) > 1 or any(os.path.isdir(argument) for argument in arguments)


def _sources(arguments: Iterable[str], skip: Collection[str]) -> Iterator[str]:
    for argument in arguments:
        if argument != STDIN and os.path.isdir(argument):
            yield from _in_folder(argument, skip)
        else:
            yield argument


def _in_folder(folder: str, skip: Collection[str]) -> Iterator[str]:
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and os.path.realpath(os.path.join(parent, f)) not in skip)
        for name in sorted(files):
            if os.path.splitext(name)[1].lower() in SUFFIXES and not name.startswith("."):
                yield os.path.join(parent, name)


def _short_names(places: Sequence[PurePath]) -> list[PurePath]:
    """Names without suffixes, except where that would make two the same (also on file systems that ignore case)."""
    short = [place.with_suffix("") if place.suffix.lower() in SUFFIXES else place for place in places]
    uses = Counter(str(name).casefold() for names in zip(short, places, strict=True) for name in {*names})
    return [name if uses[str(name).casefold()] == 1 else place for name, place in zip(short, places, strict=True)]
