"""How the server is set up, validated when it is made."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields
from pathlib import Path

from pagelift.core import ConfigError, Limits

MB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLimits:
    """What one request may ask for, and how many there may be.

    body_bytes: of a request. held_bytes: of all requests in progress together. pages: of all documents of a request together.
    documents: in one request. output_tokens: of one answer. request_seconds: from arrival to the end, queueing included.
    header_seconds: until the head of a request is there. stall_seconds: without a byte read or written. drain_seconds: for requests in
    progress when the server is told to stop. running: extractions and generations at a time; None for the number of cores (built-in
    engine) and 32 (models). waiting: behind those.
    """

    document: Limits = field(default_factory=lambda: Limits(file_bytes=64 * MB, pages=500))
    body_bytes: int = 96 * MB
    held_bytes: int = 1024 * MB
    pages: int = 500
    documents: int = 200
    output_tokens: int = 16_384
    request_seconds: float = 600.0
    header_seconds: float = 15.0
    stall_seconds: float = 30.0
    drain_seconds: float = 30.0
    running: int | None = None
    waiting: int = 64

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, int | float) and not value > 0 and not (f.name == "waiting" and value == 0):
                raise ConfigError(f"{f.name} is {value!r}; give a number above 0")

    def engine_threads(self) -> int:
        return self.running or os.cpu_count() or 1

    def model_threads(self) -> int:
        return self.running or 32


@dataclass(frozen=True, slots=True)
class JobSettings:
    """file: the database, None for no jobs. workers: jobs at a time. waiting: queued jobs at most.

    keep_seconds, keep_count: how long, and how many, finished jobs are kept.
    attempts: a job during which the server ended so often fails. seconds: for one job.
    """

    file: Path | None = None
    workers: int = 1
    waiting: int = 1_000
    keep_seconds: float = 7 * 86_400.0
    keep_count: int = 10_000
    attempts: int = 3
    seconds: float = 6 * 3600.0

    def __post_init__(self) -> None:
        for name in ("workers", "waiting", "keep_seconds", "keep_count", "attempts", "seconds"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} of the jobs is {getattr(self, name)!r}; give a number above 0")


@dataclass(frozen=True, slots=True)
class Access:
    """Who may come in, and where documents may be taken from.

    api_keys: empty for no check. hosts: names in the Host header, empty for all. cors_origins: web pages that may call.
    urls: whether documents are fetched from public addresses. folders: in which documents may be named by path (file:// URLs).
    """

    api_keys: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()
    urls: bool = False
    folders: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        if any(len(key) < 8 or not key.isascii() or not key.isprintable() for key in self.api_keys):
            raise ConfigError("an API key is too short or not plain text; give at least 8 printable ASCII characters")


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """access, limits, jobs: see there. schema_folder: the schema library, None for the user's. aliases: further names of the model.

    version: of pagelift, for those who ask.
    """

    access: Access = field(default_factory=Access)
    limits: ServiceLimits = field(default_factory=ServiceLimits)
    jobs: JobSettings = field(default_factory=JobSettings)
    schema_folder: Path | None = None
    aliases: tuple[str, ...] = ()
    version: str = "unknown"


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen. certificate and key: PEM files for TLS, both or none."""

    host: str = "127.0.0.1"
    port: int = 8080
    certificate: Path | None = None
    key: Path | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.port < 65_536:
            raise ConfigError(f"the port is {self.port}; give 0 to 65535, 0 for any that is free")
        if (self.certificate is None) != (self.key is None):
            raise ConfigError("TLS needs a certificate and its key; give both files")
        for file in (self.certificate, self.key):
            if file is not None and not file.is_file():
                raise ConfigError(f"there is no TLS file {file}; check the path")

    @property
    def local(self) -> bool:
        """Whether only this machine can connect."""
        return self.host in ("127.0.0.1", "localhost", "::1")
