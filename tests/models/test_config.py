"""config.json is believed, and what it lacks is an error that names the key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pagelift.core.errors import WeightsError
from pagelift.models.config import load_config, parse_config

TEXT: dict[str, Any] = json.loads((Path(__file__).parent.parent / "golden" / "text" / "config.json").read_text())


def test_older_files_give_interval_and_rope_scaling() -> None:
    older = {key: value for key, value in TEXT.items() if key not in ("layer_types", "rope_parameters")}
    rope = {"type": "mrope", "mrope_section": [3, 3, 2], "mrope_interleaved": True}
    older |= {"full_attention_interval": 4, "rope_scaling": rope, "rope_theta": 1e7, "partial_rotary_factor": 0.5}
    assert parse_config(older) == parse_config(TEXT)


@pytest.mark.parametrize("key", ["hidden_size", "head_dim", "layer_types", "rope_parameters", "rms_norm_eps", "model_type"])
@pytest.mark.parametrize("value", [None, "many", -1, True, pytest.param(10**400, id="huge")])
def test_a_key_that_is_missing_or_wrong_is_named(key: str, value: Any) -> None:
    for broken in ({k: v for k, v in TEXT.items() if k != key}, TEXT | {key: value}):
        with pytest.raises(WeightsError, match=key):
            parse_config(broken)


@pytest.mark.parametrize("content", ["{", "[]", "[" * 100_000, ""])
def test_a_damaged_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(WeightsError):
        load_config(tmp_path)
