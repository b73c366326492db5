"""What options of several subcommands say, and the model or server that they name."""

from __future__ import annotations

import enum
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pagelift.core import ConfigError, Limits

if TYPE_CHECKING:
    from pagelift.extract import LocalModel, RemoteServer


MEGABYTE = 1024 * 1024
DEFAULTS = Limits()


class Backend(enum.StrEnum):
    auto = "auto"
    cpu = "cpu"
    cpu_exact = "cpu-exact"
    mlx = "mlx"
    reference = "reference"


ModelBackend = Annotated[Backend, typer.Option(help="What runs the model.")]
VlmBackend = Annotated[Backend, typer.Option(help="For vlm: what runs the model.")]
TileCache = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Keep weights there as the backend cpu lays them out, for faster starts. Default: PAGELIFT_TILE_CACHE.",
        show_default=False,
    ),
]


class Nulls(enum.StrEnum):
    allowed = "allowed"
    declared = "declared"


class QuantizationMethod(enum.StrEnum):
    best = "best"
    oq = "oq"


def model_or_server(engine: str, local: LocalModel | None, api_base: str | None, api_key: str | None) -> LocalModel | RemoteServer | None:
    """The model or server that was asked for; the environment names of lift-pdf count only for the engine remote."""
    from pagelift.extract.settings import configured_server

    if engine != "remote":
        if api_base or api_key:
            raise ConfigError("--api-base and --api-key are for --engine remote; choose that engine or leave them out")
        return local
    if local is not None and (local.backend != "auto" or local.tile_cache):
        raise ConfigError("engine remote runs no model itself; leave --backend and --tile-cache out")
    given = {
        "api_base": api_base or os.environ.get("VLLM_API_BASE"),
        "api_key": api_key or os.environ.get("VLLM_API_KEY"),
        "model": (local and local.model) or os.environ.get("VLLM_MODEL_NAME"),
        "prompt": local and local.prompt,
    }
    server: RemoteServer = replace(configured_server(), **{name: value for name, value in given.items() if value})  # type: ignore[arg-type]
    return server


def local_model(engine: str, model: str | None, backend: Backend, prompt: Path | None, tile_cache: Path | None) -> LocalModel | None:
    """The model that was asked for; PAGELIFT_MODEL and PAGELIFT_TILE_CACHE count only for engines that can use one."""
    from pagelift.extract import LocalModel

    if engine in ("auto", "vlm"):
        model = model or os.environ.get("PAGELIFT_MODEL") or None
        tile_cache = tile_cache or tile_cache_folder()
    asked = LocalModel(model, backend.value, str(prompt) if prompt else None, str(tile_cache) if tile_cache else None)
    return None if asked == LocalModel() else asked


def tile_cache_folder() -> Path | None:
    folder = os.environ.get("PAGELIFT_TILE_CACHE")
    return Path(folder) if folder else None
