"""/v1/extract/jobs: extraction of long documents, with progress, which a restart of the server does not lose."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import JSONResponse, Response

from pagelift.server.docs import CONFLICT, ERRORS, EXTRACT_BODY, JOB_RESULT
from pagelift.server.errors import ApiError, busy
from pagelift.server.extract_types import options_record, read_request
from pagelift.server.job_store import JobRecord, State
from pagelift.server.jobs import Jobs
from pagelift.server.service import Service

router = APIRouter(tags=["jobs"])
MOST_LISTED = 200


class PageProgress(BaseModel):
    """Pages read of a running or finished job. total: None before the document is open."""

    done: int
    total: int | None


class JobInfo(BaseModel):
    """A job. Times in Unix seconds. attempts: how often it was begun; more than once after a server did not survive it."""

    id: str
    object: Literal["extract.job"] = "extract.job"
    state: State
    created_at: float
    started_at: float | None
    finished_at: float | None
    filename: str
    attempts: int
    progress: PageProgress
    error: dict[str, Any] | None = Field(None, description="Of a failed job, as in the body of an error.")


class JobList(BaseModel):
    object: Literal["list"] = "list"
    data: list[JobInfo]


@router.post("/v1/extract/jobs", status_code=202, response_model=JobInfo, responses=ERRORS, openapi_extra=EXTRACT_BODY)
async def create_job(request: Request) -> Response:
    """Take on an extraction, which goes on without this connection. The body is that of /v1/extract, without `stream`."""
    service, jobs = _jobs(request)
    options, attachment = await read_request(request)
    if options.stream:
        raise ApiError(400, "stream is not supported for jobs; ask for their progress, or use /v1/extract", "stream")
    order = await asyncio.to_thread(options.order, attachment, service.catalog, service.settings)
    await asyncio.to_thread(order.check)
    limits = service.settings.limits.document
    content = await asyncio.to_thread(attachment.content, service.settings.access, limits)
    if not isinstance(content, bytes):
        content = await asyncio.to_thread(content.read_bytes)
    service.check_body(len(content))
    record = {**options_record(options), "schema": order.schema, "model": order.served.id}
    job = await asyncio.to_thread(jobs.store.add, _owner(request), attachment.name[:200], record, content)
    if job is None:
        raise busy("jobs", jobs.lane.retry_after_s)
    jobs.wake()
    request.scope["state"]["log"].update(job=job.id, model=order.served.id)
    return JSONResponse(_info(job, jobs).model_dump(), 202, {"location": f"/v1/extract/jobs/{job.id}"})


@router.get("/v1/extract/jobs", responses=ERRORS)
def list_jobs(
    request: Request,
    state: State | None = None,
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 50,
    after: Annotated[str | None, Query(max_length=100)] = None,
) -> JobList:
    """The jobs made with this API key, the newest first. after: the last id of the page before."""
    _, jobs = _jobs(request)
    return JobList(data=[_info(job, jobs) for job in jobs.store.recent(_owner(request), state, limit, after)])


@router.get("/v1/extract/jobs/{job_id}", responses=ERRORS)
def get_job(request: Request, job_id: str) -> JobInfo:
    """State and progress of a job."""
    _, jobs = _jobs(request)
    return _info(_find(request, job_id), jobs)


@router.get("/v1/extract/jobs/{job_id}/result", responses=ERRORS | JOB_RESULT)
def get_result(request: Request, job_id: str) -> Response:
    """The result of a finished job; the error of a failed one, with its status; 409 before that."""
    _, jobs = _jobs(request)
    job = _find(request, job_id)
    if job.error is not None:
        return JSONResponse(job.error["body"], job.error["status"])
    result = jobs.store.result(_owner(request), job_id) if job.state == "done" else None
    if result is None:
        headers = {"retry-after": "2"} if job.state in ("queued", "running") else {}
        raise ApiError(409, f"the job is {job.state}; there is no result", code=f"job_{job.state}", headers=headers)
    return Response(result, media_type="application/json")


@router.post("/v1/extract/jobs/{job_id}/cancel", responses=ERRORS | CONFLICT)
def cancel_job(request: Request, job_id: str) -> JobInfo:
    """Give up a job that is not finished; 409 when it is."""
    _, jobs = _jobs(request)
    if not jobs.cancel(_owner(request), job_id):
        raise ApiError(409, f"the job is {_find(request, job_id).state} already", code="job_finished")
    return _info(_find(request, job_id), jobs)


@router.delete("/v1/extract/jobs/{job_id}", status_code=204, response_class=Response, responses=ERRORS)
def delete_job(request: Request, job_id: str) -> Response:
    """Forget a job and its result; one that is not finished is given up first."""
    _, jobs = _jobs(request)
    owner = _owner(request)
    jobs.cancel(owner, job_id)
    if not jobs.store.delete(owner, job_id):
        _find(request, job_id)
    return Response(status_code=204)


def _jobs(request: Request) -> tuple[Service, Jobs]:
    service: Service = request.app.state.service
    if service.jobs is None:
        raise ApiError(404, "this server takes no jobs; it needs a file for them (--jobs-file)", code="jobs_disabled")
    return service, service.jobs


def _owner(request: Request) -> str:
    """Whose jobs: each API key sees its own."""
    return str(request.scope.get("pagelift.owner", ""))


def _find(request: Request, job_id: str) -> JobRecord:
    job = _jobs(request)[1].store.find(_owner(request), job_id)
    if job is None:
        raise ApiError(404, f"there is no job {job_id[:100]!r}", "job_id", "job_not_found")
    return job


def _info(job: JobRecord, jobs: Jobs) -> JobInfo:
    running = jobs.running.get(job.id)
    if job.pages is not None:
        progress = PageProgress(done=job.pages, total=job.pages)
    else:
        progress = PageProgress(done=running.done if running else 0, total=running.total if running else None)
    error = job.error["body"]["error"] if job.error else None
    return JobInfo(
        id=job.id, state=job.state, created_at=job.created, started_at=job.started, finished_at=job.finished, filename=job.filename,
        attempts=job.attempts, progress=progress, error=error,
    )  # fmt: skip
