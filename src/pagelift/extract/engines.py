"""The seam between extraction and its engines: what an engine is given, what it hands back, and which there are.

A new engine is a class with `name` and `extract`, and one line in `ENGINES`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, get_args, runtime_checkable

from pagelift.core import Budget, ConfigError, EngineError, Limits, PageContent, Proposal, Word
from pagelift.documents.open import OcrMode
from pagelift.extract.settings import LocalModel, RemoteServer, choose_model, configured_server
from pagelift.schema import Schema
from pagelift.schema.nodes import Object, Scalar
from pagelift.schema.schema import Nulls

if TYPE_CHECKING:
    from PIL.Image import Image


PICTURE_PAGES = 2
"""Pictures are read on so many first pages."""
DOUBTFUL = 0.55
"""A required value with less confidence is looked for in the pictures as well."""


@dataclass(frozen=True, slots=True)
class ExtractOptions:
    """How documents and schemas are read. Raises ConfigError for unknown values.

    ocr: "auto" recognises characters only on pages without a sound text layer. nulls: "allowed" lets every scalar come
    back null, "declared" only those whose schema says so. strict: refuse schemas with constraints that cannot be enforced. budget: how
    much a model is asked at once.
    """

    limits: Limits = field(default_factory=Limits)
    ocr: OcrMode = "auto"
    nulls: Nulls = "allowed"
    strict: bool = False
    budget: Budget = field(default_factory=Budget)

    def __post_init__(self) -> None:
        for name, known in (("ocr", get_args(OcrMode)), ("nulls", get_args(Nulls))):
            if getattr(self, name) not in known:
                raise ConfigError(f"{name} is {getattr(self, name)!r}; give {' or '.join(known)}")


class ReadablePage(Protocol):
    """What engines see of a page; a `documents.Page` is one. number: from 1. content, picture_words and image are made when asked for."""

    @property
    def number(self) -> int: ...

    @property
    def content(self) -> PageContent: ...

    @property
    def picture_words(self) -> tuple[Word, ...]: ...

    def image(self, dpi: float) -> Image: ...


@runtime_checkable
class Engine(Protocol):
    """Reads values for a schema from pages.

    An engine may leave keys out and give values that break the schema: the extractor completes, drops and validates.
    It raises EngineError when it cannot work at all, DocumentError when a page cannot be read.
    """

    name: str

    def extract(self, pages: Iterable[ReadablePage], schema: Schema, options: ExtractOptions) -> Proposal: ...


class LayoutEngine:
    """The built-in engine: words, labels and geometry, no weights."""

    name = "layout"

    def extract(self, pages: Iterable[ReadablePage], schema: Schema, options: ExtractOptions) -> Proposal:  # noqa: ARG002
        from pagelift.layout import extract_pages

        start = time.perf_counter()
        pages = list(pages)
        contents = [page.content for page in pages]
        read = time.perf_counter()
        proposal = extract_pages(contents, schema)
        doubts = _doubts(proposal, schema)
        if doubts > 0:
            # Reading pictures takes longer than all the rest, so it is done for doubtful required values alone.
            seen = [replace(c, words=(*c.words, *_picture_words(p))) for c, p in zip(contents, pages, strict=True)]
            if seen != contents:
                again = extract_pages(seen, schema)
                proposal = again if _doubts(again, schema) < doubts else proposal
        seconds = {"words_s": round(read - start, 4), "engine_s": round(time.perf_counter() - read, 4)}
        warnings = [f"page {content.number}: {warning}" for content in contents for warning in content.warnings]
        return Proposal(proposal.data, proposal.fields, (*warnings, *proposal.warnings), {**proposal.metadata, **seconds})


def _doubts(proposal: Proposal, schema: Schema) -> float:
    """How much is unsure about the required top-level scalars: 1 for one that was not found, less for a low confidence."""
    properties = schema.root.properties if isinstance(schema.root, Object) else {}
    required = [name for name, node in properties.items() if isinstance(node, Scalar) and node.required]
    found = [proposal.fields.get("/" + name.replace("~", "~0").replace("/", "~1")) for name in required]
    return sum(1.0 if f is None or f.value is None else max(0.0, DOUBTFUL - f.confidence) for f in found)


def _picture_words(page: ReadablePage) -> tuple[Word, ...]:
    return page.picture_words if page.number <= PICTURE_PAGES else ()


NOTHING_ASKED = LocalModel()


def _vlm(local: LocalModel = NOTHING_ASKED) -> Engine:
    """The local vision-language model that was asked for, is configured, or is in the cache."""
    from pagelift.extract.vlm import local_engine

    return local_engine(local)


def _remote(server: RemoteServer | None = None) -> Engine:
    """A server that was asked for or is configured."""
    from pagelift.extract.remote import RemoteEngine

    return RemoteEngine(server or configured_server())


ENGINES: dict[str, Callable[[], Engine]] = {
    "layout": LayoutEngine,
    "vlm": _vlm,
    "remote": _remote,
}


def load_engine(name: str, model: LocalModel | RemoteServer = NOTHING_ASKED) -> Engine:
    """The engine called `name`. "auto" is the local model if one is asked for, configured or in the cache, else the built-in engine.

    model: for "vlm" and "auto" a local model, for "remote" a server. Raises EngineError for an unknown name or when there is no model
    for "vlm", ConfigError when a model is given for an engine that uses none, WeightsError when the model cannot be loaded.
    """
    if name == "auto" and isinstance(model, LocalModel):
        name = "vlm" if choose_model(model) else "layout"
    if name not in ENGINES and name != "auto":
        raise EngineError(f"there is no engine {name!r}; choose auto, {', '.join(sorted(ENGINES))}")
    if isinstance(model, RemoteServer):
        if name != "remote":
            raise ConfigError(f"engine {name} asks no server, but one was given; leave it out or choose engine remote")
        return _remote(model)
    if model == NOTHING_ASKED:
        return ENGINES[name]()
    if name == "remote":
        return _remote(_named(model))
    if name != "vlm":
        if replace(model, tile_cache=None) == NOTHING_ASKED:
            return ENGINES[name]()  # where weights would be kept says nothing about a model
        raise ConfigError(f"engine {name} uses no model, but a model, backend or prompt was given; leave it out or choose engine vlm")
    return _vlm(model)


def _named(model: LocalModel) -> RemoteServer:
    """The configured server with the name of a model, or a prompt, that was asked for alone."""
    if model.backend != "auto":
        raise ConfigError("engine remote runs no model itself, but a backend was given; leave it out or choose engine vlm")
    saved = configured_server()
    return replace(saved, model=model.model or saved.model, prompt=model.prompt or saved.prompt)
