"""Jobs in a SQLite file: nothing that was accepted is lost, whatever ends the process.

One server at a time has the file: it holds SQLite's exclusive lock, which the system takes back when the process ends, also when it is
killed. States: queued, running, then one of done, failed, cancelled. Every change of state names the state before, so that it happens once.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pagelift.core import ConfigError
from pagelift.core.files import make_folder
from pagelift.server.errors import ApiError
from pagelift.server.settings import JobSettings

State = Literal["queued", "running", "done", "failed", "cancelled"]
STATES: tuple[State, ...] = ("queued", "running", "done", "failed", "cancelled")
_TABLE = """
CREATE TABLE IF NOT EXISTS jobs (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, owner TEXT NOT NULL, state TEXT NOT NULL,
    created REAL NOT NULL, started REAL, finished REAL, attempts INTEGER NOT NULL DEFAULT 0,
    filename TEXT NOT NULL, options TEXT, document BLOB, result BLOB, error TEXT, pages INTEGER
);
CREATE INDEX IF NOT EXISTS jobs_by_state ON jobs (state, number);
CREATE INDEX IF NOT EXISTS jobs_by_end ON jobs (finished);
"""
_FACTS = "id, state, created, started, finished, attempts, filename, error, pages"
_ENDED = "('done', 'failed', 'cancelled')"


@dataclass(frozen=True, slots=True)
class JobRecord:
    """What is known of a job. Times in Unix seconds. error: {"status", "body"} of a failed one. pages: read, when it is done."""

    id: str
    state: State
    created: float
    started: float | None
    finished: float | None
    attempts: int
    filename: str
    error: dict[str, Any] | None
    pages: int | None


@dataclass(frozen=True, slots=True)
class Claimed:
    """A job to work on. attempt: from 1; only this attempt may end the job."""

    id: str
    attempt: int
    filename: str
    options: dict[str, Any]
    document: bytes


class JobStore:
    """Safe to use from several threads. Raises ConfigError when the file cannot be used."""

    def __init__(self, settings: JobSettings, file: Path) -> None:
        self._settings = settings
        self._file = file
        self._lock = threading.Lock()
        make_folder(file.parent)
        file.touch(mode=0o600, exist_ok=True)
        self._database = self._open()

    def _open(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._file, timeout=0.5, isolation_level=None, check_same_thread=False)
        try:
            for pragma in ("locking_mode=EXCLUSIVE", "auto_vacuum=INCREMENTAL", "journal_mode=WAL", "synchronous=FULL", "secure_delete=ON"):
                database.execute(f"PRAGMA {pragma}").fetchall()
            database.executescript(f"BEGIN EXCLUSIVE;{_TABLE}COMMIT;")
            self._resume(database)
        except sqlite3.Error as error:
            database.close()
            if "locked" in str(error):
                raise ConfigError(f"the jobs in {self._file} belong to a server that is running; give another --jobs-file") from error
            raise ConfigError(f"{self._file} cannot be used for jobs ({error}); give another --jobs-file") from error
        return database

    def _resume(self, database: sqlite3.Connection) -> None:
        """Jobs that ran when the last server ended wait again, or fail when that happened too often."""
        often = ApiError(422, f"the server ended each of {self._settings.attempts} times it worked on this job", code="interrupted")
        with _transaction(database):
            database.execute(
                "UPDATE jobs SET state = 'failed', finished = ?, error = ?, document = NULL, options = NULL "
                "WHERE state = 'running' AND attempts >= ?",
                (time.time(), json.dumps({"status": often.status, "body": often.body}), self._settings.attempts),
            )
            database.execute("UPDATE jobs SET state = 'queued' WHERE state = 'running'")

    def add(self, owner: str, filename: str, options: Mapping[str, Any], document: bytes) -> JobRecord | None:
        """A new job that waits; on the disk when this returns. None when too many wait."""
        with self._change() as database:
            waiting = database.execute("SELECT count(*) FROM jobs WHERE state = 'queued'").fetchone()[0]
            if waiting >= self._settings.waiting:
                return None
            identity = "job_" + secrets.token_hex(16)
            database.execute(
                "INSERT INTO jobs (id, owner, state, created, filename, options, document) VALUES (?, ?, 'queued', ?, ?, ?, ?)",
                (identity, owner, time.time(), filename, json.dumps(dict(options)), document),
            )
        return self.find(owner, identity)

    def claim(self) -> Claimed | None:
        """The job that has waited longest, now running; None when none waits."""
        with self._change() as database:
            row = database.execute(
                "UPDATE jobs SET state = 'running', started = ?, attempts = attempts + 1 WHERE number = "
                "(SELECT number FROM jobs WHERE state = 'queued' ORDER BY number LIMIT 1) AND state = 'queued' "
                "RETURNING id, attempts, filename, options, document",
                (time.time(),),
            ).fetchone()
        return Claimed(row[0], row[1], row[2], json.loads(row[3]), row[4]) if row else None

    def finish(self, job: Claimed, result: bytes, pages: int) -> bool:
        """The job is done, unless it ended in another way meanwhile; whether it did now."""
        return self._end(job, "done", "result = ?, pages = ?", (result, pages))

    def fail(self, job: Claimed, status: int, body: Mapping[str, Any]) -> bool:
        return self._end(job, "failed", "error = ?", (json.dumps({"status": status, "body": dict(body)}),))

    def _end(self, job: Claimed, state: State, setting: str, values: tuple[Any, ...]) -> bool:
        with self._change() as database:
            done = database.execute(
                f"UPDATE jobs SET state = ?, finished = ?, document = NULL, options = NULL, {setting} "
                "WHERE id = ? AND state = 'running' AND attempts = ?",
                (state, time.time(), *values, job.id, job.attempt),
            )
            return done.rowcount == 1

    def release(self, job: Claimed) -> None:
        """A running job waits again, in its old place, as if it had not been begun."""
        with self._change() as database:
            database.execute(
                "UPDATE jobs SET state = 'queued', attempts = attempts - 1 WHERE id = ? AND state = 'running' AND attempts = ?",
                (job.id, job.attempt),
            )

    def cancel(self, owner: str, identity: str) -> bool:
        """Give up a job that has not ended; whether it was one. What works on it can no longer end it."""
        with self._change() as database:
            done = database.execute(
                "UPDATE jobs SET state = 'cancelled', finished = ?, document = NULL, options = NULL "
                "WHERE id = ? AND owner = ? AND state IN ('queued', 'running')",
                (time.time(), identity, owner),
            )
            return done.rowcount == 1

    def delete(self, owner: str, identity: str) -> bool:
        """Forget a job that has ended; whether there was one."""
        with self._change() as database:
            done = database.execute(f"DELETE FROM jobs WHERE id = ? AND owner = ? AND state IN {_ENDED}", (identity, owner))
            return done.rowcount == 1

    def find(self, owner: str, identity: str) -> JobRecord | None:
        with self._lock:
            row = self._database.execute(f"SELECT {_FACTS} FROM jobs WHERE id = ? AND owner = ?", (identity, owner)).fetchone()
        return _record(row) if row else None

    def result(self, owner: str, identity: str) -> bytes | None:
        """The result of a job that is done, as JSON."""
        with self._lock:
            row = self._database.execute("SELECT result FROM jobs WHERE id = ? AND owner = ?", (identity, owner)).fetchone()
        return row[0] if row else None

    def recent(self, owner: str, state: str | None, limit: int, after: str | None) -> list[JobRecord]:
        """The newest first. after: the id before the first one wanted."""
        before = "AND number < (SELECT number FROM jobs WHERE id = ?)" if after is not None else ""
        where = f"owner = ? {'AND state = ?' if state is not None else ''} {before}"
        values = [owner, *([state] if state is not None else []), *([after] if after is not None else []), limit]
        with self._lock:
            rows = self._database.execute(f"SELECT {_FACTS} FROM jobs WHERE {where} ORDER BY number DESC LIMIT ?", values).fetchall()
        return [_record(row) for row in rows]

    def counts(self) -> dict[str, int]:
        """Jobs by state."""
        with self._lock:
            rows = self._database.execute("SELECT state, count(*) FROM jobs GROUP BY state").fetchall()
        return {state: dict(rows).get(state, 0) for state in STATES}

    def purge(self) -> int:
        """Forget ended jobs that are too old or too many; how many."""
        settings = self._settings
        with self._change() as database:
            old = database.execute(f"DELETE FROM jobs WHERE state IN {_ENDED} AND finished < ?", (time.time() - settings.keep_seconds,))
            many = database.execute(
                f"DELETE FROM jobs WHERE number IN (SELECT number FROM jobs WHERE state IN {_ENDED} "
                "ORDER BY finished DESC LIMIT -1 OFFSET ?)",
                (settings.keep_count,),
            )
            gone = old.rowcount + many.rowcount
        if gone:
            with self._lock:
                self._database.execute("PRAGMA incremental_vacuum").fetchall()
        return gone

    def close(self) -> None:
        with self._lock:
            self._database.close()

    @contextlib.contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        with self._lock, _transaction(self._database):
            yield self._database


@contextlib.contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


def _record(row: tuple[Any, ...]) -> JobRecord:
    identity, state, created, started, finished, attempts, filename, error, pages = row
    return JobRecord(identity, state, created, started, finished, attempts, filename, json.loads(error) if error else None, pages)
