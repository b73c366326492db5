"""A `pagelift serve` of its own for the scripts that put load on one, and documents to send."""

from __future__ import annotations

import io
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from reportlab.pdfgen.canvas import Canvas


@dataclass(frozen=True)
class Served:
    """A server at `url`. log: its standard error."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def resident_bytes(self) -> int:
        """Memory of the server alone, without the processes that read documents."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1]) * 4096

    def faults(self) -> list[str]:
        """Lines of the log that tell of a fault of the server."""
        return [line for line in self.log.read_text(encoding="utf-8").splitlines() if '"level": "error"' in line]


@contextmanager
def served(options: Sequence[str] = ()) -> Iterator[Served]:
    """Start a server on a free port, with a database of jobs and a log that are forgotten afterwards."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        command = [sys.executable, "-m", "pagelift", "serve", "--port", str(port), "--jobs-file", f"{folder}/jobs.sqlite"]
        with log.open("wb") as stream:
            process = subprocess.Popen([*command, "--schema-folder", f"{folder}/schemas", *options], stderr=stream)
        try:
            url = f"http://127.0.0.1:{port}"
            _wait(url, process)
            yield Served(url, process, log)
        finally:
            process.terminate()
            process.wait(60)


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(1200):
        try:
            httpx.get(f"{url}/health")
            return
        except httpx.TransportError:
            if process.poll() is not None:
                raise SystemExit("the server did not start") from None
            time.sleep(0.1)
    raise SystemExit("the server does not answer")


SCHEMA = {
    "type": "object",
    "properties": {
        "invoice_number": {"type": ["string", "null"]},
        "total": {"type": ["number", "null"]},
        "lines": {"type": "array", "items": {"type": "object", "properties": {"item": {"type": ["string", "null"]}}}},
    },
    "required": ["invoice_number", "total", "lines"],
}


def invoice(number: int, pages: int = 1) -> bytes:
    """A PDF with an invoice number and a total."""
    content = io.BytesIO()
    canvas = Canvas(content, pagesize=(400, 300), invariant=1)
    for page in range(pages):
        canvas.drawString(40, 250, f"Invoice number: A-{number}")
        canvas.drawString(40, 220, f"Page {page + 1} of {pages}")
        canvas.drawString(40, 190, f"Total: 1,{number % 900 + 100}.50 EUR")
        canvas.showPage()
    canvas.save()
    return content.getvalue()
