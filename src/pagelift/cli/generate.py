"""`pagelift generate`."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from pagelift.cli.options import Backend, ModelBackend, TileCache, tile_cache_folder
from pagelift.cli.root import EPILOG, Done, app


class BoxUnits(enum.StrEnum):
    thousandths = "thousandths"
    pixels = "pixels"


@app.command(epilog=EPILOG, short_help="Ask a model about pictures.")
def generate(  # noqa: PLR0913, PLR0917
    model: Annotated[
        str, typer.Option("--model", "-m", metavar="M", envvar="PAGELIFT_MODEL", help="A checkpoint folder or a cached hub id.")
    ],
    prompt: Annotated[str, typer.Option("--prompt", "-p", metavar="TEXT", help="What to ask, or @FILE to read it from.")],
    image: Annotated[
        list[str] | None, typer.Option("--image", "-i", metavar="FILE", help="A picture or PDF, before the text; may be repeated.")
    ] = None,
    video: Annotated[
        list[Path] | None, typer.Option(metavar="PATH", help="A video, animated picture or folder of frames; may be repeated.")
    ] = None,
    max_tokens: Annotated[int, typer.Option(min=1, metavar="N", help="Tokens of the answer at most.")] = 4096,
    temperature: Annotated[float, typer.Option(min=0, metavar="T", help="0 takes the likeliest token every time.")] = 0.0,
    top_p: Annotated[float, typer.Option(metavar="P", help="Draw from the likeliest tokens that have this probability together.")] = 1.0,
    seed: Annotated[int | None, typer.Option(min=0, metavar="N", help="Makes draws repeatable.")] = None,
    backend: ModelBackend = Backend.auto,
    tile_cache: TileCache = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object: the answer, and places that it names, checked against the page.")
    ] = False,
    box_units: Annotated[
        BoxUnits, typer.Option(help="What the model's coordinates count: thousandths of the picture's sides, or its pixels.")
    ] = BoxUnits.thousandths,
) -> None:
    """Ask a model about pictures: the answer on standard output as it comes, statistics on standard error.

    Only the checkpoint's own preprocessor and chat template are used. Nothing is fetched; see `pagelift models pull`.
    """
    from pagelift.commands import generate as command
    from pagelift.runtime import Sampling

    sampling = Sampling(temperature, top_p, seed, max_tokens)
    files = tuple(image or ()), tuple(video or ())
    kept = tile_cache or tile_cache_folder()
    raise Done(command.run(command.Job(model, prompt, *files, backend.value, sampling, as_json, box_units.value, kept)))
