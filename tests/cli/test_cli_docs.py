"""docs/cli.md shows the help texts of the command as they are."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pagelift.commands import ExitCode

ROOT = Path(__file__).resolve().parents[2]


def test_help_texts_in_the_documentation_are_current(load_script: Callable[[Path], Any]) -> None:
    script = load_script(ROOT / "scripts" / "update_cli_docs.py")
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert page == script.render(page), "run: python scripts/update_cli_docs.py"
    assert page.count("--help\nUsage: pagelift") == 17


def test_every_exit_code_is_documented() -> None:
    table = re.findall(r"^\| ([\d, ]+) \|", (ROOT / "docs" / "cli.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(int(code) for row in table for code in row.split(",")) == sorted(ExitCode)
