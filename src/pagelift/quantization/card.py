"""The model card of a quantized checkpoint: what it was made from, how, and what was measured."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pagelift.core.files import write_atomic
from pagelift.quantization.job import Job, Result

_LICENCE = re.compile(r"^(license\w*:.*)$", re.MULTILINE)
_FRONT = re.compile(r"\A---\n(.*?)\n---", re.DOTALL)


def write_card(job: Job, result: Result, command: str) -> None:
    """README.md in the output folder. command: exactly what was run. Raises ConfigError."""
    write_atomic(job.out / "README.md", card(job, result, command))


def card(job: Job, result: Result, command: str) -> str:
    """The text of the card; licence lines are those of the source's card."""
    readme = job.source / "README.md"
    front = _FRONT.match(readme.read_text(encoding="utf-8", errors="replace")) if readme.is_file() else None
    licence = _LICENCE.findall(front[1]) if front else []
    sizes, allocation = result.source.sizes, result.plan.allocation
    base = [f"base_model: {job.name}"] if "/" in job.name else []
    head = ["---", *licence, *base, "library_name: mlx", "pipeline_tag: image-text-to-text", "tags:", "- mlx", "- pagelift", "---", ""]
    name = job.title
    about = [
        f"# {name}, {result.target.name}, method {job.method}",
        "",
        f"`{name}` quantized in MLX affine format; loads in pagelift, mlx-lm and mlx-vlm. The licence of the original holds for it.",
        "",
        "```",
        command,
        "```",
        "",
        "| | |",
        "|---|---|",
        f"| size of all tensors | {result.size / 1e6:,.1f} MB |",
        f"| bits per weight without the vision tower | {result.text_bits:.3f} |",
        f"| bits per weight of the target (vision tower counted in 16 bits) | {sizes.bits_of(result.size):.3f} |",
        "",
    ]
    return "\n".join([*head, *about, *_measured(result.divergences), *_bits_table(result), *_notes(result.plan.notes, len(allocation))])


def _measured(divergences: Sequence[Sequence[float]]) -> list[str]:
    tokens = sorted(value for document in divergences for value in document)
    if not tokens:
        return []
    documents = sum(bool(document) for document in divergences)
    return [
        f"Divergence of the answers from the original's, KL(original || this) in nats, on {len(tokens)} tokens of values of {documents}",
        "generated documents that had no part in the statistics (with method best they decided between allocations):",
        "",
        "| mean | median | 99th percentile |",
        "|---|---|---|",
        f"| {statistics.fmean(tokens):.5f} | {statistics.median(tokens):.5f} | {tokens[int(0.99 * (len(tokens) - 1))]:.5f} |",
        "",
        "`pagelift compare` measures it on your own documents.",
        "",
    ]


def _bits_table(result: Result) -> list[str]:
    """How many matrices of each role have how many bits."""
    counts: dict[str, Counter[int]] = {}
    for module in result.source.sizes.modules:
        form = result.plan.allocation.get(module.name)
        role = module.role if module.is_text else f"vision {module.role}"
        counts.setdefault(role, Counter())[form.bits if form else 16] += 1
    widths = sorted({bits for counter in counts.values() for bits in counter})
    lines = [f"| matrices | {' | '.join(f'{bits} bits' for bits in widths)} |", "|---|" + "---|" * len(widths)]
    return [*lines, *(f"| {role} | {' | '.join(str(counter[b] or '') for b in widths)} |" for role, counter in counts.items()), ""]


def _notes(notes: Sequence[str], modules: int) -> list[str]:
    return [f"How the {modules} formats were decided:", "", *(f"* {note}" for note in notes), ""]


def shell_command(arguments: Sequence[str]) -> str:
    """A command line that a shell takes as it is."""
    import shlex

    first, *rest = arguments
    return shlex.join([Path(first).name if Path(first).stem != "__main__" else "pagelift", *rest])
