"""Documents for quantization: as the engine asks for them, in sets that do not overlap, and those of a user."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from made import DOCUMENT

from pagelift.core.errors import ConfigError
from pagelift.evals.forced import Forcer
from pagelift.evals.spelling import PieceKind, Printed, answer_pieces
from pagelift.evals.synthetic import make_sample
from pagelift.quantization.calibration import generated, of_user, text_pieces
from pagelift.quantization.job import Effort, Job, documents_of
from pagelift.weights import Tokenizer

SCHEMA = {"type": "object", "properties": {"number": {"type": "string"}, "total": {"type": "number"}}}


def test_answers_keep_printed_digits_and_know_their_values() -> None:
    sample = make_sample(3, "train", "invoice")
    pieces = list(answer_pieces(sample.expected, Printed.at(sample.evidence)))
    text = "".join(piece.text for piece in pieces)
    scalars = [piece.text for piece in pieces if piece.kind == PieceKind.SCALAR]
    assert json.loads(text) == sample.expected
    assert ", " in text
    assert "\n" not in text
    assert all(json.loads(scalar) is not ... for scalar in scalars)
    numbers = [value for value in sample.expected.values() if isinstance(value, float)]
    assert all(scalar[0] not in "{}[]," for scalar in scalars)
    assert numbers == [] or any("." in scalar for scalar in scalars)


def test_documents_of_the_generator_have_answers_behind_their_prompts() -> None:
    tokenizer = Tokenizer.load(DOCUMENT)
    (document,) = generated(Forcer(DOCUMENT), "train", 1)
    answer = tokenizer.decode([int(token) for token in document.tokens[document.answer :]])
    assert isinstance(json.loads(answer), dict)
    assert document.pictures
    assert document.positions.shape == (3, len(document))
    assert int(document.tokens[-1]) in tokenizer.stop_tokens
    assert not document.values[: document.answer].any()
    assert not document.values[-1]
    values = tokenizer.decode([int(token) for token in document.tokens[document.values]])
    assert "{" not in values


def test_pieces_of_text_have_one_length() -> None:
    pieces = text_pieces(Forcer(DOCUMENT), rows=3, length=50)
    assert [len(piece) for piece in pieces] == [50] * 3
    assert all(len(piece.asked) == 0 for piece in pieces)


def test_documents_of_a_user(pdf: Callable[..., bytes], tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    (tmp_path / "a.pdf").write_bytes(pdf(["Number: A-17", "Total: 12.50"]))
    (tmp_path / "a.json").write_text(json.dumps({"number": "A-17", "total": 12.5}))
    (tmp_path / "b.pdf").write_bytes(pdf(["Number: B-4", "Total: 7.00"]))
    forcer, tokenizer = Forcer(DOCUMENT), Tokenizer.load(DOCUMENT)
    answers = [
        json.loads(tokenizer.decode([int(token) for token in document.tokens[document.answer :]])) for document in of_user(forcer, tmp_path)
    ]
    assert answers == [{"number": "A-17", "total": 12.5}, {"number": "B-4", "total": 7.0}]
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(ConfigError, match=r"a\.json"):
        of_user(forcer, tmp_path)
    with pytest.raises(ConfigError, match="no folder"):
        of_user(forcer, tmp_path / "nowhere")


def test_no_documents_at_all_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="four of yours"):
        documents_of(Job(DOCUMENT, tmp_path / "out", effort=Effort(0, 0, 0)))
