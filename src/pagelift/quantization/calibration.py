"""The documents that quantization is measured on. None of the test split of the generator is among them.

Generated documents of the training split give the statistics, those of the validation split decide; layouts, names and wordings of the
two do not overlap (evals/synthetic). A user's documents are added to both in turn.
"""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

from pagelift.core import ConfigError, Json, PageliftError
from pagelift.documents import open_document
from pagelift.evals.cases import load_cases
from pagelift.evals.forced import Forced, Forcer
from pagelift.evals.synthetic import KINDS, Split, make_samples
from pagelift.layout import extract_pages
from pagelift.schema import Schema

SEED = 714
"""Of the generated documents."""
TEXT_ROWS, TEXT_TOKENS = 128, 256
"""Pieces of text for the block scores of oQ, and tokens of each."""
ENDINGS = (".pdf", ".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp")


def generated(forcer: Forcer, split: Split, count: int, seed: int = SEED) -> tuple[Forced, ...]:
    """Documents of the generator with their answers, all kinds in turn."""
    return tuple(forcer.sample(sample) for sample in islice(make_samples(seed, split, tuple(KINDS)), count))


def text_pieces(forcer: Forcer, rows: int = TEXT_ROWS, length: int = TEXT_TOKENS, seed: int = SEED) -> tuple[Forced, ...]:
    """Plain text of generated documents in pieces of one length, as the published oQ plan is measured on text."""
    tokens: list[int] = []
    for sample in make_samples(seed, "train"):
        tokens += forcer.encode("\n".join(" ".join(word.text for word in page.words) for page in sample.pages))
        if len(tokens) >= rows * length:
            break
    return tuple(forcer.text(f"text-{k}", tokens[k * length : (k + 1) * length]) for k in range(rows))


def of_user(forcer: Forcer, folder: Path) -> tuple[Forced, ...]:
    """The documents of a folder: laid out as for `pagelift eval`, or documents beside a schema.json, with <stem>.json where the values are
    known. Where they are not, what the built-in engine reads stands for them. Raises ConfigError, DocumentError, SchemaError.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder} is no folder; give one with documents and a schema.json")
    if not (folder / "schema.json").is_file():
        return tuple(forcer.case(case) for case in load_cases(folder))
    schema = Schema.load(folder / "schema.json")
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in ENDINGS)
    if not paths:
        raise ConfigError(f"{folder} holds no document beside its schema.json; documents end with {', '.join(ENDINGS)}")
    return tuple(forcer.document(path, schema, _answer(path, schema)) for path in paths)


def _answer(path: Path, schema: Schema) -> Json:
    known = path.with_suffix(".json")
    if known.is_file():
        return _read(known)
    try:
        with open_document(path) as document:
            return extract_pages([page.content for page in document.pages()], schema).data
    except PageliftError as error:
        raise ConfigError(f"{path}: no values are known ({known.name} is missing), and the built-in engine reads none: {error}") from error


def _read(path: Path) -> Json:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} holds no JSON: {error}") from error
