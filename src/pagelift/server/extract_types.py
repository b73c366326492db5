"""Requests to /v1/extract, as JSON or as a form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request

from pagelift.core import SchemaNotFound
from pagelift.schema import saved_schemas
from pagelift.schema.source import parse
from pagelift.server.attachments import Attachment, Reading
from pagelift.server.catalog import Catalog
from pagelift.server.chat_types import Strict
from pagelift.server.errors import ApiError, validation_error
from pagelift.server.extraction import Order
from pagelift.server.settings import ServerSettings

MAX_FIELDS = 32
MAX_FIELD_BYTES = 4 * 1024 * 1024


class ExtractOptions(Strict):
    """What both forms of the request have.

    schema: a JSON Schema or the name of a saved one. model: what reads the values, default the server's. nulls: whether every value may
    come back null, or only those whose schema says so. stream: lines of JSON as values are decided, then the result.
    """

    json_schema: dict[str, Any] | bool | str = Field(alias="schema")
    model: str = "auto"
    pages: str | None = Field(None, description="Such as 1-3,7,12-.", max_length=10_000)
    password: str | None = Field(None, max_length=1000)
    ocr: Literal["auto", "never", "always"] = "auto"
    nulls: Literal["allowed", "declared"] = "allowed"
    strict: bool = Field(False, description="Refuse a schema with constraints that cannot be enforced.")
    evidence: bool = Field(True, description="Where each value was read.")
    stream: bool = False

    def order(self, attachment: Attachment, catalog: Catalog, settings: ServerSettings) -> Order:
        """The work to do. Raises ApiError 404, SchemaError."""
        reading = Reading(settings.limits, settings.access, self.ocr, self.pages, self.password)
        schema = find_schema(self.json_schema, settings.schema_folder)
        return Order(catalog.find(self.model), schema, (attachment,), reading, self.nulls, self.strict)


class ExtractRequest(ExtractOptions):
    """document: a PDF or image file as base64 or data URI; a URL only where the server allows it."""

    document: str = Field(min_length=1)
    filename: str | None = Field(None, max_length=1000)


class ExtractForm(ExtractOptions):
    """document: a PDF or image file. schema: JSON or a saved name, as a field or a file."""

    json_schema: str = Field(alias="schema")
    document: bytes


def find_schema(given: Any, folder: Path | None) -> Any:
    """A schema document: as it is, from JSON text, or by its saved name; never from a path. Raises SchemaNotFound, InvalidSchema."""
    if not isinstance(given, str):
        return given
    if given.lstrip().startswith("{") or given.strip() in ("true", "false"):
        return parse(given, "the schema")
    file = saved_schemas(folder).get(given)
    if file is None:
        raise SchemaNotFound(f"there is no saved schema {given[:100]!r}; see /v1/schemas, or give the schema itself as JSON")
    return parse(file.read_text(encoding="utf-8-sig"), f"the saved schema {given}")


async def read_request(request: Request) -> tuple[ExtractOptions, Attachment]:
    """The options and the document of a request in either form. Raises ApiError."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        async with request.form(max_files=2, max_fields=MAX_FIELDS, max_part_size=MAX_FIELD_BYTES) as form:
            return await _from_form(form)
    if kind not in ("application/json", ""):
        raise ApiError(400, f"the body is {kind[:100]}; send application/json or multipart/form-data", "content-type")
    body = _validated(ExtractRequest, _parse(await request.body()))
    return body, Attachment(body.document, body.filename or "document", "document")


def _parse(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ApiError(400, f"the body is not JSON: {error}") from error


async def _from_form(form: FormData) -> tuple[ExtractOptions, Attachment]:
    fields: dict[str, Any] = {}
    for name, value in form.multi_items():
        if name in fields:
            raise ApiError(400, f"parameter {name[:100]} is given twice", name[:100])
        fields[name] = value
    document = fields.pop("document", None)
    if not isinstance(document, UploadFile):
        raise ApiError(400, "parameter document is missing; send it as a file of the form", "document")
    if isinstance(uploaded := fields.get("schema"), UploadFile):
        fields["schema"] = _text(await uploaded.read(MAX_FIELD_BYTES), "schema")
    if wrong := next((name for name, value in fields.items() if isinstance(value, UploadFile)), None):
        raise ApiError(400, f"parameter {wrong[:100]} is a file; only document and schema may be", wrong[:100])
    options = _validated(ExtractOptions, fields)
    return options, Attachment(await document.read(), document.filename or "document", "document")


def _text(content: bytes, param: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ApiError(400, f"{param} is not UTF-8 text (byte {error.start})", param) from error


def _validated(kind: Any, values: Any) -> Any:
    from pydantic import ValidationError

    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise validation_error(error.errors()) from error


def options_record(options: ExtractOptions) -> Mapping[str, Any]:
    """The options as a job keeps them."""
    return options.model_dump(by_alias=True, exclude={"document", "filename", "stream"})
