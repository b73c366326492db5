"""Where a model is: a local folder, or a snapshot in the cache of huggingface_hub. Nothing is fetched but by `pull`.

The library's own settings hold: HF_HOME, HF_HUB_CACHE, HF_HUB_OFFLINE, HF_ENDPOINT, HF_TOKEN.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pagelift.core.errors import WeightsError

LIFT_NOTICE = (
    "The weights of lift are under a modified OpenRAIL-M licence: free for research, personal use and small companies, not for use in "
    "competition with Datalab's API. Read the licence on the model's page before you use them."
)
FILES = ("*.json", "*.jinja", "*.safetensors", "LICENSE*", "README.md")
"""What `pull` fetches of a repository."""
FREE = ("apache-2.0", "mit", "bsd-3-clause", "bsd-2-clause")
_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+(?:@[\w./-]+)?")


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A checkpoint that pagelift was made for. size_gb: of its files, in 10**9 bytes."""

    id: str
    what: str
    size_gb: float
    notice: str = LIFT_NOTICE


KNOWN = (
    KnownModel("datalab-to/lift", "original, bf16", 18.0),
    KnownModel("mlx-community/lift-bf16", "MLX layout, bf16", 18.0),
    KnownModel("mlx-community/lift-oQ8", "mixed precision, about 8.6 bits", 9.7),
    KnownModel("mlx-community/lift-oQ6", "mixed precision, about 6 bits", 7.7),
    KnownModel("mlx-community/lift-oQ5", "mixed precision, about 5 bits", 6.7),
    KnownModel("mlx-community/lift-oQ4", "mixed precision, about 4.6 bits", 5.6),
    KnownModel("mlx-community/lift-oQ3.5", "mixed precision, about 4 bits", 4.9),
    KnownModel("mlx-community/lift-oQ3", "mixed precision, about 3.5 bits", 4.6),
)
"""In the order in which `engine="auto"` looks for them in the cache."""


@dataclass(frozen=True, slots=True)
class CachedModel:
    """A model in the cache of huggingface_hub that has a config.json. size: bytes on disk."""

    id: str
    folder: Path
    size: int
    model_type: str


def find_model(name: str | Path) -> Path:
    """The folder of a checkpoint: `name` itself if it is a folder, else the cached snapshot of a hub id `owner/name[@revision]`.

    Raises WeightsError when there is no such folder, or with the command that fetches the model when it is not in the cache.
    """
    folder = Path(name)
    if folder.is_dir():
        return folder
    if not is_hub_id(name):
        raise WeightsError(f"there is no folder {name}; give a checkpoint folder or a hub id such as {KNOWN[0].id}")
    cached = cached_snapshot(str(name))
    if cached is None:
        raise WeightsError(f"model {name} is neither a folder nor in the cache; fetch it with: pagelift models pull {name}")
    return cached


def is_hub_id(name: str | Path) -> bool:
    """Whether a name has the form of a hub id, `owner/name` or `owner/name@revision`."""
    return isinstance(name, str) and _ID.fullmatch(name) is not None and ".." not in name


def cached_snapshot(name: str) -> Path | None:
    """The cached snapshot folder of a hub id, if it has a config.json; never touches the network."""
    from huggingface_hub import constants

    repository, _, revision = name.partition("@")
    if not (Path(constants.HF_HUB_CACHE) / f"models--{repository.replace('/', '--')}").is_dir():
        return None  # saves loading the rest of the library, which takes half a second
    from huggingface_hub import try_to_load_from_cache

    config = try_to_load_from_cache(repository, "config.json", revision=revision or None)
    return Path(config).parent if isinstance(config, str) else None


def first_cached() -> str | None:
    """The first of the known models of which all weight files are in the cache."""
    return next((model.id for model in KNOWN if (folder := cached_snapshot(model.id)) and _has_weights(folder)), None)


def _has_weights(folder: Path) -> bool:
    from pagelift.weights.checkpoint import weight_files

    try:
        return bool(weight_files(folder))
    except WeightsError:
        return False


def cached_models(scan: Callable[[], Any] | None = None) -> list[CachedModel]:
    """All models in the cache with a config.json, by id. scan: in place of `huggingface_hub.scan_cache_dir`."""
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    from pagelift.weights.tokenizer import read_json

    try:
        repositories = (scan or scan_cache_dir)().repos
    except CacheNotFound:
        return []
    found = []
    for repository in repositories:
        folder = cached_snapshot(repository.repo_id) if repository.repo_type == "model" else None
        if folder:
            model_type = str(read_json(folder, "config.json").get("model_type", "unknown"))
            found.append(CachedModel(repository.repo_id, folder, repository.size_on_disk, model_type))
    return sorted(found, key=lambda model: model.id)


@dataclass(frozen=True, slots=True)
class Offer:
    """What the hub says about a model before it is fetched. size: bytes of the files that would be fetched. notice: to be shown."""

    id: str
    licence: str
    size: int
    notice: str


def look_up(name: str, api: Any = None) -> Offer:
    """Ask the hub about a model. api: in place of `huggingface_hub.HfApi()`. Raises WeightsError."""
    from huggingface_hub import HfApi

    repository, revision = _split(name)
    info = _call(name, lambda: (api or HfApi()).model_info(repository, revision=revision, files_metadata=True))
    card = getattr(info, "card_data", None) or {}
    licence = card.get("license_name") or card.get("license") or ""
    licence = licence if isinstance(licence, str) else ", ".join(map(str, licence))
    size = sum(file.size or 0 for file in info.siblings or () if any(Path(file.rfilename).match(pattern) for pattern in FILES))
    known = next((model for model in KNOWN if model.id == repository), None)
    notice = known.notice if known else ""
    if not notice and licence.lower() not in FREE:
        notice = f"The licence of these weights is {licence or 'not stated'}. Read https://huggingface.co/{repository} before you use them."
    return Offer(name, licence or "not stated", size, notice)


def pull(name: str, download: Callable[..., str] | None = None) -> Path:
    """Fetch a model into the cache and return its folder. download: in place of `huggingface_hub.snapshot_download`.

    Raises WeightsError when the hub refuses, cannot be reached, or offline mode is on.
    """
    from huggingface_hub import snapshot_download

    repository, revision = _split(name)
    fetch = download or snapshot_download
    return Path(_call(name, lambda: fetch(repository, revision=revision, allow_patterns=list(FILES))))


def _split(name: str) -> tuple[str, str | None]:
    if not is_hub_id(name):
        raise WeightsError(f"{name!r} is no hub id; write owner/name, such as {KNOWN[0].id}")
    repository, _, revision = name.partition("@")
    return repository, revision or None


def _call(name: str, request: Callable[[], Any]) -> Any:
    """A request to the hub. Its library raises errors of many families, the network's among them; each becomes a WeightsError."""
    from huggingface_hub import errors

    remedies: Sequence[tuple[type[Exception], str]] = (
        (errors.OfflineModeIsEnabled, "offline mode is on; unset HF_HUB_OFFLINE to fetch models"),
        (errors.GatedRepoError, "access must be asked for on its page; then log in with: hf auth login"),
        (errors.RepositoryNotFoundError, "there is no such model, or it is private and you are not logged in; check the id"),
        (errors.RevisionNotFoundError, "it has no such revision; check what stands after the @"),
    )
    try:
        return request()
    except Exception as error:
        remedy = next((text for kind, text in remedies if isinstance(error, kind)), f"the hub cannot be used: {error}")
        raise WeightsError(f"model {name}: {remedy}") from error
