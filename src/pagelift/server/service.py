"""What all requests share: settings, the models, the queues, the counters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING

from pagelift.server.catalog import Catalog, Served
from pagelift.server.errors import ApiError, Cancelled, busy
from pagelift.server.extraction import Order
from pagelift.server.job_store import JobStore
from pagelift.server.jobs import Jobs
from pagelift.server.memory import give_back_regularly
from pagelift.server.metrics import Metrics
from pagelift.server.settings import ServerSettings
from pagelift.server.work import Lane, Receive, Signal, watched

if TYPE_CHECKING:
    from pagelift.runtime import Generation


class Service:
    """One running server. draining: takes no new work. engines, models: the queues of extraction and of generation."""

    def __init__(self, settings: ServerSettings, catalog: Catalog) -> None:
        limits = settings.limits
        self.settings = settings
        self.catalog = catalog
        self.draining = False
        self.signals: set[Signal] = set()
        self.held_bytes = 0
        self.engines = Lane("extraction", limits.engine_threads(), limits.waiting)
        self.models = Lane("generation", limits.model_threads(), limits.waiting)
        self.jobs = Jobs(settings.jobs, JobStore(settings.jobs, settings.jobs.file)) if settings.jobs.file else None
        lanes = (self.engines, self.models, *([self.jobs.lane] if self.jobs else []))
        jobs = self.jobs.store.counts if self.jobs else dict
        self.metrics = Metrics(lanes, {model.id: model.loaded for model in catalog.models.values() if model.loaded}, jobs)

    def watched(self, receive: Receive) -> AbstractAsyncContextManager[Signal]:
        """The signal of one request; see `work.watched`."""
        return watched(receive, self.settings.limits.request_seconds, self.signals)

    def lane(self, served: Served) -> Lane:
        """Where extraction waits its turn: the built-in engine takes a core, others wait for a model, here or elsewhere."""
        return self.engines if served.engine.name == "layout" else self.models

    def finished(self, order: Order) -> Callable[[Generation], None]:
        """Counts the answers that a model gives during an extraction."""
        return lambda generation: self.metrics.answered(order.served.id, generation.finish_reason, generation.metadata)

    def check_body(self, size: int) -> None:
        """Raises ApiError 413."""
        most = self.settings.limits.body_bytes
        if size > most:
            raise ApiError(413, f"the body of the request is larger than {most} bytes, the limit of this server", code="limit_exceeded")

    def hold(self, size: int) -> None:
        """Count bytes of a body that is being received, until they are given back as a negative size. Raises ApiError 429."""
        self.held_bytes += size
        if size > 0 and self.held_bytes > self.settings.limits.held_bytes:
            raise busy("memory", self.engines.retry_after_s)

    @property
    def busy(self) -> bool:
        """Whether any request is being worked on."""
        return bool(self.signals)

    def stop(self) -> None:
        """End all work that is in progress."""
        for signal in list(self.signals):
            signal.set(Cancelled("the server is shutting down; try again"))

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Around the whole run of the server; jobs are worked on meanwhile."""
        if self.jobs:
            self.jobs.start(self)
        trimming = asyncio.create_task(give_back_regularly())
        try:
            yield
        finally:
            trimming.cancel()
            self.stop()
            if self.jobs:
                await self.jobs.stop()
