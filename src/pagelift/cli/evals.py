"""`pagelift eval`, `compare`, `bench`: engines and checkpoints on documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pagelift.cli.options import Backend, QuantizationMethod, VlmBackend, local_model
from pagelift.cli.root import EPILOG, Done, app


@app.command("eval", epilog=EPILOG, short_help="Measure an engine on documents with known values.")
def evaluate(  # noqa: PLR0913, PLR0917
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Collections of documents, schemas and true values; see docs/cli.md.")],
    engine: Annotated[
        str | None, typer.Option(metavar="NAME", help="The engine to measure. Default: vlm with --model, else layout.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", metavar="M", help="For vlm: a checkpoint folder or a cached hub id.")
    ] = None,
    backend: VlmBackend = Backend.auto,
    only: Annotated[list[str] | None, typer.Option(metavar="COLLECTION", help="Only this collection; may be repeated.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="At most so many documents per collection.")] = None,
    wrong: Annotated[int, typer.Option(min=0, metavar="N", help="List the first N mistakes.")] = 0,
    fields: Annotated[bool, typer.Option("--fields", help="Accuracy per field.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write all numbers as JSON.")] = None,
    predictions: Annotated[Path | None, typer.Option(metavar="DIR", help="Write the results as <collection>/<document>.json.")] = None,
    cache: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the words of documents there between runs; only the engine is timed then.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, max=256, metavar="N", help="Processes; for vlm: documents at a time.")] = 1,
) -> None:
    """Measure an engine on documents with known values: field and document accuracy, false fills, seconds per page."""
    from pagelift.commands import evaluate as command
    from pagelift.evals.runner import Run
    from pagelift.extract.engines import NOTHING_ASKED

    engine = engine or ("vlm" if model else "layout")
    selection = command.Selection(folder, tuple(only or ()), limit, jobs)
    how = Run(engine, cache, local_model(engine, model, backend, None, None) or NOTHING_ASKED)
    raise Done(command.run(selection, how, command.Output(wrong, fields, json_file, predictions)))


@app.command(epilog=EPILOG, short_help="Compare checkpoints on documents.")
def compare(  # noqa: PLR0913, PLR0917
    models: Annotated[
        list[str], typer.Argument(metavar="MODEL...", help="Checkpoint folders or cached hub ids, two or more; the first is the reference.")
    ],
    folder: Annotated[
        Path | None,
        typer.Option(
            "--data", metavar="DIR", help="Documents with true values, as for eval, or with --schema any documents.", show_default=False
        ),
    ] = None,
    schema: Annotated[
        str | None,
        typer.Option("--schema", "-s", metavar="S", help="For documents without true values: a file, inline JSON, a saved name."),
    ] = None,
    only: Annotated[list[str] | None, typer.Option(metavar="COLLECTION", help="Only this collection; may be repeated.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="At most so many documents per collection.")] = None,
    count: Annotated[int, typer.Option(min=2, metavar="N", help="Without --data: so many generated documents.")] = 60,
    seed: Annotated[int, typer.Option(min=0, max=9_999_999, metavar="S", help="Of the generated documents.")] = 0,
    backend: Annotated[Backend, typer.Option(help="What runs the models.")] = Backend.auto,
    divergence_backend: Annotated[
        Backend | None, typer.Option(help="What the divergence is of; cpu-exact for that of the weights alone. Default: as --backend.")
    ] = None,
    controls: Annotated[
        bool, typer.Option("--controls", help="Add checkpoints of the same bytes: one width, the plan of oQ, bits drawn at random.")
    ] = False,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Cut answers off there, so that a model that runs on takes no hours.")
    ] = None,
    flips: Annotated[int, typer.Option(min=0, metavar="N", help="List so many fields of each model that are read otherwise.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print all numbers and flips as JSON.")] = False,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw quality against bytes (PNG).")] = None,
    work: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep measurements there; an interrupted comparison goes on, new models are added.")
    ] = None,
) -> None:
    """Compare checkpoints: how far quantized ones are from the first, which fields flip, what they take and how fast they are.

    Divergence is measured on the true answers, token by token; accuracy through extraction as it is. One model is in memory at a time.
    """
    from pagelift.commands import compare as command
    from pagelift.evals.materials import Generated

    documents = command.Documents(folder, schema, tuple(only or ()), limit, Generated(count, seed))
    how = command.How(backend.value, divergence_backend.value if divergence_backend else "", work, controls, max_tokens)
    raise Done(command.run(models, documents, how, command.Output(as_json, plot, flips)))


@app.command(epilog=EPILOG, short_help="Measure a model in all sizes and by all methods.")
def bench(  # noqa: PLR0913, PLR0917
    model: Annotated[str, typer.Option("--model", "-m", metavar="M", help="A checkpoint folder or a cached hub id, in 16 bits.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the tables into this page, between markers, and the plot beside it.")
    ] = None,
    folders: Annotated[
        list[Path] | None, typer.Option("--data", metavar="DIR", help="Documents with true values, as for eval, too; may be repeated.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="At most so many documents per collection of those.")] = None,
    only: Annotated[list[str] | None, typer.Option(metavar="COLLECTION", help="Only this collection of those; may be repeated.")] = None,
    count: Annotated[int, typer.Option(min=2, metavar="N", help="Generated documents, of split test.")] = 60,
    seed: Annotated[int, typer.Option(min=0, max=9_999_999, metavar="S", help="Of the generated documents.")] = 0,
    target: Annotated[
        list[str] | None, typer.Option(metavar="T", help="As for quantize; may be repeated. Default: oQ8, oQ6, oQ5, oQ4, oQ3.5, oQ3.")
    ] = None,
    method: Annotated[list[QuantizationMethod] | None, typer.Option(help="As for quantize; may be repeated. Default: both.")] = None,
    controls: Annotated[bool, typer.Option("--controls", help="Also one width and bits drawn at random, at the bytes of best.")] = False,
    calibration: Annotated[Path | None, typer.Option(metavar="DIR", help="As for quantize.")] = None,
    backend: Annotated[Backend, typer.Option(help="What runs the variants when they are measured.")] = Backend.auto,
    divergence_backend: Annotated[
        Backend | None, typer.Option(help="What the divergence is of; cpu-exact for that of the weights alone. Default: as --backend.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Cut answers off there, so that a model that runs on takes no hours.")
    ] = None,
    work: Annotated[
        Path, typer.Option(metavar="DIR", help="Where finished rows and measurements are kept; the same command again goes on there.")
    ] = Path("pagelift-bench"),
    keep: Annotated[bool, typer.Option("--keep", help="Keep the checkpoints that are made; otherwise one is on disk at a time.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
) -> None:
    """Make all sizes of a model, by the published plan and by measurement, and measure each: bytes, speed, divergence, accuracy.

    The tables are for docs/benchmarks.md. Takes hours for large models; it can be interrupted and goes on.
    """
    from pagelift.commands import bench as command
    from pagelift.evals.materials import Generated

    asked = command.Bench(
        model,
        work,
        tuple(target or command.TARGETS),
        tuple(one.value for one in method) if method else command.METHODS,
        tuple(folders or ()),
        limit,
        Generated(count, seed),
        calibration,
        controls=controls,
        keep=keep,
        backend=backend.value,
        traced=divergence_backend.value if divergence_backend else "",
        max_tokens=max_tokens,
        only=tuple(only or ()),
    )
    raise Done(command.run(asked, out, as_json))
