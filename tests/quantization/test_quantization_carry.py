"""Rows of documents in files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pagelift.core.errors import ConfigError
from pagelift.quantization.carry import Carried, CarryWriter


def test_documents_come_back_one_by_one(tmp_path: Path) -> None:
    lengths = [3, 0, 5]
    rows = [np.random.default_rng(k).standard_normal((length, 4)).astype(np.float32) for k, length in enumerate(lengths)]
    writer = CarryWriter(Carried(tmp_path / "rows.f32", lengths, 4))
    for document in rows:
        writer.add(document)
        assert not (tmp_path / "rows.f32").exists()  # under its name only when it is whole
    carried = writer.finish()
    assert len(carried) == 3
    assert all(np.array_equal(carried[k], rows[k]) for k in (2, 0, 1))


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"rows\.f32.*take 0\.0 GB each"):
        CarryWriter(Carried(tmp_path / "nowhere" / "rows.f32", [3], 4))
