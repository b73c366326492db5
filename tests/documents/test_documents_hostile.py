"""No file crashes, hangs or fills the memory: each gives a valid result within the limits, or a documented error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hostile import hostile_documents

from pagelift.core import DocumentError, Limits
from pagelift.documents import open_document

LIMITS = Limits(page_seconds=4, open_seconds=4, page_pixels=2_000_000)


def outcome(named: tuple[str, bytes]) -> tuple[str, str, float]:
    """Name, "ok" or the error, and seconds."""
    name, content = named
    started = time.monotonic()
    try:
        with open_document(content, name=name, limits=LIMITS, ocr="never") as document:
            page = document.page(1)
            assert page.content.width_pt > 0
            assert page.content.height_pt > 0
            picture = page.image(50)
            assert 0 < picture.width * picture.height <= LIMITS.page_pixels
            result = "ok"
    except DocumentError as error:
        result = type(error).__name__ if str(error).startswith(f"{name}: ") else f"unnamed: {error}"
    return name, result, time.monotonic() - started


@pytest.fixture(scope="module")
def report() -> dict[str, list[tuple[str, str, float]] | int]:
    """Outcomes and the bytes of the largest worker, from a process of its own: other tests have large children too."""
    paths = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run([sys.executable, __file__], capture_output=True, env={**os.environ, "PYTHONPATH": paths}, check=True)
    return json.loads(done.stdout)


def test_hostile_documents(report) -> None:
    results = report["results"]
    assert len(results) > 150
    assert max(seconds for *_, seconds in results) < 30
    assert not [result for _, result, _ in results if result.startswith("unnamed")]
    by_name = {name: result for name, result, _ in results}
    expected = {
        "empty.pdf": "CorruptDocument",
        "text-named.pdf": "UnsupportedDocument",
        "encrypted.pdf": "PasswordRequired",
        "five-thousand-pages.pdf": "LimitExceeded",
        "zero-pages.pdf": "CorruptDocument",
        "page-two-billion-points.pdf": "ok",
        "png-100000x100000.png": "LimitExceeded",
        "form-in-itself.pdf": "ok",
        "broken-exif.jpg": "ok",
        "noise-before-header.pdf": "ok",
    }
    assert {name: by_name[name] for name in expected} == expected


@pytest.mark.skipif(sys.platform == "win32", reason="resource is POSIX only")
def test_memory_of_all_workers_stayed_below_two_gigabytes(report) -> None:
    assert 20_000_000 < report["largest"] < 2_000_000_000


def largest_child() -> int:
    """Bytes of the largest process that this one has started and waited for."""
    if sys.platform == "win32":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    with ThreadPoolExecutor(4) as threads:
        outcomes = list(threads.map(outcome, hostile_documents(scale=0.1)))
    json.dump({"results": outcomes, "largest": largest_child()}, sys.stdout)
