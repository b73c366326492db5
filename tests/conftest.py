"""Documents that tests make for themselves, and scripts that they look into."""

import importlib.util
import io
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from reportlab.pdfgen.canvas import Canvas

# No model that happens to be configured or cached on this machine, and no network, before any library reads these.
_HOME = tempfile.TemporaryDirectory(prefix="pagelift-tests-")
os.environ.update(HF_HOME=_HOME.name, HF_HUB_OFFLINE="1", XDG_CONFIG_HOME=_HOME.name)
os.environ.pop("PAGELIFT_MODEL", None)

# A machine that others use at the same time is no reason for a test to fail.
hypothesis.settings.register_profile("unhurried", deadline=None)
hypothesis.settings.load_profile("unhurried")


def make_pdf(*pages: list[str]) -> bytes:
    """A PDF with one line of text per string, 20 points apart, on pages of 400 x 300 points."""
    content = io.BytesIO()
    canvas = Canvas(content, pagesize=(400, 300), invariant=1)
    for lines in pages or ([],):
        for k, line in enumerate(lines):
            canvas.drawString(40, 250 - 20 * k, line)
        canvas.showPage()
    canvas.save()
    return content.getvalue()


@pytest.fixture(scope="session")
def pdf() -> Callable[..., bytes]:
    return make_pdf


@pytest.fixture(scope="session")
def load_script() -> Callable[[Path], Any]:
    """Imports a Python file that lies in no package."""

    def load(file: Path) -> Any:
        spec = importlib.util.spec_from_file_location(file.stem, file)
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load
