"""The checkpoints that benchmarks run on: complete for every shape, and a model that runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pagelift.backends import Ragged, open_backend
from pagelift.models import Step, load_config, open_model, text_positions


@pytest.mark.parametrize("bits", [4, 5, 6, 8, 16])
def test_a_tiny_checkpoint_loads_and_runs(made, tokenizer, tmp_path: Path, bits: int) -> None:
    shape = made.SHAPES["tiny"]
    made.write_settings(tmp_path, shape, bits, tokenizer)
    total = made.write_weights(tmp_path, shape, bits)
    assert total == pytest.approx(sum(file.stat().st_size for file in tmp_path.glob("*.safetensors")), rel=1e-2)
    model = open_model(tmp_path, open_backend("cpu"))
    batch = Ragged.of([(model.new_cache(), 3, False)])
    hidden = model.forward(Step(np.array([1, 2, 248_000]), text_positions(0, 3), batch))
    logits = model.logits(hidden, np.array([2]))
    assert logits.shape == (1, 248_320)
    assert 0.1 < logits.std() < 10


@pytest.mark.parametrize(("name", "billions"), [("9b", 9.4), ("4b", 4.5), ("2b", 2.2), ("0.8b", 0.85)])
def test_shapes_have_the_parameters_of_their_name(made, tokenizer, tmp_path: Path, name: str, billions: float) -> None:
    shape = made.SHAPES[name]
    made.write_settings(tmp_path, shape, 16, tokenizer)
    assert load_config(tmp_path).text.layer_types.count("full_attention") == shape.layers // 4
    parameters = sum(entry.nbytes for entry in made.entries(shape, 16)) / 2e9
    assert parameters == pytest.approx(billions, rel=0.05)


def test_files_hold_about_as_much_as_a_shard_may(made) -> None:
    sizes = [sum(entry.nbytes for entry in contents) for contents in made.shards(made.entries(made.SHAPES["9b"], 4))]
    assert max(sizes) <= made.SHARD_BYTES
    assert sum(sizes) == pytest.approx(5.95e9, rel=0.01)
