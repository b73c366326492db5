"""The application: routes, errors, and what stands before them."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse

from pagelift.core import PageliftError
from pagelift.server import chat, health, job_routes, native, responses, schema_routes
from pagelift.server.errors import ApiError, to_api_error, validation_error
from pagelift.server.guard import Guard
from pagelift.server.logs import failure
from pagelift.server.service import Service

ABOUT = """\
Documents to JSON that conforms to a JSON Schema, with the place on the page where each value was read.

Pages count from 1. Boxes are page points from the top left corner of the page: `[x0, top, x1, bottom]`."""


def create_app(service: Service) -> FastAPI:
    """The application over one service, whose lifespan it shares."""
    app = FastAPI(
        title="pagelift",
        version=service.settings.version,
        description=ABOUT,
        docs_url=None,
        redoc_url=None,
        lifespan=lambda _: service.lifespan(),
    )
    app.state.service = service
    for module in (chat, responses, native, job_routes, schema_routes, health):
        app.include_router(module.router)
    app.add_exception_handler(ApiError, _on_error)
    app.add_exception_handler(PageliftError, _on_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http_error)
    access = service.settings.access
    app.add_middleware(Guard, service=service)
    if access.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(access.cors_origins),
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=["x-request-id"],
        )
    return app


async def _on_error(request: Request, error: Exception) -> JSONResponse:
    answer = to_api_error(error)
    if answer.status == 500:
        failure("request failed", error, request=request.scope["state"]["id"])
    return JSONResponse(answer.body, answer.status, answer.headers)


async def _on_invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    return await _on_error(request, validation_error(list(error.errors())))


async def _on_http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    codes: dict[int, Any] = {404: "unknown_url", 405: "method_not_allowed"}
    answer = ApiError(error.status_code, str(error.detail), code=codes.get(error.status_code), headers=error.headers)
    return await _on_error(request, answer)
