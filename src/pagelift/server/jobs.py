"""The workers of the jobs: claim one, extract, keep the result."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from pagelift.core import Extraction
from pagelift.server.attachments import Attachment
from pagelift.server.errors import Cancelled, TimeOver, to_api_error
from pagelift.server.extract_types import ExtractOptions
from pagelift.server.extraction import Happening, extract
from pagelift.server.job_store import Claimed, JobStore
from pagelift.server.logs import event, failure
from pagelift.server.settings import JobSettings
from pagelift.server.wire import to_json
from pagelift.server.work import Lane, Signal

if TYPE_CHECKING:
    from pagelift.server.service import Service

PURGE_SECONDS = 60.0


@dataclass(slots=True)
class Progress:
    """Of a running job, in pages; it begins anew when the job does."""

    signal: Signal = field(default_factory=Signal)
    done: int = 0
    total: int | None = None

    def observe(self, happening: Happening) -> None:
        if happening["type"] == "pages":
            self.done, self.total = happening["done"], happening["total"]


class Jobs:
    """The jobs of one server."""

    def __init__(self, settings: JobSettings, store: JobStore) -> None:
        self.settings = settings
        self.store = store
        self.lane = Lane("jobs", settings.workers, settings.workers)
        self.running: dict[str, Progress] = {}
        self._more = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, service: Service) -> None:
        """Begin to work, in the event loop of the server."""
        self._more.set()
        self._tasks = [asyncio.create_task(self._work(service)) for _ in range(self.settings.workers)]
        self._tasks.append(asyncio.create_task(self._purge()))

    async def stop(self) -> None:
        """End the workers; jobs in progress wait for the next start."""
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self.store.close()

    def wake(self) -> None:
        """A job was added."""
        self._more.set()

    def cancel(self, owner: str, identity: str) -> bool:
        """Give up a job, also a running one. Called from any thread."""
        cancelled = self.store.cancel(owner, identity)
        progress = self.running.get(identity)
        if cancelled and progress is not None:
            progress.signal.set(Cancelled("the job was cancelled"))
        return cancelled

    async def _work(self, service: Service) -> None:
        while True:
            await self._more.wait()
            claimed = None if service.draining else await asyncio.to_thread(self.store.claim)
            if claimed is None:
                self._more.clear()
                if not service.draining and (await asyncio.to_thread(self.store.counts))["queued"]:
                    self._more.set()  # added between the claim and the clearing
                continue
            await self._run(service, claimed)

    async def _run(self, service: Service, job: Claimed) -> None:
        progress = self.running[job.id] = Progress()
        service.signals.add(progress.signal)
        limit = TimeOver(f"the job took longer than {self.settings.seconds:g} s, the limit of this server; give fewer pages")
        timer = asyncio.get_running_loop().call_later(self.settings.seconds, progress.signal.set, limit)
        ending: Callable[[], object] = partial(self.store.release, job)
        try:
            ending = await self._ending(service, job, progress)
        finally:
            timer.cancel()
            progress.signal.set(Cancelled("the job is over"))
            await asyncio.shield(asyncio.to_thread(ending))
            service.signals.discard(progress.signal)
            del self.running[job.id]

    async def _ending(self, service: Service, job: Claimed, progress: Progress) -> Callable[[], object]:
        """Work on a job; what to write down about it. One that was cancelled has ended in the store already, so releasing does nothing."""
        try:
            result = await self.lane.run(partial(_extract, service, job, progress), progress.signal)
        except Cancelled:
            event("job", job=job.id, state="given up", attempt=job.attempt)
            return partial(self.store.release, job)
        except Exception as error:  # noqa: BLE001  the boundary of a job
            answer = to_api_error(error)
            if answer.status == 500:
                failure("job failed", error, job=job.id)
            event("job", job=job.id, state="failed", code=answer.error.code, attempt=job.attempt)
            return partial(self.store.fail, job, answer.status, answer.body)
        event("job", job=job.id, state="done", pages=result.pages, attempt=job.attempt)
        return partial(self.store.finish, job, to_json(result.to_dict(job.options["evidence"])), result.pages)

    async def _purge(self) -> None:
        while True:
            await asyncio.to_thread(self.store.purge)
            await asyncio.sleep(PURGE_SECONDS)


def _extract(service: Service, job: Claimed, progress: Progress) -> Extraction:
    options = ExtractOptions.model_validate(job.options)
    order = options.order(Attachment(job.document, job.filename, "document"), service.catalog, service.settings)
    result = extract(order, progress.signal, progress.observe, service.finished(order))
    service.metrics.pages.labels(order.served.id).inc(result.pages)
    return result
