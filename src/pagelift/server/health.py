"""/health, /ready, /metrics, and the page that describes the API, which loads nothing from elsewhere."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import JSONResponse, PlainTextResponse, Response

from pagelift.server.docs import ERRORS

router = APIRouter(tags=["operations"])
PAGE_HEADERS = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"}


@router.get("/health")
async def health(request: Request) -> dict[str, str]:
    """Whether the process answers at all."""
    return {"status": "ok", "version": request.app.state.service.settings.version}


@router.get("/ready", responses={503: {"description": "The server shuts down, or all its queues are full."}})
async def ready(request: Request) -> Response:
    """Whether new requests are welcome: 503 while the server shuts down or its queues are full."""
    service = request.app.state.service
    lanes = (service.engines, service.models)
    full = [lane.name for lane in lanes if lane.most_waiting and lane.waiting >= lane.most_waiting]
    status = "shutting down" if service.draining else "busy" if full else "ready"
    facts: dict[str, Any] = {"status": status, "models": list(service.catalog.models)}
    return JSONResponse(facts, 200 if status == "ready" else 503)


@router.get("/metrics", response_class=PlainTextResponse, responses=ERRORS)
async def metrics(request: Request) -> Response:
    """Counts and times for Prometheus."""
    return Response(request.app.state.service.metrics.text(), media_type=CONTENT_TYPE_LATEST)


@router.get("/docs", include_in_schema=False)
def page() -> Response:
    """The API for people to read."""
    return Response(files("pagelift.server").joinpath("page.html").read_bytes(), media_type="text/html", headers=PAGE_HEADERS)
