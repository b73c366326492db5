"""Every error that pagelift raises on purpose.

PageliftError
├── DocumentError              one input document, never the whole run
│   ├── DocumentNotFound       no such file, or it cannot be read
│   ├── UnsupportedDocument    not a document format that pagelift opens
│   ├── CorruptDocument        damaged, truncated or empty
│   ├── PasswordRequired       encrypted, and no or a wrong password was given
│   ├── LimitExceeded          larger than a configured limit
│   └── DocumentTimeout        took longer than the configured time
├── SchemaError                the schema, before any document is opened
│   ├── SchemaNotFound         no such file or saved name
│   ├── InvalidSchema          not a JSON Schema
│   └── SchemaRefused          uses what cannot be honoured
├── ExtractionError            a document was read, but no valid result can be given
│   ├── UnfilledValue          nulls are forbidden and a required value was not found
│   └── InvalidOutput          the model's answer is cut off or not what was asked for; keeps the answer
├── WeightsError               a model checkpoint: missing, damaged, incomplete, of an unknown kind
├── EngineError                the extraction engine: unknown, not installed, failed
│   └── ShapeError             operands of an operation do not fit each other
└── ConfigError                an option or setting
"""

from __future__ import annotations


class PageliftError(Exception):
    """Base of all errors that pagelift raises on purpose. The message names the thing, what was found and the remedy."""


class DocumentError(PageliftError):
    """One document cannot be used."""


class DocumentNotFound(DocumentError):
    """The file does not exist or cannot be read."""


class UnsupportedDocument(DocumentError):
    """The content is not of a format that pagelift opens."""


class CorruptDocument(DocumentError):
    """The content is damaged, truncated or empty."""


class PasswordRequired(DocumentError):
    """The document is encrypted, and no password or a wrong one was given."""


class LimitExceeded(DocumentError):
    """The document is larger than a configured limit."""


class DocumentTimeout(DocumentError):
    """The document took longer than the configured time."""


class SchemaError(PageliftError):
    """The schema cannot be used."""


class SchemaNotFound(SchemaError):
    """No such schema file or saved schema name."""


class InvalidSchema(SchemaError):
    """The schema is not valid JSON or not a valid JSON Schema."""


class SchemaRefused(SchemaError):
    """The schema is valid but asks for something that cannot be honoured."""


class ExtractionError(PageliftError):
    """The document was read, but no valid result can be given."""


class UnfilledValue(ExtractionError):
    """Nulls are forbidden for a required value, and the document does not give it."""


class InvalidOutput(ExtractionError):
    """The model's answer is cut off or not what was asked for. raw: the answer as it came."""

    def __init__(self, message: str, raw: str = "") -> None:
        super().__init__(message)
        self.raw = raw


class WeightsError(PageliftError):
    """A model checkpoint is missing, damaged, incomplete, or of a kind that is not supported."""


class EngineError(PageliftError):
    """The extraction engine is unknown, not installed, or failed."""


class ShapeError(EngineError):
    """The operands of an operation do not fit each other."""


class ConfigError(PageliftError):
    """An option or setting is wrong."""
