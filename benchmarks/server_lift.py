"""Whether lift-pdf, the package of the model's authors, works with this server in the place of vLLM.

    python benchmarks/server_lift.py [--model CHECKPOINT] [--environment DIR]

lift-pdf goes into an environment of its own at DIR, which is kept. It is asked for the same invoice through the built-in engine and, with
--model, through that checkpoint, which the server calls `lift` as lift-pdf expects. Prints one JSON object; ends with 1 when a run
fails, does not have all properties, or, with the built-in engine, does not have the right values.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

from server_process import SCHEMA, invoice, served

TOTAL = 1107.5
CODE = """
import json, sys
from lift.extract import extract
from lift.model import InferenceManager
result = extract(sys.argv[1], json.loads(sys.argv[2]), InferenceManager(method="vllm"), max_output_tokens=int(sys.argv[3]))
json.dump({"error": result.error, "tokens": result.token_count, "raw": result.raw, "extraction": result.extraction}, sys.stdout)
"""


def main() -> int:
    """Run lift-pdf against the server and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a checkpoint, also one with random weights")
    parser.add_argument("--max-tokens", type=int, default=400, help="of an answer of the checkpoint")
    parser.add_argument("--environment", type=Path, default=Path(tempfile.gettempdir(), "pagelift-lift"))
    options = parser.parse_args()
    python = environment(options.environment)
    checkpoint = ["--model", options.model, "--alias", "lift"] if options.model else ["--alias", "lift"]
    with served(checkpoint) as server, tempfile.TemporaryDirectory() as folder:
        document = Path(folder, "invoice.pdf")
        document.write_bytes(invoice(7, pages=2))
        runs = {"layout": ask(python, server.url, "layout", document, 4000)}
        if options.model:
            runs["lift"] = ask(python, server.url, "lift", document, options.max_tokens)
    data = runs["layout"].get("extraction") or {}
    right = (data.get("invoice_number"), data.get("total")) == ("A-7", TOTAL)
    sys.stdout.write(json.dumps({"runs": runs, "right_values": right}, indent=2) + "\n")
    return 0 if right and all(complete(run, name != "layout") for name, run in runs.items()) else 1


def environment(folder: Path) -> Path:
    """The interpreter of an environment with lift-pdf, which says that it needs Python 3.12 but works with older ones."""
    python = folder / "bin" / "python"
    if not python.is_file():
        venv.create(folder, with_pip=True)
        subprocess.run([folder / "bin" / "pip", "install", "--quiet", "--ignore-requires-python", "lift-pdf"], check=True)
    return python


def ask(python: Path, url: str, model: str, document: Path, tokens: int) -> dict[str, Any]:
    """What lift-pdf makes of a document with this server as its vLLM."""
    settings = {"VLLM_API_BASE": f"{url}/v1", "VLLM_MODEL_NAME": model, "MAX_VLLM_RETRIES": "0", "PYTHONPATH": ""}
    start = time.perf_counter()
    command = [python, "-c", CODE, document, json.dumps(SCHEMA), str(tokens)]
    done = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, check=False, timeout=600)
    result: dict[str, Any] = {"seconds": round(time.perf_counter() - start, 2)}
    try:
        result |= json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        result |= {"error": True, "output": (done.stdout + done.stderr)[-2000:]}
    return result


def complete(run: dict[str, Any], may_be_cut: bool) -> bool:
    """Whether lift-pdf got an answer with all properties; random weights may write until the limit, which cuts their answer."""
    if run["error"]:
        return False
    return (run.get("extraction") or {}).keys() == SCHEMA["properties"].keys() or (may_be_cut and run["tokens"] > 0)


if __name__ == "__main__":
    sys.exit(main())
