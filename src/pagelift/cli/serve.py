"""`pagelift serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pagelift import __version__
from pagelift.cli.options import DEFAULTS, MEGABYTE, Backend, ModelBackend, TileCache, local_model, model_or_server
from pagelift.cli.root import EPILOG, Done, app


@app.command(epilog=EPILOG, short_help="Serve extraction and models over HTTP.")
def serve(  # noqa: PLR0913, PLR0917
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", metavar="M", help="A checkpoint folder or a cached hub id. Default: PAGELIFT_MODEL, config.toml."),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What reads values unless a request names a model: auto, layout, vlm, remote (by VLLM_API_BASE, config.toml).",
        ),
    ] = "auto",
    backend: ModelBackend = Backend.auto,
    tile_cache: TileCache = None,
    prompt: Annotated[Path | None, typer.Option(metavar="FILE", help="For vlm, remote: the text to ask with, {schema} in it.")] = None,
    alias: Annotated[list[str] | None, typer.Option(metavar="NAME", help="A further name of the model; may be repeated.")] = None,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen; 0.0.0.0 for all networks.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, metavar="N", help="0 for any that is free.")] = 8080,
    api_key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY", envvar="PAGELIFT_API_KEY", help="Ask for this key; may be repeated. Others see it; prefer --api-key-file."
        ),
    ] = None,
    api_key_file: Annotated[Path | None, typer.Option(metavar="FILE", help="Keys, one a line.")] = None,
    tls_certificate: Annotated[Path | None, typer.Option(metavar="FILE", help="PEM, with the chain.")] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="PEM.")] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Answer only requests to this name (Host header); may be repeated.")
    ] = None,
    cors_origin: Annotated[list[str] | None, typer.Option(metavar="ORIGIN", help="Web pages that may call; may be repeated.")] = None,
    allow_urls: Annotated[bool, typer.Option("--allow-urls", help="Fetch documents from public addresses.")] = False,
    allow_folder: Annotated[
        list[Path] | None, typer.Option(metavar="DIR", help="Take documents by file:// URL from there; may be repeated.")
    ] = None,
    max_body_mb: Annotated[float, typer.Option(min=0.001, metavar="MB", help="Refuse larger requests.")] = 96.0,
    max_pages: Annotated[int, typer.Option(min=1, metavar="N", help="Refuse requests with more pages.")] = 500,
    max_pixels: Annotated[int, typer.Option(min=1, metavar="N", help="As for extract.")] = DEFAULTS.page_pixels,
    request_seconds: Annotated[float, typer.Option(min=0.001, metavar="S", help="Give up on a request after this time.")] = 600.0,
    header_seconds: Annotated[
        float, typer.Option(min=0.001, metavar="S", help="Cut off a client that sends no whole head in this time.")
    ] = 15.0,
    stall_seconds: Annotated[float, typer.Option(min=0.001, metavar="S", help="The same when no byte comes or goes.")] = 30.0,
    drain_seconds: Annotated[float, typer.Option(min=0.001, metavar="S", help="For requests in progress at the end.")] = 30.0,
    running: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Requests to work on at a time. Default: one per core, 32 for models.", show_default=False),
    ] = None,
    waiting: Annotated[int, typer.Option(min=0, metavar="N", help="Requests that may wait behind those; more get status 429.")] = 64,
    jobs_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Database of the jobs. Default: in the user's data folder.", show_default=False)
    ] = None,
    job_workers: Annotated[int, typer.Option(min=1, metavar="N", help="Jobs to work on at a time.")] = 1,
    keep_days: Annotated[float, typer.Option(min=0.001, metavar="DAYS", help="Keep results of jobs so long.")] = 7.0,
    schema_folder: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The schema library. Default: that of pagelift schema.", show_default=False)
    ] = None,
) -> None:
    """Serve extraction, and a model if there is one, over HTTP: an API that OpenAI's clients can use, and one with all evidence.

    Documents of requests come as data; nothing is fetched unless that is allowed. The API is described at /docs.
    """
    from pagelift.commands import serve as command

    body_bytes = int(max_body_mb * MEGABYTE)
    job = command.Job(
        engine, model_or_server(engine, local_model(engine, model, backend, prompt, tile_cache), None, None), tuple(alias or ()),
        command.Listening(host, port, tls_certificate, tls_key, tuple(allow_host or ())),
        command.Doors(tuple(api_key or ()), api_key_file, tuple(cors_origin or ()), allow_urls, tuple(allow_folder or ())),
        command.Sizes(body_bytes, max_pages, max_pixels, running, waiting),
        command.Times(request_seconds, header_seconds, stall_seconds, drain_seconds),
        command.Files(jobs_file, job_workers, keep_days, schema_folder), __version__,
    )  # fmt: skip
    raise Done(command.run(job))
