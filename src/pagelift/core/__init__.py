"""Value types, errors and limits that all other modules share. Imports nothing of pagelift outside this package."""

from pagelift.core.errors import (
    ConfigError,
    CorruptDocument,
    DocumentError,
    DocumentNotFound,
    DocumentTimeout,
    EngineError,
    ExtractionError,
    InvalidSchema,
    LimitExceeded,
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
from pagelift.core.geometry import Box, union
from pagelift.core.limits import Limits
from pagelift.core.page import FormField, PageContent, Word
from pagelift.core.result import Extraction, Field, Json, PagePictures, Proposal, Status

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
    "Field",
    "FormField",
    "InvalidSchema",
    "Json",
    "LimitExceeded",
    "Limits",
    "PageContent",
    "PagePictures",
    "PageliftError",
    "PasswordRequired",
    "Proposal",
    "SchemaError",
    "SchemaNotFound",
    "SchemaRefused",
    "ShapeError",
    "Status",
    "UnfilledValue",
    "UnsupportedDocument",
    "WeightsError",
    "Word",
    "union",
]
