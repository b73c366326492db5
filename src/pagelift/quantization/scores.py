"""The block scores of the published oQ plan."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pagelift.backends.tensors import BITS
from pagelift.evals.forced import Forced
from pagelift.quantization.carry import Carried, CarryWriter
from pagelift.quantization.moments import Moments
from pagelift.quantization.rounding import Choice, Rounder, choices_work
from pagelift.quantization.stream import PartRunner, Source
from pagelift.quantization.work import Kind, Progress, Unwatched, together
from pagelift.weights.quant.layout import Part
from pagelift.weights.quant.targets import base_format


def block_scores(source: Source, texts: Sequence[Forced], base_bits: int, work: Path, progress: Progress | None = None) -> dict[int, float]:
    """How much each decoder block's output suffers when the whole block is rounded to nearest one step below `base_bits`.

    The mean squared error of the block's output over its mean square, on plain text, each block with inputs from the original.
    """
    progress = progress or Unwatched()
    scores: dict[int, float] = {}
    carried: Carried | None = None
    work.mkdir(parents=True, exist_ok=True)
    for place, part in enumerate(source.parts):
        if part.name in ("vision", "head"):
            continue
        after = Carried(work / f"text-{place}.f32", [len(text) for text in texts], source.config.text.hidden_size)
        score = _passed(source, part, _lowered(source, part, base_bits), (texts, carried, after), progress)
        if part.block is not None:
            scores[part.block] = score
        if carried is not None:
            carried.path.unlink(missing_ok=True)
        carried = after
        source.release(part)
    if carried is not None:
        carried.path.unlink(missing_ok=True)
    return scores


def _passed(
    source: Source, part: Part, lowered: list[Choice], rows: tuple[Sequence[Forced], Carried | None, Carried], progress: Progress
) -> float:
    """Texts through a part as it is and rounded: the error's share of the output. rows: the texts, their rows before it and after it."""
    texts, before, after = rows
    rounder = Rounder(source, Moments(source.backend, ()), progress)
    swapped = {choice[0]: rounder.matrix(*choice) for choice in lowered}
    del rounder  # a block, and the rounded one
    original, other = PartRunner(source, part, {}), PartRunner(source, part, swapped)
    progress.advance("run", 2 * source.loading(part))
    writer = CarryWriter(after)
    error = power = 0.0
    for k, text in enumerate(texts):
        if before is None:
            found = original.embed(text, None)
        else:
            found = original.block(text, before[k])
            error += float(np.square(other.block(text, before[k]) - found, dtype=np.float64).sum())
            power += float(np.square(found, dtype=np.float64).sum())
        writer.add(found)
        progress.advance("run", 2 * source.running(part, [text]))
    writer.finish()
    return error / power if power else 0.0


def scores_work(source: Source, texts: Sequence[Forced], base_bits: int) -> dict[Kind, float]:
    """What `block_scores` will have told in the end."""
    parts = [part for part in source.parts if part.block is not None or part.name == "embeddings"]
    runs = sum(2 * (source.loading(part) + source.running(part, texts)) for part in parts)
    return together([{"run": runs}, *(choices_work(source, part, _lowered(source, part, base_bits), False) for part in parts)])


def _lowered(source: Source, part: Part, base_bits: int) -> list[Choice]:
    """The matrices of a block one step below `base_bits`."""
    lower = BITS[max(0, BITS.index(base_bits) - 1)]
    forms = {module.name: base_format(lower, module.in_features) for module in source.modules(part) if part.block is not None}
    return [(name, form, "nearest") for name, form in forms.items() if form]
