"""Jobs: over HTTP, and that none is lost or done twice, whatever ends the server."""

from __future__ import annotations

import json
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from pagelift import ConfigError
from pagelift.core import Proposal
from pagelift.server.job_store import JobStore
from pagelift.server.settings import Access, JobSettings, ServerSettings
from server.running import DATA, SCHEMA, Running, running

OPTIONS = {"schema": SCHEMA, "evidence": True}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    with running(ServerSettings(jobs=JobSettings(tmp_path / "jobs.sqlite", waiting=5))) as server:
        yield server


def submit(client: httpx.Client, content: bytes, **fields: Any) -> httpx.Response:
    given = {"schema": json.dumps(SCHEMA)} | fields
    return client.post("/v1/extract/jobs", files={"document": ("invoice.pdf", content)}, data=given)


def wait_for(client: httpx.Client, job: str, *states: str) -> dict[str, Any]:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        found: dict[str, Any] = client.get(f"/v1/extract/jobs/{job}").json()
        if found["state"] in states:
            return found
        time.sleep(0.01)
    pytest.fail(f"the job is {found}")


def test_a_job_gives_what_a_request_gives(server: Running, pdf: Callable[..., bytes]) -> None:
    content = pdf(["Invoice number: A-17"], ["Total: 1,234.50 EUR"])
    with server.http() as client:
        made = submit(client, content)
        assert made.status_code == 202
        job = made.json()
        assert made.headers["location"] == f"/v1/extract/jobs/{job['id']}"
        done = wait_for(client, job["id"], "done", "failed")
        assert (done["state"], done["progress"], done["attempts"]) == ("done", {"done": 2, "total": 2}, 1)
        result = client.get(f"/v1/extract/jobs/{job['id']}/result").json()
        assert result["data"] == DATA
        assert result["evidence"]["/total"]["page"] == 2
        assert [found["id"] for found in client.get("/v1/extract/jobs").json()["data"]] == [job["id"]]
        assert client.post(f"/v1/extract/jobs/{job['id']}/cancel").status_code == 409
        assert client.delete(f"/v1/extract/jobs/{job['id']}").status_code == 204
        assert client.get(f"/v1/extract/jobs/{job['id']}").status_code == 404
        assert 'pagelift_jobs{state="done"}' in client.get("/metrics").text


def test_a_failed_job_tells_its_error_with_its_status(server: Running) -> None:
    with server.http() as client:
        job = submit(client, b"%PDF-1.7 broken").json()["id"]
        failed = wait_for(client, job, "failed")
        assert failed["error"]["code"] == "document_error"
        result = client.get(f"/v1/extract/jobs/{job}/result")
        assert (result.status_code, result.json()["error"]["code"]) == (422, "document_error")


def test_what_is_wrong_with_the_request_is_told_at_once(server: Running, invoice: bytes) -> None:
    with server.http() as client:
        assert submit(client, invoice, schema='{"type": 5}').status_code == 400
        assert submit(client, invoice, stream="true").json()["error"]["param"] == "stream"
        assert submit(client, invoice, model="other").status_code == 404
        assert client.get("/v1/extract/jobs/none").status_code == 404
        assert client.get("/v1/extract/jobs?limit=0").json()["error"]["param"] == "limit"
        assert client.get("/v1/extract/jobs?state=odd").json()["error"]["param"] == "state"


class SlowEngine:
    """Waits at the second page until it is told to go on."""

    name = "slow"

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.calls = 0

    def extract(self, pages: Any, schema: Any, options: Any) -> Proposal:  # noqa: ARG002
        self.calls += 1
        for page in pages:
            _ = page.content
            if page.number == 2:
                self.go_on.wait(20)
        return Proposal({"invoice_number": "slow"})


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[tuple[Running, SlowEngine]]:
    engine = SlowEngine()
    with running(ServerSettings(jobs=JobSettings(tmp_path / "jobs.sqlite", waiting=2)), [engine]) as server:
        yield server, engine
        engine.go_on.set()


