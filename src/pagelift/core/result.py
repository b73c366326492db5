"""The result of an extraction: data, and for every value where it was read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pagelift.core.geometry import Box

if TYPE_CHECKING:
    from PIL.Image import Image

Status = Literal["found", "unverified", "absent", "unreadable", "not_attempted"]
"""found: read at the place given. unverified: a value that an engine gives without a place on the pages where it is printed.
absent: not in the document. unreadable: there, but not as the schema asks. not_attempted: not looked for."""
Json = Any
"""A JSON value: None, bool, int, float, str, list or dict."""

_NUMBERS = re.compile(r"\[\n\s+-?[\d.]+(,\n\s+-?[\d.]+)*\n\s+\]")  # boxes; a JSON string never holds a line break


@dataclass(frozen=True, slots=True)
class Field:
    """Evidence for one scalar of the result, or for an empty array.

    pointer: JSON Pointer (RFC 6901) into the data. value: as in the data. raw: as printed, None if not found.
    page: from 1. box: around all words of the value; boxes: one per line where the value runs over several lines.
    confidence: in [0, 1]; for a null, the confidence that the document does not state the value.
    reason: why the value is null, or what the value was derived from.
    """

    pointer: str
    value: Json
    status: Status
    raw: str | None = None
    page: int | None = None
    box: Box | None = None
    boxes: tuple[Box, ...] = ()
    confidence: float = 0.0
    reason: str = ""

    def to_dict(self) -> dict[str, Json]:
        return {
            "value": self.value,
            "raw": self.raw,
            "page": self.page,
            "box": self.box.as_list() if self.box else None,
            "boxes": [b.as_list() for b in self.boxes],
            "confidence": round(self.confidence, 4),
            "status": self.status,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Proposal:
    """What an engine read from a document, before it is brought into the shape of the schema.

    data: the JSON value, which may lack keys. fields: evidence keyed by JSON Pointer; values without an entry count as
    not attempted. warnings: for the user. metadata: engine-specific counts and timings.
    """

    data: Json
    fields: Mapping[str, Field] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    metadata: Mapping[str, Json] = field(default_factory=dict)


class PagePictures(Protocol):
    """Where the page pictures of a result come from; a `documents.Document` is one."""

    def image(self, page: int, dpi: float) -> Image: ...

    def size_pt(self, page: int) -> tuple[float, float]: ...


@dataclass(frozen=True, slots=True)
class Extraction:
    """Data that conforms to the schema, with evidence.

    data: the JSON value. fields: evidence keyed by JSON Pointer, in document order of the data.
    model: the schema's Pydantic model filled with the data, if the schema was given as one, else None.
    pages: number of pages that were read. metadata: engine-specific counts and timings.
    """

    data: Json
    fields: Mapping[str, Field]
    engine: str
    source: str = ""
    pages: int = 0
    warnings: tuple[str, ...] = ()
    metadata: Mapping[str, Json] = field(default_factory=dict)
    model: Any = None
    pictures: PagePictures | None = field(default=None, repr=False, compare=False)

    def to_dict(self, evidence: bool = True) -> dict[str, Json]:
        """The result as one JSON object: data, engine, source, pages, warnings, metadata and, if asked for, evidence."""
        out: dict[str, Json] = {"data": self.data}
        if evidence:
            out["evidence"] = {pointer: f.to_dict() for pointer, f in self.fields.items()}
        out |= {"source": self.source, "engine": self.engine, "pages": self.pages}
        out |= {"warnings": list(self.warnings), "metadata": dict(self.metadata)}
        return out

    def to_json(self, evidence: bool = True, indent: int | None = 2) -> str:
        text = json.dumps(self.to_dict(evidence), ensure_ascii=False, indent=indent)
        return _NUMBERS.sub(lambda match: " ".join(match[0].split()).replace("[ ", "[").replace(" ]", "]"), text)

    def annotate(self, folder: str | Path | None = None, dpi: float = 110) -> list[Image]:
        """Draw the boxes of all found fields on the page pictures.

        Returns one RGB picture per page that has a box; with `folder`, also writes them as
        <stem>-page-<n>.png. Raises EngineError when the result has no access to its document any more.
        """
        from pagelift.core.annotate import annotate

        return annotate(self, Path(folder) if folder is not None else None, dpi)
