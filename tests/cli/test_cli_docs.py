"""docs/cli.md shows the help texts of the command as they are."""

import importlib.util
import re
from pathlib import Path

from pagelift.commands import ExitCode

ROOT = Path(__file__).resolve().parents[2]


def test_help_texts_in_the_documentation_are_current() -> None:
    spec = importlib.util.spec_from_file_location("update_cli_docs", ROOT / "scripts" / "update_cli_docs.py")
    assert spec
    assert spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert page == script.render(page), "run: python scripts/update_cli_docs.py"
    assert page.count("--help\nUsage: pagelift") == 7


def test_every_exit_code_is_documented() -> None:
    table = re.findall(r"^\| ([\d, ]+) \|", (ROOT / "docs" / "cli.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(int(code) for row in table for code in row.split(",")) == sorted(ExitCode)
