"""`Extractor` and `extract`: schema first, then the document, then an engine, and only valid results come out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, TypedDict, Unpack

from pagelift.core import Budget, ConfigError, EngineError, Extraction, ExtractionError, Limits, PageliftError, PagePictures
from pagelift.documents import open_document
from pagelift.documents.open import OcrMode
from pagelift.extract.engines import Engine, ExtractOptions, ReadablePage, load_engine
from pagelift.extract.evidence import complete_fields
from pagelift.extract.pages import select_pages
from pagelift.extract.settings import LocalModel, RemoteServer
from pagelift.schema import Schema
from pagelift.schema.schema import Nulls

Source: TypeAlias = str | Path | bytes | BinaryIO
Pages: TypeAlias = str | Iterable[int] | None


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where the pages of one run come from. name: for messages. pages: how many are read."""

    name: str
    pages: int
    warnings: tuple[str, ...]
    pictures: PagePictures | None


class Options(TypedDict, total=False):
    """The keyword options of `Extractor`, for `extract` to pass on."""

    limits: Limits | None
    ocr: OcrMode
    nulls: Nulls
    strict: bool
    model: str | Path | LocalModel | RemoteServer | None
    budget: Budget | None


class Extractor:
    """Extracts from many documents with the same engine and, unless given per document, the same schema.

    schema: anything that `Schema.load` takes; it is read here, so that a refusal comes before any document is opened.
    engine: a name, "auto", or an object with the `Engine` protocol. model: for the engines "vlm" and "auto", a checkpoint folder or
    the id of a cached model; for "remote" a `RemoteServer`, or the name of a model on the configured one. For the other options see
    `ExtractOptions`.
    Safe to use from several threads. Raises SchemaError, EngineError, WeightsError, ConfigError.
    """

    def __init__(  # noqa: PLR0913
        self,
        schema: Any = None,
        engine: str | Engine = "auto",
        *,
        limits: Limits | None = None,
        ocr: OcrMode = "auto",
        nulls: Nulls = "allowed",
        strict: bool = False,
        model: str | Path | LocalModel | RemoteServer | None = None,
        budget: Budget | None = None,
    ) -> None:
        if model is not None and not isinstance(engine, str):
            raise ConfigError("a model was given beside an engine object; give it to the engine")
        self.options = ExtractOptions(limits or Limits(), ocr, nulls, strict, budget or Budget())
        self.schema = None if schema is None else self._load(schema)
        asked = model if isinstance(model, LocalModel | RemoteServer) else LocalModel(None if model is None else str(model))
        self.engine = load_engine(engine, asked) if isinstance(engine, str) else engine

    def extract(self, source: Source, schema: Any = None, pages: Pages = None, password: str | None = None) -> Extraction:
        """Extract from one document.

        source: a path, "-" for standard input, the content as bytes, or a binary stream. pages: "1-3,7" or page numbers.
        Raises SchemaError, DocumentError, EngineError, ExtractionError (UnfilledValue with nulls="declared"), ConfigError.
        """
        use = self._schema(schema)
        with open_document(source, password=password, limits=self.options.limits, ocr=self.options.ocr) as document:
            numbers = select_pages(pages, document.page_count)
            return self._run(document.pages(numbers), use, _Origin(document.name, len(numbers), document.warnings, document))

    async def aextract(self, source: Source, schema: Any = None, pages: Pages = None, password: str | None = None) -> Extraction:
        """`extract` in a thread, for asynchronous programs."""
        return await asyncio.to_thread(self.extract, source, schema, pages, password)

    def extract_pages(self, pages: Iterable[ReadablePage], schema: Any = None, source: str = "") -> Extraction:
        """Extract from pages that were read before. The result has no pictures. Raises as `extract` does."""
        known = list(pages)
        return self._run(known, self._schema(schema), _Origin(source, len(known), (), None))

    def _load(self, schema: Any) -> Schema:
        return Schema.load(schema, nulls=self.options.nulls, strict=self.options.strict)

    def _schema(self, schema: Any) -> Schema:
        if schema is not None:
            return self._load(schema)
        if self.schema is None:
            raise ConfigError("there is no schema; give one to Extractor or to extract")
        return self.schema

    def _run(self, pages: Iterable[ReadablePage], schema: Schema, origin: _Origin) -> Extraction:
        start = time.perf_counter()
        try:
            proposal = self.engine.extract(pages, schema, self.options)
        except PageliftError:
            raise
        except Exception as error:
            raise EngineError(f"{origin.name}: engine {self.engine.name} failed: {type(error).__name__}: {error}") from error
        conformed = schema.conform(proposal.data)
        problems = schema.errors(conformed.data)
        if problems:
            where = ", ".join(f"{p.pointer or '/'}: {p.message}" for p in problems[:3])
            raise ExtractionError(f"{origin.name}: no result that conforms to the schema could be made ({where})")
        model, model_warnings = _instance(schema, conformed.data)
        return Extraction(
            data=conformed.data,
            fields=complete_fields(conformed.data, proposal, conformed.dropped),
            engine=self.engine.name,
            source=origin.name,
            pages=origin.pages,
            warnings=(*origin.warnings, *proposal.warnings, *model_warnings),
            metadata={**proposal.metadata, "seconds": round(time.perf_counter() - start, 4)},
            model=model,
            pictures=origin.pictures,
        )


def _instance(schema: Schema, data: Any) -> tuple[Any, tuple[str, ...]]:
    """The data as an instance of the type that the schema came from, or None with a warning where nulls or its own checks prevent one."""
    if schema.model is None:
        return None, ()
    instance, reason = schema.to_model(data)
    return instance, (f"no instance of {getattr(schema.model, '__name__', schema.model)} can be made, see: {reason}",) if reason else ()


def extract(
    source: Source,
    schema: Any,
    engine: str | Engine = "auto",
    *,
    pages: Pages = None,
    password: str | None = None,
    **options: Unpack[Options],
) -> Extraction:
    """Extract from one document what a schema asks for; for many documents make one `Extractor`.

    source: a path, "-" for standard input, the content as bytes, or a binary stream. schema: a dict, a file, inline JSON,
    a saved name, or a Pydantic model. pages: "1-3,7" or page numbers. options: as for `Extractor`. Raises PageliftError.
    """
    return Extractor(schema, engine, **options).extract(source, pages=pages, password=password)
