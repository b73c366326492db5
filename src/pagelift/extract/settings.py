"""Which local model to use: what was asked for, the user's config file, or what the cache of models holds. Which server, where one is.

The file is config.toml in the user's configuration folder of pagelift (on Linux ~/.config/pagelift):

    model = "mlx-community/lift-oQ4"     # a checkpoint folder or a hub id
    backend = "auto"                     # auto, cpu, mlx
    prompt = "/path/to/prompt.txt"       # in place of lift's wording; with {schema} in it
    tile_cache = "/path/to/folder"       # for weights as the backend cpu lays them out; without it nothing is kept

    [remote]                             # for the engine remote alone
    api_base = "http://localhost:8000/v1"
    model = "lift"
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

import platformdirs

from pagelift.core import ConfigError


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model for the `vlm` engine. model: a checkpoint folder or a hub id, None for the default. prompt: a file with {schema} in it.
    tile_cache: a folder in which weights are kept as the backend lays them out, for faster starts."""

    model: str | None = None
    backend: str = "auto"
    prompt: str | None = None
    tile_cache: str | None = None

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if value is not None and (not isinstance(value, str) or not value):
                raise ConfigError(f"{f.name} is {value!r}; give a text")


Constraint = Literal["auto", "json_schema", "structured_outputs", "guided_json", "json_object", "none"]


@dataclass(frozen=True, slots=True)
class RemoteServer:
    """An OpenAI-compatible server for the `remote` engine. Raises ConfigError.

    api_base: its address, /v1 included. model: None for the first that it lists. api_key: None where it wants none. timeout_s: for
    one answer. retries: after failed connections, 408, 409, 429 and 5xx, with growing pauses. concurrency: requests at the same time.
    constraint: how the server is held to the schema; "auto" takes the strongest that it accepts. prompt: a file with {schema} in it.
    """

    api_base: str = "http://localhost:8000/v1"
    model: str | None = None
    api_key: str | None = field(default=None, repr=False)
    timeout_s: float = 900.0
    retries: int = 4
    concurrency: int = 8
    constraint: Constraint = "auto"
    prompt: str | None = None

    def __post_init__(self) -> None:
        for name in ("api_base", "model", "api_key", "prompt"):
            value = getattr(self, name)
            if not (value is None and name != "api_base") and (not isinstance(value, str) or not value):
                raise ConfigError(f"{name} is {'empty' if name == 'api_key' else repr(value)}; give a text")
        if not self.api_base.startswith(("http://", "https://")) or not urlsplit(self.api_base).hostname:
            raise ConfigError(f"api_base is {self.api_base!r}; give an address such as http://localhost:8000/v1")
        for name, least in (("retries", 0), ("concurrency", 1)):
            if type(value := getattr(self, name)) is not int or not least <= value <= 1000:
                raise ConfigError(f"{name} is {value!r}; give a whole number from {least} to 1000")
        if not isinstance(self.timeout_s, int | float) or not self.timeout_s > 0:
            raise ConfigError(f"timeout_s is {self.timeout_s!r}; give seconds above 0")
        if self.constraint not in get_args(Constraint):
            raise ConfigError(f"constraint is {self.constraint!r}; choose {', '.join(get_args(Constraint))}")


def config_file() -> Path:
    return platformdirs.user_config_path("pagelift") / "config.toml"


def configured(file: Path | None = None) -> LocalModel:
    """What the config file says of a local model, or nothing. Raises ConfigError for a damaged file or unknown keys."""
    values = _read(file or config_file())
    values.pop("remote", None)
    return LocalModel(**values)


def configured_server(file: Path | None = None) -> RemoteServer:
    """What the config file says of a server, or the defaults. Raises ConfigError for a damaged file or unknown keys."""
    return RemoteServer(**_read(file or config_file()).get("remote", {}))


def _read(file: Path) -> dict[str, Any]:
    """The config file with known keys only."""
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from error
    remote = values.get("remote", {})
    if not isinstance(remote, dict):
        raise ConfigError(f"{file}: remote is {remote!r}; write a table [remote]")
    for given, kind, where in ((values.keys() - {"remote"}, LocalModel, ""), (remote.keys(), RemoteServer, "remote.")):
        known = [f.name for f in fields(kind)]
        if unknown := sorted(given - set(known)):
            raise ConfigError(f"{file} has the unknown key {where}{unknown[0]}; known are {', '.join(known)}")
    return values


def choose_model(asked: LocalModel) -> LocalModel | None:
    """The model to use: as asked for, else as configured, else the first known lift model that is in the cache, else None."""
    from pagelift.weights.hub import first_cached

    saved = configured()
    model = asked.model or saved.model or first_cached()
    if model is None:
        return None
    backend = asked.backend if asked.backend != "auto" else saved.backend
    return LocalModel(model, backend, asked.prompt or saved.prompt, asked.tile_cache or saved.tile_cache)
