"""The tests of the kernels in C++ are built by `make sanitize` alone; here it is seen that they still compile."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

CSRC = Path(__file__).resolve().parents[2] / "csrc"


def test_the_tests_of_the_kernels_compile() -> None:
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    sources = sorted((CSRC / "tests").glob("*.cpp"))
    assert len(sources) > 4
    command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wno-psabi", "-I", str(CSRC), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
