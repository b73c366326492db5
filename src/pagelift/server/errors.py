"""Errors as clients of the OpenAI API expect them: {"error": {"message", "type", "param", "code"}} with the right status.

Every status that a request can get:
400 wrong or unsupported parameter, 401 API key, 403 foreign web page, host, URL or path, 404 unknown path, model, schema or job,
405 method, 408 the request came too slowly, 409 a job's state, 413 too large, 415 not a document, 422 the document or schema cannot
be used, or time is over, 429 too many requests, 500 a fault of the server, 503 shutting down or not ready. In logs and metrics 499 stands
for a client that went away before its answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pydantic
from starlette.exceptions import HTTPException

from pagelift.core import errors as core
from pagelift.core.errors import PageliftError


class ErrorDetail(pydantic.BaseModel):
    """What went wrong. param: the parameter at fault. code: for programs."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorBody(pydantic.BaseModel):
    """The body of every reply with a status of 400 or more."""

    error: ErrorDetail


class ApiError(HTTPException):
    """An answer with an error status. It is an HTTPException because FastAPI hides all others that come while it reads a body."""

    def __init__(
        self, status: int, message: str, param: str | None = None, code: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, message, dict(headers or {}))
        self.status = status
        self.error = ErrorDetail(message=message, type=TYPES.get(status, "invalid_request_error"), param=param, code=code)

    @property
    def body(self) -> dict[str, Any]:
        return ErrorBody(error=self.error).model_dump()


class Cancelled(PageliftError):
    """The work was given up, by the client or because the server stops."""


class ClientGone(Cancelled):
    """The client went away."""


class TimeOver(PageliftError):
    """The request took longer than the server allows."""


TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "server_error",
    503: "server_error",
}

STATUSES: tuple[tuple[type[PageliftError], int, str], ...] = (
    (core.UnsupportedDocument, 415, "unsupported_document"),
    (core.LimitExceeded, 413, "limit_exceeded"),
    (core.PasswordRequired, 422, "password_required"),
    (core.DocumentTimeout, 422, "time_limit"),
    (core.DocumentError, 422, "document_error"),
    (core.SchemaNotFound, 404, "schema_not_found"),
    (core.InvalidSchema, 400, "invalid_schema"),
    (core.SchemaError, 422, "schema_refused"),
    (core.UnfilledValue, 422, "unfilled_value"),
    (core.ExtractionError, 422, "extraction_error"),
    (core.ConfigError, 400, "invalid_value"),
    (ClientGone, 499, "client_gone"),
    (Cancelled, 503, "cancelled"),
    (TimeOver, 422, "time_limit"),
)
"""Subclasses before their bases. What is not listed is a fault of the server."""


def to_api_error(error: Exception) -> ApiError:
    """Any exception as the answer to give; faults of the server say no more than that."""
    if isinstance(error, ApiError):
        return error
    for kind, status, code in STATUSES:
        if isinstance(error, kind):
            param = "schema" if isinstance(error, core.SchemaError) else None
            return ApiError(status, str(error), param, code)
    if isinstance(error, PageliftError):
        return ApiError(500, str(error), code="engine_error")
    return ApiError(500, "the server failed; its log has the details under this request's id", code="internal_error")


def validation_error(problems: Sequence[Any]) -> ApiError:
    """The first complaints of Pydantic as one error that names the parameter."""
    problems = [p for p in problems if not p["loc"] or p["loc"][-1] not in BRANCHES] or problems  # those of the branch that was meant
    messages = [_complaint(problem) for problem in problems[:3]]
    code = "unsupported_parameter" if problems[0]["type"] == "extra_forbidden" else "invalid_value"
    return ApiError(400, "; ".join(messages), parameter(problems[0]["loc"]) or None, code)


def _complaint(problem: Any) -> str:
    where = parameter(problem["loc"])
    kind = problem["type"]
    if kind == "extra_forbidden":
        return f"parameter {where} is not supported; leave it out"
    if kind == "json_invalid":
        return f"the body is not JSON: {problem.get('ctx', {}).get('error', problem['msg'])}"
    if kind == "model_attributes_type" and not where:
        return "the body must be a JSON object, with Content-Type: application/json"
    if kind == "missing":
        return f"parameter {where} is missing" if where else "the body is missing"
    return f"{where}: {problem['msg']}" if where else str(problem["msg"])


BRANCHES = ("str", "constrained-str", "bool", "dict")
TAGS = ("text", "image_url", "file", "input_text", "output_text", "input_image", "input_file", "message")
"""Types of parts; Pydantic puts them into locations."""


def parameter(location: Sequence[Any]) -> str:
    """A Pydantic location as clients write it: messages.0.content. Branches and tags of unions are left out."""
    steps = list(location)
    if steps and steps[0] in ("body", "query", "path", "header"):
        steps = steps[1:]
    kept = []
    for place, step in enumerate(steps):
        before = next((s for s in reversed(steps[:place]) if "[" not in str(s)), None)
        tag = isinstance(before, int) and step in TAGS and place + 1 < len(steps)
        if not tag and "[" not in str(step) and not (step in BRANCHES and place):
            kept.append(str(step))
    return ".".join(kept)


def busy(what: str, retry_after_s: int) -> ApiError:
    """Too many requests."""
    message = f"too many requests are waiting for {what}; try again in {retry_after_s} s"
    return ApiError(429, message, code="queue_full", headers={"retry-after": str(retry_after_s)})
