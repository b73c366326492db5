"""The scripts of `benchmarks/` as modules, and a checkpoint for them."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer, models

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="session")
def scripts():
    """Imports a script by name."""
    sys.path.insert(0, str(BENCHMARKS))
    yield import_module
    sys.path.remove(str(BENCHMARKS))


@pytest.fixture(scope="session")
def made(scripts):
    return scripts("make_checkpoint")


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    """The special tokens only; the real vocabulary is in a package that tests do not need."""
    engine = Tokenizer(models.BPE())
    names = ("endoftext", "im_start", "im_end", "vision_start", "vision_end", "image_pad", "video_pad")
    engine.add_special_tokens([AddedToken(f"<|{name}|>", special=True) for name in names])
    return engine


@pytest.fixture(scope="session")
def tiny(made, tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny checkpoint at 4 bits."""
    folder = tmp_path_factory.mktemp("tiny")
    made.write_settings(folder, made.SHAPES["tiny"], 4, tokenizer)
    made.write_weights(folder, made.SHAPES["tiny"], 4)
    return folder