def test_progress_cancelling_and_a_full_queue(slow: tuple[Running, SlowEngine], pdf: Callable[..., bytes]) -> None:
    server, engine = slow
    content = pdf(["a"], ["b"], ["c"])
    with server.http() as client:
        first = submit(client, content).json()["id"]
        wait_for(client, first, "running")
        while (progress := client.get(f"/v1/extract/jobs/{first}").json()["progress"])["done"] < 2:
            time.sleep(0.01)
        assert progress == {"done": 2, "total": 3}
        assert client.get(f"/v1/extract/jobs/{first}/result").json()["error"]["code"] == "job_running"
        waiting = [submit(client, content).json()["id"] for _ in range(2)]
        full = submit(client, content)
        assert (full.status_code, full.json()["error"]["code"]) == (429, "queue_full")
        assert int(full.headers["retry-after"]) >= 1
        assert client.post(f"/v1/extract/jobs/{waiting[0]}/cancel").json()["state"] == "cancelled"
        assert client.post(f"/v1/extract/jobs/{first}/cancel").json()["state"] == "cancelled"
        assert client.get(f"/v1/extract/jobs/{first}/result").json()["error"]["code"] == "job_cancelled"
        assert client.delete(f"/v1/extract/jobs/{waiting[1]}").status_code in (204, 404)
        engine.go_on.set()
        assert wait_for(client, first, "cancelled")["state"] == "cancelled"


def test_each_key_sees_its_own_jobs(tmp_path: Path, invoice: bytes) -> None:
    settings = ServerSettings(Access(("first-key", "second-key")), jobs=JobSettings(tmp_path / "jobs.sqlite"))
    with running(settings) as server, server.http() as client:
        mine, other = ({"authorization": f"Bearer {key}-key"} for key in ("first", "second"))
        files = {"document": ("a.pdf", invoice)}
        job = client.post("/v1/extract/jobs", files=files, data={"schema": json.dumps(SCHEMA)}, headers=mine).json()["id"]
        assert client.get("/v1/extract/jobs", headers=other).json()["data"] == []
        for path in (f"/v1/extract/jobs/{job}", f"/v1/extract/jobs/{job}/result"):
            assert client.get(path, headers=other).status_code == 404
        assert client.delete(f"/v1/extract/jobs/{job}", headers=other).status_code == 404
        assert client.get(f"/v1/extract/jobs/{job}", headers=mine).status_code == 200


def test_only_one_server_has_a_file(tmp_path: Path) -> None:
    settings = JobSettings(tmp_path / "jobs.sqlite")
    store = JobStore(settings, tmp_path / "jobs.sqlite")
    code = (
        "from pathlib import Path; from pagelift.server.job_store import JobStore; from pagelift.server.settings import JobSettings\n"
        f"JobStore(JobSettings(), Path({str(tmp_path / 'jobs.sqlite')!r}))"
    )
    second = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "belong to a server that is running" in second.stderr
    store.close()
    (tmp_path / "text").write_text("not a database at all, and long enough to be sure of it" * 20)
    with pytest.raises(ConfigError, match="cannot be used for jobs"):
        JobStore(settings, tmp_path / "text")


