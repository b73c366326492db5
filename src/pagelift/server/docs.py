"""What the OpenAPI page says beyond the types: statuses and examples."""

from __future__ import annotations

import base64
from typing import Any

from pagelift.server.errors import ErrorBody

_MEANINGS = {
    400: "A parameter is wrong or not supported; `param` names it.",
    401: "The API key is missing or wrong.",
    403: "A foreign web page or host, or a source of documents that is not allowed.",
    404: "There is no such model, schema, job or path.",
    405: "The path does not know this method.",
    408: "The body came too slowly.",
    413: "The body, the document or its pages are beyond the limits.",
    415: "The content is neither a PDF nor a picture.",
    422: "The document or schema cannot be used, no valid result can be given, or the time is over.",
    429: "Too many requests wait; see Retry-After.",
    500: "A fault of the server.",
    503: "The server shuts down.",
}
ERRORS: dict[int | str, dict[str, Any]] = {status: {"model": ErrorBody, "description": text} for status, text in _MEANINGS.items()}
STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The whole answer, or with `stream` server-sent events.",
        "content": {"application/json": {}, "text/event-stream": {}},
    }
}

SCHEMA = {"type": "object", "properties": {"invoice_number": {"type": ["string", "null"]}, "total": {"type": ["number", "null"]}}}


def _pdf() -> str:
    """An invoice of two lines as a data URI, so that the examples can be sent as they are."""
    shown = b"BT /F1 12 Tf 40 120 Td (Invoice number: A-17) Tj 0 -30 Td (Total: 1,234.50 EUR) Tj ET"
    objects = (
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 240 160]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(shown), shown),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    )
    file, places = b"%PDF-1.4\n", b""
    for number, content in enumerate(objects, 1):
        places += b"%010d 00000 n \n" % len(file)
        file += b"%d 0 obj%s endobj\n" % (number, content)
    end = b"xref\n0 6\n0000000000 65535 f \n%strailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (places, len(file))
    return "data:application/pdf;base64," + base64.b64encode(file + end).decode()


PDF = _pdf()


def _examples(summary: str, value: dict[str, Any]) -> dict[str, Any]:
    return {"requestBody": {"content": {"application/json": {"examples": {"invoice": {"summary": summary, "value": value}}}}}}


CHAT_EXAMPLES = _examples(
    "Read values from a PDF with the built-in engine",
    {
        "model": "layout",
        "messages": [{"role": "user", "content": [{"type": "file", "file": {"filename": "invoice.pdf", "file_data": PDF}}]}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "invoice", "schema": SCHEMA}},
    },
)
RESPONSES_EXAMPLES = _examples(
    "Read values from a PDF with the built-in engine",
    {
        "model": "layout",
        "input": [{"role": "user", "content": [{"type": "input_file", "filename": "invoice.pdf", "file_data": PDF}]}],
        "text": {"format": {"type": "json_schema", "name": "invoice", "schema": SCHEMA}},
    },
)

_RESULT = {
    "data": {"invoice_number": "A-17", "total": 1234.5},
    "evidence": {
        "/total": {
            "value": 1234.5,
            "raw": "1,234.50",
            "page": 1,
            "box": [70.3, 62.4, 118.4, 71.2],
            "boxes": [],
            "confidence": 0.98,
            "status": "found",
            "reason": "",
        }
    },
    "source": "invoice.pdf",
    "engine": "layout",
    "pages": 1,
    "warnings": [],
    "metadata": {"seconds": 0.05},
}
_RESULT_SCHEMA = {
    "type": "object",
    "required": ["data", "source", "engine", "pages", "warnings", "metadata"],
    "properties": {
        "data": {"description": "The JSON value, which conforms to the schema."},
        "evidence": {"type": "object", "description": "By JSON Pointer: value, raw, page, box, boxes, confidence, status, reason."},
        "source": {"type": "string"},
        "engine": {"type": "string"},
        "pages": {"type": "integer"},
        "warnings": {"type": "array", "items": {"type": "string"}},
        "metadata": {"type": "object"},
    },
}
RESULT = {"application/json": {"schema": _RESULT_SCHEMA, "example": _RESULT}}
EXTRACT: dict[int | str, dict[str, Any]] = {
    200: {"description": "The result, or with `stream` lines of JSON.", "content": {**RESULT, "application/x-ndjson": {}}}
}

CONFLICT: dict[int | str, dict[str, Any]] = {409: {"model": ErrorBody, "description": "The state of things does not allow this."}}
JOB_RESULT: dict[int | str, dict[str, Any]] = {
    200: {"description": "The result.", "content": RESULT},
    **CONFLICT,
}


def _extract_body() -> dict[str, Any]:
    from pagelift.server.extract_types import ExtractForm, ExtractRequest

    as_json, as_form = (kind.model_json_schema(by_alias=True) for kind in (ExtractRequest, ExtractForm))
    as_form["properties"]["document"] = {"type": "string", "format": "binary"}
    example = {"document": PDF, "filename": "invoice.pdf", "schema": SCHEMA}
    forms = {"application/json": {"schema": as_json, "example": example}, "multipart/form-data": {"schema": as_form}}
    return {"requestBody": {"required": True, "content": forms}}


EXTRACT_BODY = _extract_body()
SAVED: dict[int | str, dict[str, Any]] = {200: {"description": "Replaced."}, 201: {"description": "Saved."}}
SCHEMA_BODY: dict[str, Any] = {"requestBody": {"content": {"application/json": {"example": SCHEMA}}}}
