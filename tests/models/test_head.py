"""The output head of a checkpoint alone, as comparisons of models use it."""

from pathlib import Path

import numpy as np
import pytest

from pagelift.backends import Ragged, open_backend
from pagelift.models import Step, load_config, open_head, open_model, text_positions
from pagelift.weights.summary import summarise

GOLDEN = Path(__file__).parent.parent / "golden"


@pytest.mark.parametrize("name", ["document", "document_mlx", "text"])
@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_logits_of_kept_rows_are_those_of_the_model(name: str, backend: str) -> None:
    used = open_backend(backend)
    model = open_model(GOLDEN / name, used)
    tokens = np.arange(1, 13)
    hidden = model.forward(Step(tokens, text_positions(0, 12), Ragged.of([(model.new_cache(), 12, False)])))
    rows = np.array([3, 7, 11])
    kept = used.to_numpy(hidden)[rows]
    head = open_head(GOLDEN / name, open_backend(backend))
    assert head.vocab_size == model.config.text.vocab_size
    assert (head.logits(kept) == model.logits(hidden, rows)).all()


def test_bits_of_the_text_alone() -> None:
    folder = GOLDEN / "document"
    summary = summarise(folder, load_config(folder).quantization)
    assert summary.text_size < summary.size
    assert summary.text_parameters < summary.parameters
    assert summary.text_bits_per_weight == 8 * summary.text_size / summary.text_parameters
    text = summarise(GOLDEN / "text", load_config(GOLDEN / "text").quantization)
    assert text.text_bits_per_weight == text.bits_per_weight
