"""Which local model to use: what was asked for, the user's config file, or what the cache of models holds.

The file is config.toml in the user's configuration folder of pagelift (on Linux ~/.config/pagelift):

    model = "mlx-community/lift-oQ4"     # a checkpoint folder or a hub id
    backend = "auto"                     # auto, cpu, mlx
    prompt = "/path/to/prompt.txt"       # in place of lift's wording; with {schema} in it
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

import platformdirs

from pagelift.core import ConfigError


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model for the `vlm` engine. model: a checkpoint folder or a hub id, None for the default. prompt: a file with {schema} in it."""

    model: str | None = None
    backend: str = "auto"
    prompt: str | None = None

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if value is not None and (not isinstance(value, str) or not value):
                raise ConfigError(f"{f.name} is {value!r}; give a text")


def config_file() -> Path:
    return platformdirs.user_config_path("pagelift") / "config.toml"


def configured(file: Path | None = None) -> LocalModel:
    """What the config file says, or nothing when there is none. Raises ConfigError for a damaged file or unknown keys."""
    file = file or config_file()
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return LocalModel()
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from error
    known = [f.name for f in fields(LocalModel)]
    if unknown := sorted(values.keys() - set(known)):
        raise ConfigError(f"{file} has the unknown key {unknown[0]}; known are {', '.join(known)}")
    return LocalModel(**values)


def choose_model(asked: LocalModel) -> LocalModel | None:
    """The model to use: as asked for, else as configured, else the first known lift model that is in the cache, else None."""
    from pagelift.weights.hub import first_cached

    saved = configured()
    model = asked.model or saved.model or first_cached()
    if model is None:
        return None
    backend = asked.backend if asked.backend != "auto" else saved.backend
    return LocalModel(model, backend, asked.prompt or saved.prompt)
