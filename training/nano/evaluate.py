"""How good a checkpoint is on generated documents that it was never taught: through the product, grammar and all.

    python -m nano.evaluate --model models/pagelift-nano --count 200
    python -m nano.evaluate --model models/pagelift-nano --count 200 --control

With --control every question is put to the document after it, of the same kind: what is right then was guessed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from pagelift import Extractor
from pagelift.core import Json, PageliftError
from pagelift.evals.scoring import Score, Scorer
from pagelift.evals.synthetic import SPLITS, Sample, Split, make_samples
from pagelift.extract.vlm import VlmEngine


def evaluate(engine: VlmEngine, samples: Iterable[Sample], control: bool) -> dict[str, Json]:
    """Shares of flat and array fields right, of nulls filled, of documents without a mistake."""
    counts: Counter[str] = Counter()
    documents = list(samples)
    for index, sample in enumerate(documents):
        shown = _another(documents, index) if control else sample
        scorer = Scorer(sample.loose)
        try:
            score = scorer.score(sample.expected, Extractor(sample.schema, engine).extract(shown.pdf).data)
        except PageliftError as error:
            counts[f"failed: {type(error).__name__}"] += 1
            score = scorer.missing(sample.expected)
        _count(score, sample.expected, counts)
    return _shares(counts)


def _another(documents: list[Sample], index: int) -> Sample:
    """The next document of the kind and language, or else of the kind, or else any."""
    one = documents[index]
    others = documents[index + 1 :] + documents[:index]
    return next(
        (other for alike in ((True, True), (True, False), (False, False)) for other in others if _alike(one, other, alike)),
        one,
    )


def _alike(one: Sample, other: Sample, alike: tuple[bool, bool]) -> bool:
    kind, language = alike
    return (not kind or one.kind == other.kind) and (not language or one.language == other.language)


def _count(score: Score, expected: Json, counts: Counter[str]) -> None:
    counts["documents"] += 1
    counts["documents right"] += not score.mistakes
    counts["nulls"] += score.null_fields
    for path in score.right:
        where = "array" if "[]" in path else "flat"
        counts[f"{where} right"] += 1
        counts[where] += 1
        if where == "flat" and _at(expected, path) not in (None, []):
            counts["shown right"] += 1
            counts["shown"] += 1
    for mistake in score.mistakes:
        where = "array" if "[]" in mistake.path else "flat"
        counts[where] += mistake.count
        if mistake.kind == "false fill":
            counts["false fills"] += 1
        elif where == "flat":
            counts["shown"] += mistake.count


def _at(expected: Json, path: str) -> Json:
    for step in path.split("."):
        expected = expected.get(step) if isinstance(expected, dict) else None
    return expected


def _shares(counts: Counter[str]) -> dict[str, Json]:
    def share(right: str, all_of: str) -> float | None:
        return round(counts[right] / counts[all_of], 4) if counts[all_of] else None

    return {
        "documents": counts["documents"],
        "document accuracy": share("documents right", "documents"),
        "flat": share("flat right", "flat"),
        "flat, not null": share("shown right", "shown"),
        "array": share("array right", "array"),
        "false fills": share("false fills", "nulls"),
        "fields": {name: counts[name] for name in ("flat", "array", "nulls")},
        "failed": {name: count for name, count in counts.items() if name.startswith("failed")},
    }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Evaluate a checkpoint on generated documents.")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--split", choices=SPLITS, default="test")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=77, help="of the documents")
    parser.add_argument("--control", action="store_true")
    return parser.parse_args()


def main() -> None:
    given = parse()
    split: Split = given.split
    samples = islice(make_samples(given.seed, split), given.count)
    shares = evaluate(VlmEngine(given.model, given.backend), samples, given.control)
    sys.stdout.write(json.dumps({"model": str(given.model), "split": split, "control": given.control, **shares}, indent=2) + "\n")


if __name__ == "__main__":
    main()