def test_a_job_is_claimed_once_by_many_workers(tmp_path: Path) -> None:
    store = JobStore(JobSettings(waiting=100), tmp_path / "jobs.sqlite")
    made = [store.add("", "a", OPTIONS, b"x") for _ in range(40)]
    claimed: list[str] = []

    def work() -> None:
        while (job := store.claim()) is not None:
            claimed.append(job.id)
            assert store.finish(job, b"{}", 1)
            assert not store.finish(job, b"{}", 1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(claimed) == sorted(job.id for job in made if job)
    assert store.counts()["done"] == 40
    store.close()


def test_a_restart_resumes_and_gives_up_in_the_end(tmp_path: Path) -> None:
    settings = JobSettings(attempts=2)
    for attempt in (1, 2):
        store = JobStore(settings, tmp_path / "jobs.sqlite")
        if attempt == 1:
            made = store.add("", "a", OPTIONS, b"x")
        job = store.claim()
        assert job
        assert job.attempt == attempt
        store.close()  # as if killed: the job is still running in the file
    store = JobStore(settings, tmp_path / "jobs.sqlite")
    assert made
    failed = store.find("", made.id)
    assert failed
    assert failed.error
    assert (failed.state, failed.error["body"]["error"]["code"]) == ("failed", "interrupted")
    assert not store.finish(job, b"late", 1)
    store.close()


def test_a_released_job_keeps_its_attempts_and_an_old_attempt_cannot_end_it(tmp_path: Path) -> None:
    store = JobStore(JobSettings(), tmp_path / "jobs.sqlite")
    store.add("", "a", OPTIONS, b"x")
    first = store.claim()
    assert first
    store.release(first)
    again = store.claim()
    assert again == first
    store.close()


def test_old_and_too_many_results_are_forgotten(tmp_path: Path) -> None:
    store = JobStore(JobSettings(keep_count=2, keep_seconds=100), tmp_path / "jobs.sqlite")
    for _ in range(4):
        store.add("", "a", OPTIONS, b"x")
        job = store.claim()
        assert job
        store.finish(job, b"{}", 1)
    assert store.purge() == 2
    assert store.counts()["done"] == 2
    store.close()
    store = JobStore(JobSettings(keep_seconds=1e-9), tmp_path / "jobs.sqlite")
    assert store.purge() == 2
    store.close()


def test_documents_are_not_kept_after_the_end(tmp_path: Path) -> None:
    store = JobStore(JobSettings(), tmp_path / "jobs.sqlite")
    store.add("", "a", OPTIONS | {"password": "secret-word"}, b"the-document")
    job = store.claim()
    assert job
    store.finish(job, b"{}", 1)
    store.close()
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"the-document" not in content
    assert b"secret-word" not in content
    assert (tmp_path / "jobs.sqlite").stat().st_mode & 0o077 == 0


SERVER = """
import sys, time
from pathlib import Path
from pagelift.core import Proposal
from pagelift.server.catalog import Catalog
from pagelift.server.run import serve
from pagelift.server.service import Service
from pagelift.server.settings import Address, JobSettings, ServerSettings, ServiceLimits
folder, port = Path(sys.argv[1]), int(sys.argv[2])
class Engine:
    name = "slow"
    def extract(self, pages, schema, options):
        pages = [page.content for page in pages]
        (folder / "begun").touch()
        time.sleep(60)
        return Proposal({})
settings = ServerSettings(limits=ServiceLimits(drain_seconds=0.3), jobs=JobSettings(folder / "jobs.sqlite"))
sys.exit(serve(Service(settings, Catalog([Engine()])), Address(port=port)))
"""


def start_server(folder: Path, port: int) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(folder), str(port)], stderr=subprocess.DEVNULL)
    for _ in range(1500):
        try:
            httpx.get(f"http://127.0.0.1:{port}/health")
            return process
        except httpx.TransportError:
            assert process.poll() is None
            time.sleep(0.01)
    pytest.fail("the server does not answer")


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def begin_two_jobs(folder: Path, port: int, content: bytes) -> tuple[subprocess.Popen[bytes], str, str]:
    """A server that works on the first job and will not end it."""
    process = start_server(folder, port)
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=10) as client:
        jobs = [submit(client, content).json()["id"] for _ in range(2)]
        while not (folder / "begun").exists():
            time.sleep(0.01)
    return process, jobs[0], jobs[1]


def test_jobs_survive_a_killed_server_and_are_done_once(tmp_path: Path, port: int, invoice: bytes) -> None:
    process, job, waiting = begin_two_jobs(tmp_path, port, invoice)
    process.kill()
    process.wait()
    engine = SlowEngine()
    engine.go_on.set()
    with running(ServerSettings(jobs=JobSettings(tmp_path / "jobs.sqlite")), [engine]) as server, server.http() as client:
        done = wait_for(client, job, "done", "failed")
        assert (done["state"], done["attempts"]) == ("done", 2)
        assert client.get(f"/v1/extract/jobs/{job}/result").json()["data"]["invoice_number"] == "slow"
        assert wait_for(client, waiting, "done")["attempts"] == 1
        assert len(client.get("/v1/extract/jobs").json()["data"]) == 2
    assert engine.calls == 2
    with sqlite3.connect(tmp_path / "jobs.sqlite") as database:
        assert database.execute("SELECT count(*) FROM jobs WHERE result IS NOT NULL").fetchone() == (2,)


def test_a_server_that_is_told_to_stop_gives_its_jobs_back(tmp_path: Path, port: int, invoice: bytes) -> None:
    process, job, waiting = begin_two_jobs(tmp_path, port, invoice)
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0
    store = JobStore(JobSettings(), tmp_path / "jobs.sqlite")
    found = [store.find("", identity) for identity in (job, waiting)]
    assert [(record.state, record.attempts) for record in found if record] == [("queued", 0)] * 2
    store.close()
