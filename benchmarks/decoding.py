"""How many passes over the weights an answer takes, and where the time of a whole job goes.

    python benchmarks/decoding.py CHECKPOINT [--backend cpu] [--pages 10] [--tokens 40] [--json]
    python benchmarks/decoding.py CHECKPOINT --count

The job is `invoice_case.py`: one page, a schema with 12 fields and 20 rows. Random weights know no answers, so the logits of the
output head are replaced by a script: at each place of the answer the token that a model would write there gets the highest logit.
Everything else is real: the page picture goes through the vision tower, the prompt through the decoder, and every step of the answer
through all layers and the head, whose result is computed and then overwritten. The script is the answer in the tokenizer's own tokens
as the grammar lets them come. Where a draft is wrong, the script tells so, as the model would.

plain        the same job with one token a pass: no forced tokens, no drafts, the whole head. With --tokens N only the first N tokens are
             decoded and the rest is taken to last as long; 0 decodes all. Page and prompt are not computed again: they take what
             they took before.
speedup      plain by pagelift, for the whole job and for decoding alone; the page and the prompt cost both the same.
passes       passes_per_token counts steps that gave tokens, by tokens of the answer.
--pages N    then a document of N pages is asked for two schemas; second_prefill_share is the part of the prompt's tokens that the
             second question computed again.
--documents N  counts for N generated documents (docs/synthetic.md) by kind: with the lines of their pages as hints, and with what the
             built-in engine reads as well, as the engine vlm gives them. The script is the right answer.
--count      only counts: nothing runs through the weights. Needs the files of the tokenizer and config.json only.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from invoice_case import Case, invoice
from machine import describe
from PIL import Image

from pagelift.backends import Array, Indices, SequenceCache
from pagelift.decoding import Allowed, Constraint, Sampling, compile_grammar
from pagelift.evals.synthetic import make_samples
from pagelift.extract.prompts import OWN_WORDING, extraction_prompt
from pagelift.layout import extract_pages
from pagelift.layout.lines import analyse_page
from pagelift.models import Grid, Model, ModelConfig, Step, load_config
from pagelift.runtime import LoadedModel, RuntimeSettings, load_model
from pagelift.schema import Schema
from pagelift.weights import Tokenizer

PAGE = (1092, 1400)


class Told:
    """A model that runs as it is and says what it is told: `script` behind the prompt. One answer at a time."""

    def __init__(self, model: Model) -> None:
        self.config: ModelConfig = model.config
        self.script: Sequence[int] = ()
        self.prompt = 0
        self._model = model
        self._places: list[int] = []

    def new_cache(self) -> SequenceCache:
        return self._model.new_cache()

    def cache_bytes(self, tokens: int, draft: int = 0) -> int:
        return self._model.cache_bytes(tokens, draft)

    def encode(self, patches: np.ndarray, grids: Sequence[Grid]) -> Array:
        return self._model.encode(patches, grids)

    def forward(self, step: Step) -> Array:
        self._places = [s.cache.length + k + 1 - self.prompt for s in step.batch.segments for k in range(s.length)]
        return self._model.forward(step)

    def logits(self, hidden: Array, rows: Indices, tokens: Indices | None = None) -> np.ndarray:
        found = self._model.logits(hidden, rows, tokens).copy()
        found[:] = 0
        for values, row in zip(found, rows, strict=True):
            place = self._places[int(row)]
            wanted = self.script[place] if 0 <= place < len(self.script) else -1
            at = wanted if tokens is None else int(np.searchsorted(tokens, wanted))
            if 0 <= at < len(values) and (tokens is None or tokens[at] == wanted):
                values[at] = 9
        return found


class Weightless:
    """The shape of a model, and nothing in it."""

    def __init__(self, config: ModelConfig) -> None:
        self.config = config

    def new_cache(self) -> SequenceCache:
        return SequenceCache([])

    def cache_bytes(self, tokens: int, draft: int = 0) -> int:  # noqa: ARG002
        return 0

    def encode(self, patches: np.ndarray, grids: Sequence[Grid]) -> Array:
        return np.zeros((len(patches) * sum(1 for _ in grids) // 4, 1), np.float32)

    def forward(self, step: Step) -> Array:
        for segment in step.batch.segments:
            segment.cache.advance(segment.length, segment.draft)
        return np.zeros((step.batch.rows, 1), np.float32)

    def logits(self, hidden: Array, rows: Indices, tokens: Indices | None = None) -> np.ndarray:  # noqa: ARG002
        return np.zeros((len(rows), self.config.text.vocab_size if tokens is None else len(tokens)), np.float32)


class OneByOne:
    """A constraint that never says what is forced, nor that few tokens are allowed: each token is asked for by the whole head."""

    def __init__(self, inner: Constraint) -> None:
        self._inner = inner

    @property
    def finished(self) -> bool:
        return self._inner.finished

    def forced(self) -> Sequence[int]:
        return ()

    def allowed(self) -> Allowed:
        return Allowed(self._inner.allowed().mask)

    def accept(self, tokens: Sequence[int]) -> None:
        self._inner.accept(tokens)

    def prefix(self, tokens: Sequence[int]) -> int:
        return self._inner.prefix(tokens)

    def rollback(self, count: int) -> None:
        self._inner.rollback(count)

    def copy(self) -> Constraint:
        return OneByOne(self._inner.copy())


def script(tokenizer: Tokenizer, constraint: Constraint, answer: str) -> list[int]:
    """The answer as the tokens that the grammar forces and the tokenizer chooses between them."""
    rest, tokens = answer.encode(), []
    ahead: list[int] = []
    while rest:
        step = list(constraint.forced())
        ahead = [] if step else ahead or tokenizer.encode(rest.decode())
        step = step or [ahead.pop(0)]
        constraint.accept(step)
        said = b"".join(map(tokenizer.token_bytes, step))
        if not rest.startswith(said):
            sys.exit(f"the grammar wants {said!r} where the answer goes on with {rest[:60]!r}")
        tokens += step
        rest = rest[len(said) :]
    return [*tokens, min(tokenizer.stop_tokens)]


class Job:
    """Runs of the case on one checkpoint."""

    def __init__(self, loaded: LoadedModel, case: Case) -> None:
        self.loaded = loaded
        self.case = case
        self.told = loaded.model
        assert isinstance(self.told, Told)
        self.grammar = compile_grammar(Schema.load(case.schema), loaded.vocabulary)
        self.told.script = script(loaded.tokenizer, self.grammar.constraint(), case.answer)

    def run(self, pages: int, plain: bool = False, most: int = 12_288) -> dict[str, Any]:
        """One answer, as its metadata, with `seconds` of the whole job."""
        rng = np.random.default_rng(pages)
        pictures = [Image.fromarray(rng.integers(0, 256, (*PAGE[::-1], 3), np.uint8)) for _ in range(pages)]
        start = time.perf_counter()
        prompt = self.loaded.prompt(extraction_prompt(self.case.schema, OWN_WORDING), pictures if self.loaded.processor else [])
        self.told.prompt = len(prompt)
        constraint = self.grammar.constraint()
        answer = self.loaded.stream(
            prompt,
            Sampling(max_tokens=most),
            constraint=OneByOne(constraint) if plain else constraint,
            hints=() if plain else self.case.lines,
        )
        for _ in answer:
            pass
        found = answer.metadata | {"seconds": time.perf_counter() - start}
        if answer.finish_reason != "length" and answer.text != self.case.answer:
            sys.exit(f"the answer is not the script: {answer.text[:200]!r}")
        return found


def opened(folder: Path, backend: str, count: bool, settings: RuntimeSettings) -> LoadedModel:
    if not count:
        real = load_model(folder, backend, settings)
        return LoadedModel(str(folder), backend, Told(real.model), real.tokenizer, real.prompts, real.processor, settings)
    from pagelift.models.prompt import PromptBuilder
    from pagelift.weights import ChatTemplate

    config, tokenizer = load_config(folder), Tokenizer.load(folder)
    prompts = PromptBuilder(config, tokenizer, ChatTemplate.load(folder, tokenizer), None)
    return LoadedModel(str(folder), "none", Told(Weightless(config)), tokenizer, prompts, None, settings)


def report(options: argparse.Namespace) -> dict[str, Any]:
    """All that was asked for."""
    quick = RuntimeSettings()
    ours = Job(opened(options.checkpoint, options.backend, options.count, quick), invoice())
    found = ours.run(1)
    steps = found["passes"] - found["prefill_passes"]
    result: dict[str, Any] = {"pagelift": found, "passes_per_token": steps / found["output_tokens"]}
    if options.documents:
        result["documents"] = documents(ours.loaded, options.documents)
    if options.count:
        return result
    slow = Job(_with(ours.loaded, RuntimeSettings(draft_rows=0)), ours.case)
    slow.loaded.service.runner.prefixes = ours.loaded.service.runner.prefixes
    plain = slow.run(1, plain=True, most=options.tokens or 12_288)
    per_token = (plain["seconds"] - plain["prefill_s"] - plain["encode_s"]) / plain["output_tokens"]
    whole = found["encode_s"] + found["prefill_s"] + per_token * found["output_tokens"]
    result["plain"] = plain | {"seconds_per_token": per_token, "seconds_all_tokens": whole}
    result["speedup"] = whole / found["seconds"]
    written = found["seconds"] - found["encode_s"] - found["prefill_s"]
    result["speedup_decoding"] = per_token * found["output_tokens"] / written
    if options.pages:
        result |= second_question(ours, options.pages)
    return result | {"machine": describe(), "checkpoint": options.checkpoint.name, "backend": options.backend}


def second_question(job: Job, pages: int) -> dict[str, Any]:
    """A document of several pages, asked for the schema and then for another one."""
    first = job.run(pages)
    other = invoice()
    properties = dict(list(other.schema["properties"].items())[:3])
    answer = json.dumps({name: json.loads(other.answer)[name] for name in properties}, ensure_ascii=False)
    second = Job(job.loaded, Case({"type": "object", "properties": properties}, answer, other.lines)).run(pages)
    share = (second["prompt_tokens"] - second["cached_tokens"]) / (first["prompt_tokens"] - first["cached_tokens"])
    return {"document": {"pages": pages, "first": first, "second": second}, "second_prefill_share": share}


def documents(loaded: LoadedModel, count: int) -> dict[str, Any]:
    """Tokens, passes that gave some, and these by those, for generated documents by kind."""
    sums: dict[str, list[int]] = {}
    for sample in islice(make_samples(0, "test"), count):
        schema = Schema.load(sample.schema)
        lines = tuple(
            "\n".join(" ".join(token.word.text for token in line.tokens) for line in analyse_page(page).lines) for page in sample.pages
        )
        read = schema.conform(extract_pages(sample.pages, schema).data).data
        answer = json.dumps(sample.expected, ensure_ascii=False)
        counts = [
            Job(loaded, Case(sample.schema, answer, hints)).run(1) for hints in (lines, (*lines, json.dumps(read, ensure_ascii=False)))
        ]
        numbers = [1, counts[0]["output_tokens"], counts[0]["forced_tokens"], *(c["passes"] - c["prefill_passes"] for c in counts)]
        for kind in (sample.kind, "all"):
            sums[kind] = [a + b for a, b in zip(sums.get(kind, [0] * len(numbers)), numbers, strict=True)]
    names = ("documents", "output_tokens", "forced_tokens", "passes_lines", "passes_lines_and_engine")
    rows = {kind: dict(zip(names, numbers, strict=True)) for kind, numbers in sums.items()}
    for row in rows.values():
        row |= {f"per_token{name[6:]}": round(row[name] / row["output_tokens"], 4) for name in names[3:]}
    return rows


def _with(loaded: LoadedModel, settings: RuntimeSettings) -> LoadedModel:
    return LoadedModel(loaded.name, loaded.backend, loaded.model, loaded.tokenizer, loaded.prompts, loaded.processor, settings)


def table(result: dict[str, Any]) -> str:
    """Where the time goes, for people."""
    rows = ["", f"{'seconds':24}{'pagelift':>12}{'one by one':>12}"]
    ours, plain = result["pagelift"], result.get("plain", {})
    for key in ("encode_s", "prefill_s", "decode_s", "grammar_s", "draft_s", "settle_s", "seconds"):
        rows.append(f"{key:24}{ours[key]:12.3f}" + (f"{plain[key]:12.3f}" if plain else ""))
    for key in ("prompt_tokens", "output_tokens", "forced_tokens", "drafted", "accepted", "passes", "prefill_passes"):
        rows.append(f"{key:24}{ours[key]:12}" + (f"{plain[key]:12}" if plain else ""))
    for key in ("passes_per_token", "speedup", "speedup_decoding", "second_prefill_share"):
        if key in result:
            rows.append(f"{key:24}{result[key]:12.3f}")
    for kind, row in result.get("documents", {}).items():
        rows.append(f"{kind:12}" + "  ".join(f"{name} {value}" for name, value in row.items()))
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="Passes over the weights and time of a whole extraction with scripted values.")
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--tokens", type=int, default=40, help="tokens that the plain run decodes; 0: all")
    parser.add_argument("--pages", type=int, default=0, help="also ask a document of so many pages twice")
    parser.add_argument("--documents", type=int, default=0, help="also count for so many generated documents")
    parser.add_argument("--count", action="store_true", help="count passes without running the weights")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    result = report(options)
    sys.stdout.write((json.dumps(result) if options.json else table(result)) + "\n")


if __name__ == "__main__":
    main()
