"""A loaded model whose answers can be counted and stopped from outside, for one request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pagelift.server.work import Signal

if TYPE_CHECKING:
    from pagelift.runtime import Generation, LoadedModel, Piece


class WatchedModel:
    """The model with `stream` watched; everything else is its own. finished: told of every answer when it has ended."""

    def __init__(self, loaded: LoadedModel, signal: Signal, finished: Callable[[Generation], None] = lambda _: None) -> None:
        self._loaded = loaded
        self._signal = signal
        self._finished = finished

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loaded, name)

    def stream(self, *given: Any, **named: Any) -> WatchedGeneration:
        self._signal.check()
        return WatchedGeneration(self._loaded.stream(*given, **named), self._signal, self._finished)


class WatchedGeneration:
    """One answer. Iteration raises the reason of the signal once that is set."""

    def __init__(self, generation: Generation, signal: Signal, finished: Callable[[Generation], None]) -> None:
        self._generation = generation
        self._signal = signal
        self._finished = finished
        signal.when_set(generation.cancel)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generation, name)

    def __iter__(self) -> Iterator[Piece]:
        try:
            for piece in self._generation:
                self._signal.check()
                yield piece
        finally:
            self._finished(self._generation)
        self._signal.check()
