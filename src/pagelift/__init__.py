"""pagelift: documents to JSON that conforms to a schema, with the place on the page where each value was read.

Names are imported when they are first used, so that `import pagelift` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pagelift.core import (
        Box,
        ConfigError,
        CorruptDocument,
        DocumentError,
        DocumentNotFound,
        DocumentTimeout,
        EngineError,
        Extraction,
        ExtractionError,
        Field,
        InvalidSchema,
        LimitExceeded,
        Limits,
        PageliftError,
        PasswordRequired,
        SchemaError,
        SchemaNotFound,
        SchemaRefused,
        UnfilledValue,
        UnsupportedDocument,
    )
    from pagelift.extract import Extractor, extract
    from pagelift.schema import Schema

__version__ = "0.1.0"

__all__ = [
    "Box",
    "ConfigError",
    "CorruptDocument",
    "DocumentError",
    "DocumentNotFound",
    "DocumentTimeout",
    "EngineError",
    "Extraction",
    "ExtractionError",
    "Extractor",
    "Field",
    "InvalidSchema",
    "LimitExceeded",
    "Limits",
    "PageliftError",
    "PasswordRequired",
    "Schema",
    "SchemaError",
    "SchemaNotFound",
    "SchemaRefused",
    "UnfilledValue",
    "UnsupportedDocument",
    "extract",
]

_ELSEWHERE = {"Extractor": "pagelift.extract", "extract": "pagelift.extract", "Schema": "pagelift.schema"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'pagelift' has no attribute {name!r}")
    value = getattr(import_module(_ELSEWHERE.get(name, "pagelift.core")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
