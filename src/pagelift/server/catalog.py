"""The models of a server by id: engines that extract, and the loaded checkpoint, which also talks."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pagelift.extract import Engine
from pagelift.extract.vlm import VlmEngine
from pagelift.server.errors import ApiError

if TYPE_CHECKING:
    from pagelift.runtime import LoadedModel


@dataclass(frozen=True, slots=True)
class Served:
    """One model. loaded: the checkpoint for generation, None for an engine that only extracts. created: when, in Unix seconds."""

    id: str
    engine: Engine
    loaded: LoadedModel | None = None
    created: int = field(default_factory=lambda: int(time.time()))


class Catalog:
    """ids of `engines` are their names; that of a checkpoint is its name. aliases: further ids of the first model.

    The first one is the default: the checkpoint if there is one.
    """

    def __init__(self, engines: Iterable[Engine], aliases: Iterable[str] = ()) -> None:
        served = [_served(engine) for engine in engines]
        served.sort(key=lambda model: model.loaded is None)
        self.models = {model.id: model for model in served}
        self.default = served[0]
        self._names = {**dict.fromkeys(aliases, self.default), **self.models}
        self._names.setdefault("auto", self.default)
        self.aliases = [name for name in self._names if name not in self.models]

    def find(self, name: str) -> Served:
        """The model called `name`. Raises ApiError 404."""
        found = self._names.get(name)
        if found is None:
            known = ", ".join(self._names)
            raise ApiError(404, f"there is no model {name[:200]!r}; this server has {known}", "model", "model_not_found")
        return found

    def listing(self) -> list[dict[str, Any]]:
        """As /v1/models gives it: the default first, then its aliases, then the others."""
        first, *others = self.models.values()
        rows = [(first.id, first), *((alias, first) for alias in self.aliases), *((model.id, model) for model in others)]
        return [describe(name, model) for name, model in rows]


def describe(name: str, model: Served) -> dict[str, Any]:
    """A model as the OpenAI API describes one."""
    return {"id": name, "object": "model", "created": model.created, "owned_by": "pagelift", "root": model.id}


def _served(engine: Engine) -> Served:
    """A checkpoint given by its folder is called by the folder's name, not by where it lies."""
    if isinstance(engine, VlmEngine):
        name = engine.model.name
        return Served(Path(name).name if os.path.isdir(name) else name, engine, engine.model)
    return Served(engine.name, engine)
