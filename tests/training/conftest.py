"""The recipe lies outside of the package; what it needs torch for is not tested here."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tokenizers import Tokenizer

sys.path.insert(0, str(Path(__file__).parents[2] / "training"))


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder as the trainer begins it, with a tokenizer of few merges."""
    from nano.shape import Shape, write_settings
    from nano.tokens import fit_tokenizer, training_texts, write_tokenizer

    folder = tmp_path_factory.mktemp("run")
    write_tokenizer(fit_tokenizer(training_texts(40)), folder)
    tiny = Shape(2, hidden=64, intermediate=96, heads=2, kv_heads=1, linear_heads=1, vision_depth=1, vision_hidden=64)
    write_settings(folder, tiny, Tokenizer.from_file(str(folder / "tokenizer.json")))
    return folder


@pytest.fixture(scope="session")
def words(run_folder: Path) -> Tokenizer:
    return Tokenizer.from_file(str(run_folder / "tokenizer.json"))
