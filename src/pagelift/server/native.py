"""/v1/extract: one document, one schema, the whole result with evidence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from pagelift.core import Extraction
from pagelift.server.docs import ERRORS, EXTRACT, EXTRACT_BODY
from pagelift.server.extract_types import read_request
from pagelift.server.extraction import Happening, Order, extract
from pagelift.server.service import Service
from pagelift.server.streams import Streamed
from pagelift.server.wire import ndjson, to_json
from pagelift.server.work import Signal, in_loop

router = APIRouter(tags=["extraction"])


@router.post("/v1/extract", responses=ERRORS | EXTRACT, openapi_extra=EXTRACT_BODY)
async def extract_document(request: Request) -> Response:
    """Extract what a schema asks for from one PDF or image file: data, and for every value where it was read, or why there is none.

    With `stream` the reply is NDJSON: `{"type": "pages", "done", "total"}` as pages are read, `{"type": "value", "pointer", "value"}` as
    a model writes, `{"type": "field", "pointer", ...}` with the evidence of each value, last `{"type": "result", ...}` or `{"error"}`.
    """
    service: Service = request.app.state.service
    options, attachment = await read_request(request)
    order = await asyncio.to_thread(options.order, attachment, service.catalog, service.settings)
    request.scope["state"]["log"].update(model=order.served.id, stream=options.stream)
    if options.stream:
        lines = partial(_lines, service, order, options.evidence)
        return Streamed(service, lines, "application/x-ndjson", lambda error: ndjson(error.body))
    async with service.watched(request.receive) as signal:
        result = await service.lane(order.served).run(partial(extract, order, signal, _ignore, service.finished(order)), signal)
    request.scope["state"]["log"].update(pages=result.pages)
    service.metrics.pages.labels(order.served.id).inc(result.pages)
    return Response(to_json(result.to_dict(options.evidence)), media_type="application/json")


def _ignore(_: Happening) -> None:
    pass


async def _lines(service: Service, order: Order, evidence: bool, signal: Signal) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    happenings: asyncio.Queue[Happening | None] = asyncio.Queue()

    def observe(happening: Happening) -> None:
        in_loop(loop, partial(happenings.put_nowait, happening))

    work = asyncio.ensure_future(service.lane(order.served).run(partial(extract, order, signal, observe, service.finished(order)), signal))
    work.add_done_callback(lambda _: in_loop(loop, partial(happenings.put_nowait, None)))
    try:
        while (happening := await happenings.get()) is not None:
            yield ndjson(happening)
    finally:
        if not work.done():
            work.cancel()
    result = await work
    service.metrics.pages.labels(order.served.id).inc(result.pages)
    for line in _final_lines(result, evidence):
        yield ndjson(line)


def _final_lines(result: Extraction, evidence: bool) -> list[dict[str, Any]]:
    fields = [{"type": "field", "pointer": pointer, **field.to_dict()} for pointer, field in result.fields.items()]
    return [*fields, {"type": "result", **result.to_dict(evidence)}]
