"""`pagelift serve`: the HTTP server."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from platformdirs import user_data_path

from pagelift.commands import ExitCode
from pagelift.core import ConfigError, Limits
from pagelift.extract import Engine, LocalModel, RemoteServer, load_engine

if TYPE_CHECKING:
    from pagelift.server.settings import Address, ServerSettings

NEEDED = {"fastapi": "fastapi", "uvicorn": "uvicorn", "python_multipart": "python-multipart", "prometheus_client": "prometheus-client"}
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Listening:
    """host: the address to listen at. names: in the Host header; empty for this machine's own names, or all when others can connect."""

    host: str = "127.0.0.1"
    port: int = 8080
    certificate: Path | None = None
    key: Path | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Doors:
    """Who may call, and where documents may come from. key_file: one key a line."""

    keys: tuple[str, ...] = ()
    key_file: Path | None = None
    cors_origins: tuple[str, ...] = ()
    urls: bool = False
    folders: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Sizes:
    """As in `server.settings.ServiceLimits`."""

    body_bytes: int
    pages: int
    page_pixels: int
    running: int | None
    waiting: int


@dataclass(frozen=True, slots=True)
class Times:
    """As in `server.settings.ServiceLimits`, in seconds."""

    request: float
    header: float
    stall: float
    drain: float


@dataclass(frozen=True, slots=True)
class Files:
    """jobs: their database, None for the user's. schemas: the folder of the library, None for the user's."""

    jobs: Path | None = None
    job_workers: int = 1
    keep_days: float = 7.0
    schemas: Path | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """What was asked for on the command line."""

    engine: str
    model: LocalModel | RemoteServer | None
    aliases: tuple[str, ...]
    listening: Listening
    doors: Doors
    sizes: Sizes
    times: Times
    files: Files = Files()
    version: str = "unknown"


def run(job: Job) -> ExitCode:
    """Serve until told to stop. Raises ConfigError when the extra is not installed or a setting is wrong, EngineError, WeightsError."""
    check_installed()
    from pagelift.server.catalog import Catalog
    from pagelift.server.logs import set_up
    from pagelift.server.run import serve
    from pagelift.server.service import Service

    settings, address = make_settings(job)
    catalog = Catalog(load_engines(job.engine, job.model), job.aliases)
    set_up()
    return ExitCode.FINE if serve(Service(settings, catalog), address) == 0 else ExitCode.USAGE


def check_installed() -> None:
    """Raises ConfigError that says how to install what is missing."""
    missing = [package for module, package in NEEDED.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise ConfigError(f"the server needs {', '.join(missing)}; install them with: pip install 'pagelift[server]'")


def load_engines(name: str, model: LocalModel | RemoteServer | None) -> list[Engine]:
    """The engines to serve: `name` first, and always the built-in one."""
    first = load_engine(name, model or LocalModel())
    return [first] if first.name == "layout" else [first, load_engine("layout")]


def make_settings(job: Job) -> tuple[ServerSettings, Address]:
    """The settings of the server. Raises ConfigError."""
    from pagelift.server.settings import Access, Address, JobSettings, ServerSettings, ServiceLimits

    listening, doors, sizes, times = job.listening, job.doors, job.sizes, job.times
    address = Address(listening.host, listening.port, listening.certificate, listening.key)
    names = listening.names or (LOCAL_NAMES if address.local else ())
    for folder in doors.folders:
        if not folder.is_dir():
            raise ConfigError(f"there is no folder {folder} to take documents from; check --allow-folder")
    access = Access((*doors.keys, *_keys(doors.key_file)), names, doors.cors_origins, doors.urls, doors.folders)
    document = replace(Limits(), file_bytes=sizes.body_bytes, pages=sizes.pages, page_pixels=sizes.page_pixels)
    limits = ServiceLimits(
        document=document, body_bytes=sizes.body_bytes, pages=sizes.pages, request_seconds=times.request, header_seconds=times.header,
        stall_seconds=times.stall, drain_seconds=times.drain, running=sizes.running, waiting=sizes.waiting,
    )  # fmt: skip
    jobs = JobSettings(
        job.files.jobs or user_data_path("pagelift", appauthor=False) / "jobs.sqlite",
        job.files.job_workers,
        keep_seconds=job.files.keep_days * 86_400,
    )
    return ServerSettings(access, limits, jobs, job.files.schemas, job.aliases, version=job.version), address


def _keys(file: Path | None) -> list[str]:
    if file is None:
        return []
    try:
        keys = [line.strip() for line in file.read_text(encoding="ascii").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise ConfigError(f"the file of API keys {file} cannot be read: {error}") from error
    if not keys:
        raise ConfigError(f"the file of API keys {file} is empty; give one key a line")
    return keys
