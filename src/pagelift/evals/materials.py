"""What models are compared on: a folder of documents with true values, documents and a schema alone, or generated documents."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from pagelift.core import ConfigError
from pagelift.core.files import write_atomic
from pagelift.evals.cases import Case, load_cases
from pagelift.evals.comparison import Material
from pagelift.evals.synthetic import Split, make_samples
from pagelift.evals.synthetic.folder import write_folder
from pagelift.schema import Schema


@dataclass(frozen=True, slots=True)
class Generated:
    """Documents of the generator. Those of split test share no layout, issuer or wording with what models are trained or calibrated on."""

    count: int = 60
    seed: int = 0
    split: Split = "test"


def folder_material(folder: Path, only: Collection[str] = (), limit: int | None = None) -> Material:
    """Documents with true values, as `pagelift eval` reads them. Raises ConfigError."""
    return _checked(Material(tuple(load_cases(folder, only, limit))), folder)


def plain_material(documents: Sequence[Path], schema: Schema, work: Path, truths: bool = False) -> Material:
    """Documents that are all asked for the same. truths: true values may stand beside them, in <stem>.json; they count if no document
    lacks them. work: where the schema is kept. Raises ConfigError.
    """
    labelled = truths and all(path.with_suffix(".json").is_file() for path in documents)
    file = work / f"schema-{schema.fingerprint[:16]}.json"
    write_atomic(file, json.dumps(schema.original, ensure_ascii=False))
    names = [path.name for path in documents]
    cases = [Case(p.name if names.count(p.name) == 1 else str(p), "documents", p, file, p.with_suffix(".json")) for p in documents]
    return _checked(Material(tuple(cases), labelled), work)


def generated_material(generated: Generated, work: Path) -> Material:
    """Documents of the generator, written into `work` unless they are there. Raises ConfigError."""
    folder = work / f"generated-{generated.split}-{generated.seed}-{generated.count}"
    if not (folder / "manifest.jsonl").is_file():
        write_folder(folder, islice(make_samples(generated.seed, generated.split), generated.count))
    return _checked(Material(tuple(load_cases(folder))), folder)


def _checked(material: Material, where: Path) -> Material:
    if not material.cases:
        raise ConfigError(f"{where}: there is no document to compare models on; name a folder with documents")
    return material
