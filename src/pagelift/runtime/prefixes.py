"""Caches of prompts that have been computed, found again by what the prompts say and show.

Keys and values of a prompt hold those of all its beginnings, so a prompt's snapshots share one copy, the trunk, which is cut to
length when it is used; the recurrent states of linear attention are kept for each snapshot.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, cast

import numpy as np

from pagelift.backends import Array, KVCache, SequenceCache
from pagelift.backends.cache import LayerCache
from pagelift.models.pictures import Picture
from pagelift.models.prompt import Prompt

SPACING = 256
"""Fewer tokens than this after a snapshot there is no other, except behind the last picture."""
TEXT_SPACING = 1024
"""Tokens from one snapshot to the next in a long text behind the last picture; a multiple of a step's size costs no further step."""
FLOAT = 4


@dataclass(frozen=True, slots=True)
class Point:
    """A place in a prompt where its caches are kept. key: of everything before it."""

    length: int
    key: bytes


@dataclass(slots=True)
class Trunk:
    """Keys and values of the longest snapshot of a prompt, by layer. users: how many snapshots need it."""

    layers: dict[int, KVCache] = field(default_factory=dict)
    length: int = 0
    users: int = 0

    @property
    def nbytes(self) -> int:
        return sum(layer.nbytes for layer in self.layers.values())


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The caches after `length` tokens: those of linear layers as they were then, the others in the trunk."""

    length: int
    states: tuple[LayerCache | None, ...]
    trunk: Trunk

    @property
    def nbytes(self) -> int:
        return sum(state.nbytes for state in self.states if state is not None)

    def restore(self) -> SequenceCache:
        """Caches that continue from here."""
        layers: list[LayerCache] = []
        for index, state in enumerate(self.states):
            if state is not None:
                layers.append(state.copy())
                continue
            layer = self.trunk.layers[index].copy()
            if self.trunk.length > self.length:
                layer.keep(0, self.trunk.length - self.length)
            layers.append(layer)
        return SequenceCache(layers, self.length)


class PrefixCache:
    """Snapshots and encoded pictures within a budget of bytes; what was used least recently goes first. Safe for threads.

    Memory that a backend shares between copies is counted in each.
    """

    def __init__(self, budget: int, spacing: int = SPACING) -> None:
        self.budget = budget
        self.spacing = spacing
        self.hits = 0
        self.misses = 0
        self._lock = threading.Lock()
        self._entries: OrderedDict[bytes, Snapshot | Array] = OrderedDict()
        self._bytes = 0

    @property
    def nbytes(self) -> int:
        return self._bytes

    def points(self, prompt: Prompt) -> list[Point]:
        """Where a prompt's caches are worth keeping: behind each page, here and there in a long text, before the last token."""
        if not self.budget:
            return []
        return list(_points(prompt, self.spacing))

    def find(self, points: list[Point]) -> tuple[Point, SequenceCache] | None:
        """The longest known beginning of a prompt, and caches that continue from there."""
        with self._lock:
            for point in reversed(points):
                snapshot = self._entries.get(point.key)
                if snapshot is not None:
                    self._entries.move_to_end(point.key)
                    self.hits += 1
                    return point, cast(Snapshot, snapshot).restore()
            self.misses += bool(points)
            return None

    def keep(self, point: Point, cache: SequenceCache, trunk: Trunk, ancestor: Point | None) -> None:
        """Keep a sequence's caches as they are now. trunk: the sequence's own. ancestor: the snapshot that it came from, which will
        not be given up for this one."""
        with self._lock:
            if point.key in self._entries:
                self._entries.move_to_end(point.key)
                return
            grown = _growing(cache)
            states = tuple(None if index in grown else layer.copy() for index, layer in enumerate(cache.layers))
            snapshot = Snapshot(point.length, states, trunk)
            more = sum(layer.nbytes for layer in grown.values()) - (trunk.nbytes if trunk.users else 0)
            if not self._make_room(snapshot.nbytes + more, trunk, ancestor.key if ancestor else None):
                return
            self._bytes += snapshot.nbytes - (trunk.nbytes if trunk.users else 0)
            trunk.layers, trunk.length = {index: cast(KVCache, layer.copy()) for index, layer in grown.items()}, point.length
            trunk.users += 1
            self._bytes += trunk.nbytes
            self._entries[point.key] = snapshot

    def features(self, key: bytes) -> Array | None:
        """An encoded picture."""
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
            return found

    def keep_features(self, key: bytes, features: Array) -> None:
        """Keep an encoded picture (tokens, hidden)."""
        size = _features_bytes(features)
        if not self.budget:
            return
        with self._lock:
            if key not in self._entries and self._make_room(size, None, None):
                self._entries[key] = features
                self._bytes += size

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            for key in list(self._entries):
                self._drop(key)

    def _make_room(self, size: int, own: Trunk | None, ancestor: bytes | None) -> bool:
        """Give up entries until `size` bytes fit, but neither the ancestor nor the sequence's own. Returns whether they fit."""
        for key in list(self._entries):
            if self._bytes + size <= self.budget:
                break
            entry = self._entries[key]
            spared = key == ancestor or (own is not None and isinstance(entry, Snapshot) and entry.trunk is own)
            if not spared:
                self._drop(key)
        return self._bytes + size <= self.budget

    def _drop(self, key: bytes) -> None:
        entry = self._entries.pop(key)
        if not isinstance(entry, Snapshot):
            self._bytes -= _features_bytes(entry)
            return
        self._bytes -= entry.nbytes
        entry.trunk.users -= 1
        if not entry.trunk.users:
            self._bytes -= entry.trunk.nbytes
            entry.trunk.layers = {}


def _growing(cache: SequenceCache) -> dict[int, KVCache]:
    """The layers whose caches grow with the sequence."""
    layers: list[Any] = list(cache.layers)
    return {index: layer for index, layer in enumerate(layers) if hasattr(layer, "length")}


def picture_key(picture: Picture) -> bytes:
    """What a picture shows, and how it is cut into patches."""
    digest = blake2b(repr((picture.settings, [frame.shape for frame in picture.frames])).encode(), digest_size=16)
    for frame in picture.frames:
        digest.update(np.ascontiguousarray(frame).data)
    return digest.digest()


def _points(prompt: Prompt, spacing: int) -> Iterator[Point]:
    digest = blake2b(digest_size=16)
    done = last = 0
    for placed in prompt.pictures:
        end = placed.start + placed.tokens
        digest.update(prompt.tokens[done:end].tobytes() + picture_key(placed.picture))
        done = end
        if end - last >= spacing or placed is prompt.pictures[-1]:
            last = end
            yield Point(end, digest.digest())
    end = len(prompt) - 1
    for place in range(done + TEXT_SPACING, end - spacing, TEXT_SPACING):
        digest.update(prompt.tokens[done:place].tobytes())
        done = place
        yield Point(place, digest.digest())
    if end - done >= 1 and len(prompt) >= spacing:
        digest.update(prompt.tokens[done:end].tobytes())
        yield Point(end, digest.digest())


def _features_bytes(features: Array) -> int:
    return int(np.prod(features.shape)) * FLOAT
