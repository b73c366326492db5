"""The documents of an evaluation folder, with their schemas and true values.

    manifest.jsonl              optional: one object per line with "id", "collection", "document", "schema", "expected",
                                and where needed "loose" and "unordered" (lists of keys, see `scoring`); paths are relative
    <collection>/documents/     PDF or image files
    <collection>/schema.json    one JSON Schema for the collection
    <collection>/expected/      <document stem>.json

Without a manifest the cases are the documents that have an expected file.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pagelift.core import ConfigError, Json
from pagelift.evals.scoring import Scorer


@dataclass(frozen=True, slots=True)
class Case:
    """One document to extract from. id: <collection>/<document stem>."""

    id: str
    collection: str
    document: Path
    schema: Path
    expected: Path
    scorer: Scorer = field(default_factory=Scorer)

    def truth(self) -> Json:
        return json.loads(self.expected.read_text(encoding="utf-8"))


def load_cases(folder: str | Path, only: Collection[str] = (), limit: int | None = None) -> list[Case]:
    """The cases of a folder, in its order. only: collections, all if empty. limit: at most so many per collection.

    Raises ConfigError when the folder is not laid out as described above or has no such collection.
    """
    root = Path(folder)
    if not root.is_dir():
        raise ConfigError(f"{root} is no folder; give one with <collection>/documents, expected and schema.json")
    manifest = root / "manifest.jsonl"
    cases = list(_from_manifest(manifest) if manifest.is_file() else _from_folders(root))
    known = {case.collection for case in cases}
    if not known:
        raise ConfigError(f"{root} holds no case: no manifest.jsonl, and no <collection>/expected/<document stem>.json beside a document")
    unknown = sorted(set(only) - known)
    if unknown:
        raise ConfigError(f"{root} has no collection {', '.join(unknown)}; it has {', '.join(sorted(known))}")
    seen: Counter[str] = Counter()
    chosen = []
    for case in cases:
        seen[case.collection] += 1
        if (not only or case.collection in only) and (limit is None or seen[case.collection] <= limit):
            chosen.append(case)
    return chosen


def _from_manifest(manifest: Path) -> Iterator[Case]:
    root = manifest.parent
    for number, line in enumerate(manifest.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise TypeError("not an object")
            if "expected" not in row:
                continue
            document, schema, expected = (root / row[key] for key in ("document", "schema", "expected"))
            scorer = Scorer(frozenset(row.get("loose", ())), frozenset(row.get("unordered", ())))
            yield Case(row["id"], row["collection"], document, schema, expected, scorer)
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"{manifest}: line {number} is no case ({type(error).__name__}: {error})") from error


def _from_folders(root: Path) -> Iterator[Case]:
    for schema in sorted(root.glob("*/schema.json")):
        collection = schema.parent
        for document in sorted((collection / "documents").glob("*")):
            expected = collection / "expected" / f"{document.stem}.json"
            if expected.is_file():
                yield Case(f"{collection.name}/{document.stem}", collection.name, document, schema, expected)
