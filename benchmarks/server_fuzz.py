"""Whether any request can make the server fail: schemathesis against its OpenAPI document, then broken forms and broken base64.

    python benchmarks/server_fuzz.py [--seconds 120] [--examples 100] [--environment DIR]

schemathesis goes into an environment of its own at DIR, which is kept. Prints one JSON object; ends with 1 when a status of 500, an
undocumented status, a fault in the log or an answer later than 30 s was seen.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import subprocess
import sys
import tempfile
import time
import venv
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
from server_process import SCHEMA, invoice, served

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
LATE_S = 30.0
BOUNDARY = "pagelift-boundary"


def main() -> int:
    """Run all three and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120, help="for broken forms and base64")
    parser.add_argument("--examples", type=int, default=100, help="of schemathesis, for each operation")
    parser.add_argument("--environment", type=Path, default=Path(tempfile.gettempdir(), "pagelift-schemathesis"))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with served(["--max-body-mb", "4", "--request-seconds", "20"]) as server:
        report: dict[str, Any] = {"schemathesis": schemathesis(server.url, options.environment, options.examples, options.seed)}
        report["broken"] = break_things(server.url, options.seconds, random.Random(options.seed))
        report["faults"] = server.faults()[:5]
        report["alive"] = httpx.get(f"{server.url}/ready").status_code == 200
    sys.stdout.write(json.dumps(report, indent=2) + "\n")
    broken = report["broken"]
    fine = report["schemathesis"]["exit_code"] == 0 and not broken["server_errors"] and not broken["late"] and not report["faults"]
    return 0 if fine and report["alive"] else 1


def schemathesis(url: str, environment: Path, examples: int, seed: int) -> dict[str, Any]:
    """Exit code and last lines of schemathesis against the document of the server."""
    program = environment / "bin" / "schemathesis"
    if not program.is_file():
        venv.create(environment, with_pip=True)
        subprocess.run([environment / "bin" / "pip", "install", "--quiet", "schemathesis"], check=True)
    command = [program, "run", f"{url}/openapi.json", "--checks", CHECKS, "--max-examples", str(examples), "--seed", str(seed)]
    done = subprocess.run(
        [*command, "--continue-on-failure", "--request-timeout", str(LATE_S)], capture_output=True, text=True, check=False
    )
    return {"exit_code": done.returncode, "output": done.stdout.splitlines()[-200 if done.returncode else -25 :]}


def break_things(url: str, seconds: float, source: random.Random) -> dict[str, Any]:
    """Send valid requests with random damage for so long."""
    statuses: Counter[int] = Counter()
    server_errors, late = [], 0
    end = time.monotonic() + seconds
    with httpx.Client(base_url=url, timeout=2 * LATE_S) as client:
        while time.monotonic() < end:
            path, kind, body = source.choice([broken_form, broken_json, broken_chat])(source)
            start = time.monotonic()
            reply = client.post(path, content=body, headers={"content-type": kind})
            late += time.monotonic() - start > LATE_S
            statuses[reply.status_code] += 1
            if reply.status_code >= 500:
                server_errors.append({"path": path, "body": repr(body[:300]), "reply": reply.text[:300]})
    return {
        "requests": sum(statuses.values()),
        "statuses": dict(sorted(statuses.items())),
        "server_errors": server_errors[:5],
        "late": late,
    }


def damage(content: bytes, source: random.Random) -> bytes:
    """Some bytes changed, cut out, doubled, or put in from elsewhere."""
    out = bytearray(content)
    for _ in range(source.randint(1, 6)):
        at = source.randrange(len(out) + 1)
        size = source.choice([1, 1, 4, 64, 1000])
        match source.randrange(5):
            case 0:
                out[at : at + size] = source.randbytes(size)
            case 1:
                del out[at : at + size]
            case 2:
                out[at:at] = out[at : at + size]
            case 3:
                out[at:at] = source.choice(
                    [b"\r\n", b"--", b'"', b"\x00", b"\xff", b"--" + BOUNDARY.encode(), b"{}[]", b"\\ud800", b"%PDF-1.7"]
                )
            case 4:
                out = out[:at] if source.random() < 0.3 else out
    return bytes(out)


def broken_form(source: random.Random) -> tuple[str, str, bytes]:
    document = invoice(source.randrange(1000))
    if source.random() < 0.5:
        document = damage(document, source)
    parts = [
        b'Content-Disposition: form-data; name="document"; filename="a.pdf"\r\nContent-Type: application/pdf\r\n\r\n' + document,
        b'Content-Disposition: form-data; name="schema"\r\n\r\n' + json.dumps(SCHEMA).encode(),
        b'Content-Disposition: form-data; name="pages"\r\n\r\n' + source.choice([b"1", b"1-", b"0", b"x", b"9" * 50]),
    ]
    edge = b"--" + BOUNDARY.encode()
    body = b"".join(edge + b"\r\n" + part + b"\r\n" for part in parts) + edge + b"--\r\n"
    path = source.choice(["/v1/extract", "/v1/extract", "/v1/extract/jobs"])
    return path, f"multipart/form-data; boundary={BOUNDARY}", damage(body, source) if source.random() < 0.8 else body


def broken_json(source: random.Random) -> tuple[str, str, bytes]:
    encoded = damage(base64.b64encode(invoice(source.randrange(1000))), source).decode("latin-1")
    body = json.dumps({"document": encoded, "schema": SCHEMA, "stream": source.random() < 0.3}).encode()
    return "/v1/extract", "application/json", damage(body, source) if source.random() < 0.5 else body


def broken_chat(source: random.Random) -> tuple[str, str, bytes]:
    encoded = damage(base64.b64encode(damage(invoice(source.randrange(1000)), source)), source).decode("latin-1")
    file = {"filename": source.choice(["a.pdf", "", "\x00", "ä" * 3000]), "file_data": f"data:application/pdf;base64,{encoded}"}
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": source.choice([SCHEMA, {}, True, False, {"type": "array"}])}}
    chat = {"model": "layout", "messages": [{"role": "user", "content": [{"type": "file", "file": file}]}], "response_format": form}
    body = json.dumps(chat | {"stream": source.random() < 0.3}).encode()
    return "/v1/chat/completions", "application/json", damage(body, source) if source.random() < 0.5 else body


if __name__ == "__main__":
    sys.exit(main())
