"""/v1/schemas: the schema library, the same that `pagelift schema save` writes and that `schema` takes names of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from pagelift.core import SchemaNotFound
from pagelift.schema import check_schema, save_schema, saved_schemas
from pagelift.server.docs import CONFLICT, ERRORS, SAVED, SCHEMA_BODY
from pagelift.server.errors import ApiError

router = APIRouter(tags=["schemas"])
MAX_SCHEMAS = 10_000


@router.get("/v1/schemas", responses=ERRORS)
def list_schemas(request: Request) -> dict[str, Any]:
    """The names of all saved schemas."""
    return {"object": "list", "data": [{"name": name} for name in saved_schemas(_folder(request))]}


@router.get("/v1/schemas/{name}", responses=ERRORS)
def get_schema(request: Request, name: str) -> Response:
    """A saved schema, as it was given."""
    return Response(_find(request, name).read_bytes(), media_type="application/json")


@router.put("/v1/schemas/{name}", responses=ERRORS | SAVED | CONFLICT, openapi_extra=SCHEMA_BODY)
def put_schema(request: Request, name: str, schema: dict[str, Any]) -> Response:
    """Save a schema, which is checked first; an older one of that name is replaced. The reply says what becomes of each keyword."""
    report = check_schema(schema)
    saved = saved_schemas(_folder(request))
    if name not in saved and len(saved) >= MAX_SCHEMAS:
        raise ApiError(409, f"there are {len(saved)} schemas already; delete some", "name", "too_many")
    save_schema(name, schema, _folder(request))
    return JSONResponse({"name": name, "report": report.to_dict()}, 200 if name in saved else 201)


@router.delete("/v1/schemas/{name}", status_code=204, response_class=Response, responses=ERRORS)
def delete_schema(request: Request, name: str) -> Response:
    """Delete a saved schema."""
    _find(request, name).unlink(missing_ok=True)
    return Response(status_code=204)


def _folder(request: Request) -> Path | None:
    folder: Path | None = request.app.state.service.settings.schema_folder
    return folder


def _find(request: Request, name: str) -> Path:
    """Names are looked up, never made into paths."""
    file = saved_schemas(_folder(request)).get(name)
    if file is None:
        raise SchemaNotFound(f"there is no saved schema {name[:100]!r}; see /v1/schemas")
    return file
