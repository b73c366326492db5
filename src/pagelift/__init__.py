"""pagelift: documents to JSON that conforms to a schema, with the place on the page where each value was read.

Names are imported when they are first used, so that `import pagelift` costs nothing.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
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
        InvalidOutput,
        InvalidSchema,
        LimitExceeded,
        Limits,
        PageliftError,
        PasswordRequired,
        SchemaError,
        SchemaNotFound,
        SchemaRefused,
        ShapeError,
        UnfilledValue,
        UnsupportedDocument,
        WeightsError,
    )
    from pagelift.extract import Extractor, extract
    from pagelift.runtime import load_model
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
    "InvalidOutput",
    "InvalidSchema",
    "LimitExceeded",
    "Limits",
    "PageliftError",
    "PasswordRequired",
    "Schema",
    "SchemaError",
    "SchemaNotFound",
    "SchemaRefused",
    "ShapeError",
    "UnfilledValue",
    "UnsupportedDocument",
    "WeightsError",
    "extract",
    "load_model",
]

_ELSEWHERE = {"Extractor": "pagelift.extract", "extract": "pagelift.extract", "Schema": "pagelift.schema", "load_model": "pagelift.runtime"}


class _Package(ModuleType):
    """Keeps `pagelift.extract` the function; importing the subpackage of that name would put the module there."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value.extract if name == "extract" and isinstance(value, ModuleType) else value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'pagelift' has no attribute {name!r}")
    value = getattr(import_module(_ELSEWHERE.get(name, "pagelift.core")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
