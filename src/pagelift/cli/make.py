"""`pagelift synth`, `pagelift quantize`: documents and checkpoints that are made."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from pagelift.cli.options import Backend, QuantizationMethod
from pagelift.cli.root import EPILOG, Done, app


class Split(enum.StrEnum):
    train = "train"
    validation = "validation"
    test = "test"


@app.command(epilog=EPILOG, short_help="Make documents with known values.")
def synth(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A new folder, laid out for pagelift eval.")],
    count: Annotated[int, typer.Option(min=1, metavar="N", help="Documents.")] = 100,
    seed: Annotated[int, typer.Option(min=0, max=9_999_999, metavar="S", help="The same seed gives the same documents.")] = 0,
    split: Annotated[Split, typer.Option(help="Layouts, names and wordings of one split occur in no other.")] = Split.test,
    kinds: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="invoice, order, receipt, statement, form or letter; may be repeated. Default: all."),
    ] = None,
    pictures: Annotated[bool, typer.Option("--pictures", help="Scan-like pictures instead of PDF files.")] = False,
) -> None:
    """Make documents in six languages, with schemas and true values, without end: for training, measuring and trying out."""
    from pagelift.commands import synth as command

    raise Done(command.run(out, command.Order(count, seed, split.value, tuple(kinds or ()), pictures)))


@app.command(epilog=EPILOG, short_help="Make a checkpoint smaller, measured on documents.")
def quantize(  # noqa: PLR0913, PLR0917
    model: Annotated[str, typer.Argument(metavar="M", help="A checkpoint folder or a cached hub id, in 16 bits.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A new folder; the same command again goes on where it was killed.")],
    target: Annotated[str, typer.Option(metavar="T", help="oQ8, oQ6, oQ5, oQ4, oQ3.5, oQ3, or bits per weight such as 4.25.")] = "oQ4",
    size_gb: Annotated[
        float | None, typer.Option(min=0.0001, metavar="X", help="At most so many GB (10^9 bytes) instead of a target.")
    ] = None,
    method: Annotated[
        QuantizationMethod, typer.Option(help="best: measured on documents; oq: the published plan, rounded to nearest.")
    ] = QuantizationMethod.best,
    calibration: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Your own documents beside generated ones; see docs/quantization.md.")
    ] = None,
    vision: Annotated[
        bool | None,
        typer.Option("--vision/--no-vision", help="Whether best may pack the vision tower too. Default: with --size-gb only."),
    ] = None,
    documents: Annotated[int, typer.Option(min=0, metavar="N", help="Generated documents for the statistics.")] = 24,
    sensitivity_documents: Annotated[int, typer.Option(min=0, metavar="N", help="Generated documents for the sensitivities.")] = 4,
    held_out: Annotated[int, typer.Option(min=0, metavar="N", help="Generated documents to decide and to measure on in the end.")] = 8,
    rounds: Annotated[int, typer.Option(min=0, metavar="N", help="Rounds of trying other allocations on held-out documents.")] = 0,
    text: Annotated[int, typer.Option(min=1, metavar="N", help="Pieces of 256 tokens of text for the block scores of method oq.")] = 128,
    backend: Annotated[Backend, typer.Option(help="What runs the model; auto is cpu-exact.")] = Backend.auto,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the bits of every matrix.")] = None,
) -> None:
    """Write a checkpoint in MLX affine format that pagelift, mlx-lm and mlx-vlm load, with the bits where the answers need them."""
    from pagelift.commands import quantize as command
    from pagelift.quantization.job import Effort, Job
    from pagelift.weights import find_model

    effort = Effort(documents, sensitivity_documents, held_out, rounds, text)
    job = Job(find_model(model), out, target, size_gb, method.value, calibration, vision, effort, "" if Path(model).is_dir() else model)
    raise Done(command.run(job, backend.value, plot))
