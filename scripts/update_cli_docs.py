"""Puts the current `--help` texts into docs/cli.md: `python scripts/update_cli_docs.py`. A test checks that they are current."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
_BLOCK = re.compile(r"```console\n\$ pagelift ((?:\w+ )*)--help\n.*?```", re.DOTALL)


def render(page: str) -> str:
    """`page` with the help text of the installed command in every block that starts with `$ pagelift ... --help`."""
    return _BLOCK.sub(lambda block: f"```console\n$ pagelift {block[1]}--help\n{help_text(block[1].split())}```", page)


def help_text(command: list[str]) -> str:
    code = "from pagelift.cli import main; main()"
    environment = {**os.environ, "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run([sys.executable, "-c", code, *command, "--help"], capture_output=True, text=True, check=True, env=environment)
    return done.stdout.replace("Usage: -c ", "Usage: pagelift ")


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
