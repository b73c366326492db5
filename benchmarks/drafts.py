"""Passes per token of a trained model with drafts, and whether its answers are byte for byte those of one token at a time.

    python benchmarks/drafts.py models/pagelift-nano --count 20

Documents are invoices of the generator's test split. Passes that only read the prompt are not counted. Without drafts a pass gives one
token, and those that the grammar forces behind it. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import islice
from pathlib import Path
from typing import Any

from pagelift import Extractor
from pagelift.evals.synthetic import Sample, make_samples
from pagelift.extract.vlm import VlmEngine
from pagelift.runtime import RuntimeSettings


def answers(model: Path, backend: str, samples: list[Sample], draft_rows: int) -> tuple[list[str], dict[str, Any]]:
    """The JSON of each document, and sums of what the runtime counted."""
    engine = VlmEngine(model, backend, settings=RuntimeSettings(draft_rows=draft_rows))
    texts, sums = [], {"output_tokens": 0, "passes": 0, "prefill_passes": 0}
    for sample in samples:
        extraction = Extractor(sample.schema, engine).extract(sample.pdf)
        texts.append(json.dumps(extraction.data, ensure_ascii=False))
        for name in sums:
            sums[name] += extraction.metadata.get(name, 0)
    return texts, sums


def main() -> None:
    parser = argparse.ArgumentParser(description="Count passes per token with drafts, and compare answers with those without.")
    parser.add_argument("model", type=Path)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--kind", default="invoice")
    parser.add_argument("--seed", type=int, default=77)
    given = parser.parse_args()
    samples = list(islice((one for one in make_samples(given.seed, "test") if one.kind == given.kind), given.count))
    plain, _ = answers(given.model, given.backend, samples, 0)
    drafted, sums = answers(given.model, given.backend, samples, RuntimeSettings().draft_rows)
    report = {
        "model": str(given.model),
        "backend": given.backend,
        "documents": len(samples),
        "equal": sum(one == two for one, two in zip(plain, drafted, strict=True)),
        **sums,
        "passes_per_token": round((sums["passes"] - sums["prefill_passes"]) / max(1, sums["output_tokens"]), 4),
    }
    sys.stdout.write(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
