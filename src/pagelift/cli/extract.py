"""`pagelift extract`."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from pagelift.cli.options import DEFAULTS, MEGABYTE, Backend, Nulls, VlmBackend, local_model, model_or_server
from pagelift.cli.root import EPILOG, Done, app
from pagelift.core import Budget, ConfigError, Limits


class Format(enum.StrEnum):
    json = "json"
    jsonl = "jsonl"
    csv = "csv"


class Ocr(enum.StrEnum):
    auto = "auto"
    never = "never"
    always = "always"


_BUDGET = Budget()


@app.command(epilog=EPILOG, short_help="Documents to JSON, by a schema.")
def extract(  # noqa: PLR0913, PLR0917
    inputs: Annotated[
        list[str], typer.Argument(metavar="INPUT", help="PDF or image files, folders (searched to the bottom), - for standard input.")
    ],
    schema: Annotated[str, typer.Option("--schema", "-s", metavar="S", help="JSON Schema: a file, inline JSON, or a saved name.")],
    engine: Annotated[str, typer.Option(metavar="NAME", help="What reads the values: auto, layout, vlm, remote.")] = "auto",
    model: Annotated[
        str | None,
        typer.Option(
            metavar="M",
            help="For vlm: a checkpoint folder or a cached hub id. Default: PAGELIFT_MODEL, config.toml. "
            "For remote: the model's name there. Default: VLLM_MODEL_NAME, config.toml, the first that the server lists.",
        ),
    ] = None,
    backend: VlmBackend = Backend.auto,
    tile_cache: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="For vlm: Keep weights there as the backend cpu lays them out, for faster starts. Default: PAGELIFT_TILE_CACHE.",
            show_default=False,
        ),
    ] = None,
    prompt: Annotated[Path | None, typer.Option(metavar="FILE", help="For vlm, remote: the text to ask with, {schema} in it.")] = None,
    api_base: Annotated[
        str | None,
        typer.Option(metavar="URL", help="For remote: an OpenAI-compatible server, /v1 included. Default: VLLM_API_BASE, config.toml."),
    ] = None,
    api_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="For remote. Others can see it; prefer VLLM_API_KEY or config.toml.")
    ] = None,
    max_tokens: Annotated[
        int, typer.Option(min=1, metavar="N", help="For vlm, remote: tokens of one answer; longer lists are continued.")
    ] = _BUDGET.answer_tokens,
    max_prompt_tokens: Annotated[
        int, typer.Option(min=1, metavar="N", help="For vlm, remote: tokens of one question; longer documents are read in parts.")
    ] = _BUDGET.prompt_tokens,
    max_fields: Annotated[
        int, typer.Option(min=1, metavar="N", help="For vlm, remote: values asked for at once; wider schemas are asked in parts.")
    ] = _BUDGET.fields,
    pages: Annotated[str | None, typer.Option(metavar="PAGES", help="Pages to read, from 1, such as 1-3,7,12-. Default: all.")] = None,
    evidence: Annotated[
        bool, typer.Option("--evidence", help="Add for every value where it was read, as printed, with confidence.")
    ] = False,
    annotate: Annotated[Path | None, typer.Option(metavar="DIR", help="Write page pictures with a box around every value.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="Write one file per input there instead of standard output.")
    ] = None,
    format: Annotated[
        Format | None, typer.Option(help="Default: json; jsonl for several inputs on standard output.", show_default=False)
    ] = None,
    password: Annotated[
        str | None, typer.Option(metavar="P", help="For encrypted PDFs. Others can see it; prefer --password-file.")
    ] = None,
    password_file: Annotated[Path | None, typer.Option(metavar="FILE", help="Read the password from the first line of a file.")] = None,
    nulls: Annotated[
        Nulls, typer.Option(help="Whether every value may come back null, or only those whose schema says so.")
    ] = Nulls.allowed,
    ocr: Annotated[Ocr, typer.Option(help="Recognise characters where a page has no sound text, never, or on every page.")] = Ocr.auto,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse a schema with constraints that cannot be enforced.")] = False,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, max=256, metavar="N", help="Documents to work on at the same time.")] = 1,
    max_pages: Annotated[int, typer.Option(min=1, metavar="N", help="Refuse documents with more pages.")] = DEFAULTS.pages,
    max_file_mb: Annotated[float, typer.Option(min=0.001, metavar="MB", help="Refuse larger files.")] = DEFAULTS.file_bytes / MEGABYTE,
    max_pixels: Annotated[
        int, typer.Option(min=1, metavar="N", help="Draw pages that would have more pixels smaller, or refuse them.")
    ] = DEFAULTS.page_pixels,
    max_memory_mb: Annotated[
        float, typer.Option(min=64, metavar="MB", help="Memory of the process that opens documents.")
    ] = DEFAULTS.worker_bytes / MEGABYTE,
    open_seconds: Annotated[
        float, typer.Option(min=0.001, metavar="S", help="Give up on a document that takes longer to open.")
    ] = DEFAULTS.open_seconds,
    page_seconds: Annotated[
        float, typer.Option(min=0.001, metavar="S", help="Give up on a document with a page that takes longer to read or draw.")
    ] = DEFAULTS.page_seconds,
    ocr_seconds: Annotated[
        float, typer.Option(min=0.001, metavar="S", help="The same for the recognition of characters on a page.")
    ] = DEFAULTS.ocr_seconds,
) -> None:
    """Extract what a schema asks for from documents, as JSON on standard output."""
    from pagelift.commands import extract as command

    if password is not None and password_file is not None:
        raise ConfigError("--password and --password-file were both given; give one of them")
    limits = Limits(
        file_bytes=int(max_file_mb * MEGABYTE), pages=max_pages, page_pixels=max_pixels, page_seconds=page_seconds,
        ocr_seconds=ocr_seconds, open_seconds=open_seconds, worker_bytes=int(max_memory_mb * MEGABYTE),
    )  # fmt: skip
    job = command.Job(
        inputs, schema, engine, pages, command.read_password(password_file) if password_file else password, evidence, annotate, out,
        format.value if format else None, nulls.value, ocr.value, strict, jobs, limits,
        model_or_server(engine, local_model(engine, model, backend, prompt, tile_cache), api_base, api_key),
        Budget(prompt_tokens=max_prompt_tokens, answer_tokens=max_tokens, fields=max_fields),
    )  # fmt: skip
    raise Done(command.run(job))
