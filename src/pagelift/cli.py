"""The command `pagelift`. What a subcommand does lies in `pagelift.commands` and is imported when it runs."""

from __future__ import annotations

import enum
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from pagelift import __version__
from pagelift.commands import ExitCode, say, set_up_streams
from pagelift.core import Budget, ConfigError, EngineError, Limits, PageliftError, SchemaError

if TYPE_CHECKING:
    from pagelift.extract import LocalModel, RemoteServer

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
EPILOG = "Exit codes: 0 all fine, 1 usage, 2 nothing succeeded, 3 schema refused, 4 some inputs failed."

app = typer.Typer(
    help="Documents to JSON that conforms to a JSON Schema, with the place on the page where each value was read.",
    epilog=EPILOG,
    context_settings=SETTINGS,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    add_completion=False,
)
schema_app = typer.Typer(
    help="Check, infer and save schemas.", epilog=EPILOG, context_settings=SETTINGS, rich_markup_mode=None, no_args_is_help=True
)
app.add_typer(schema_app, name="schema")
models_app = typer.Typer(
    help="List, fetch and describe models.", epilog=EPILOG, context_settings=SETTINGS, rich_markup_mode=None, no_args_is_help=True
)
app.add_typer(models_app, name="models")


class Format(enum.StrEnum):
    json = "json"
    jsonl = "jsonl"
    csv = "csv"


class Nulls(enum.StrEnum):
    allowed = "allowed"
    declared = "declared"


class Ocr(enum.StrEnum):
    auto = "auto"
    never = "never"
    always = "always"


class Backend(enum.StrEnum):
    auto = "auto"
    cpu = "cpu"
    cpu_exact = "cpu-exact"
    mlx = "mlx"
    reference = "reference"


class BoxUnits(enum.StrEnum):
    thousandths = "thousandths"
    pixels = "pixels"


class Split(enum.StrEnum):
    train = "train"
    validation = "validation"
    test = "test"


class QuantizationMethod(enum.StrEnum):
    best = "best"
    oq = "oq"


class Done(SystemExit):
    """Ends the command with one of our own exit codes; the codes of the command line parser are mapped in `main`."""


def main() -> NoReturn:
    """Run the command and exit."""
    set_up_streams()
    try:
        app()
    except Done:
        raise
    except SystemExit as end:
        raise SystemExit(ExitCode.USAGE if end.code == 2 else end.code) from None  # 2 is what the parser gives for usage errors
    except PageliftError as error:
        say(f"error: {error}")
        raise SystemExit(_code_of(error)) from None
    raise AssertionError("typer returned")


def _code_of(error: PageliftError) -> ExitCode:
    if isinstance(error, SchemaError):
        return ExitCode.SCHEMA_REFUSED
    return ExitCode.USAGE if isinstance(error, ConfigError | EngineError) else ExitCode.NOTHING_SUCCEEDED


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pagelift {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")] = False,
) -> None:
    pass


_DEFAULTS = Limits()
_BUDGET = Budget()
_MB = 1024 * 1024


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
    backend: Annotated[Backend, typer.Option(help="For vlm: what runs the model.")] = Backend.auto,
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
    max_pages: Annotated[int, typer.Option(min=1, metavar="N", help="Refuse documents with more pages.")] = _DEFAULTS.pages,
    max_file_mb: Annotated[float, typer.Option(min=0.001, metavar="MB", help="Refuse larger files.")] = _DEFAULTS.file_bytes / _MB,
    max_pixels: Annotated[
        int, typer.Option(min=1, metavar="N", help="Draw pages that would have more pixels smaller, or refuse them.")
    ] = _DEFAULTS.page_pixels,
    max_memory_mb: Annotated[
        float, typer.Option(min=64, metavar="MB", help="Memory of the process that opens documents.")
    ] = _DEFAULTS.worker_bytes / _MB,
    open_seconds: Annotated[
        float, typer.Option(min=0.001, metavar="S", help="Give up on a document that takes longer to open.")
    ] = _DEFAULTS.open_seconds,
    page_seconds: Annotated[
        float, typer.Option(min=0.001, metavar="S", help="Give up on a document with a page that takes longer to read or draw.")
    ] = _DEFAULTS.page_seconds,
    ocr_seconds: Annotated[
        float, typer.Option(min=0.001, metavar="S", help="The same for the recognition of characters on a page.")
    ] = _DEFAULTS.ocr_seconds,
) -> None:
    """Extract what a schema asks for from documents, as JSON on standard output."""
    from pagelift.commands import extract as command

    if password is not None and password_file is not None:
        raise ConfigError("--password and --password-file were both given; give one of them")
    limits = Limits(
        file_bytes=int(max_file_mb * _MB), pages=max_pages, page_pixels=max_pixels, page_seconds=page_seconds,
        ocr_seconds=ocr_seconds, open_seconds=open_seconds, worker_bytes=int(max_memory_mb * _MB),
    )  # fmt: skip
    job = command.Job(
        inputs, schema, engine, pages, command.read_password(password_file) if password_file else password, evidence, annotate, out,
        format.value if format else None, nulls.value, ocr.value, strict, jobs, limits,
        _model(engine, _local(engine, model, backend, prompt, tile_cache), api_base, api_key),
        Budget(prompt_tokens=max_prompt_tokens, answer_tokens=max_tokens, fields=max_fields),
    )  # fmt: skip
    raise Done(command.run(job))


def _model(engine: str, local: LocalModel | None, api_base: str | None, api_key: str | None) -> LocalModel | RemoteServer | None:
    """The model or server that was asked for; the environment names of lift-pdf count only for the engine remote."""
    from pagelift.extract.settings import configured_server

    if engine != "remote":
        if api_base or api_key:
            raise ConfigError("--api-base and --api-key are for --engine remote; choose that engine or leave them out")
        return local
    if local is not None and (local.backend != "auto" or local.tile_cache):
        raise ConfigError("engine remote runs no model itself; leave --backend and --tile-cache out")
    given = {
        "api_base": api_base or os.environ.get("VLLM_API_BASE"),
        "api_key": api_key or os.environ.get("VLLM_API_KEY"),
        "model": (local and local.model) or os.environ.get("VLLM_MODEL_NAME"),
        "prompt": local and local.prompt,
    }
    server: RemoteServer = replace(configured_server(), **{name: value for name, value in given.items() if value})  # type: ignore[arg-type]
    return server


def _local(engine: str, model: str | None, backend: Backend, prompt: Path | None, tile_cache: Path | None) -> LocalModel | None:
    """The model that was asked for; PAGELIFT_MODEL and PAGELIFT_TILE_CACHE count only for engines that can use one."""
    from pagelift.extract import LocalModel

    if engine in ("auto", "vlm"):
        model = model or os.environ.get("PAGELIFT_MODEL") or None
        tile_cache = tile_cache or _tile_cache()
    asked = LocalModel(model, backend.value, str(prompt) if prompt else None, str(tile_cache) if tile_cache else None)
    return None if asked == LocalModel() else asked


def _tile_cache() -> Path | None:
    folder = os.environ.get("PAGELIFT_TILE_CACHE")
    return Path(folder) if folder else None


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
    backend: Annotated[Backend, typer.Option(help="What runs the model.")] = Backend.auto,
    tile_cache: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Keep weights there as the backend cpu lays them out, for faster starts. Default: PAGELIFT_TILE_CACHE.",
            show_default=False,
        ),
    ] = None,
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
    kept = tile_cache or _tile_cache()
    raise Done(command.run(command.Job(model, prompt, *files, backend.value, sampling, as_json, box_units.value, kept)))


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
    backend: Annotated[Backend, typer.Option(help="What runs the model.")] = Backend.auto,
    tile_cache: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Keep weights there as the backend cpu lays them out, for faster starts. Default: PAGELIFT_TILE_CACHE.",
            show_default=False,
        ),
    ] = None,
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
    max_pixels: Annotated[int, typer.Option(min=1, metavar="N", help="As for extract.")] = _DEFAULTS.page_pixels,
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

    body_bytes = int(max_body_mb * _MB)
    job = command.Job(
        engine, _model(engine, _local(engine, model, backend, prompt, tile_cache), None, None), tuple(alias or ()),
        command.Listening(host, port, tls_certificate, tls_key, tuple(allow_host or ())),
        command.Doors(tuple(api_key or ()), api_key_file, tuple(cors_origin or ()), allow_urls, tuple(allow_folder or ())),
        command.Sizes(body_bytes, max_pages, max_pixels, running, waiting),
        command.Times(request_seconds, header_seconds, stall_seconds, drain_seconds),
        command.Files(jobs_file, job_workers, keep_days, schema_folder), __version__,
    )  # fmt: skip
    raise Done(command.run(job))


@models_app.command("list", epilog=EPILOG)
def models_list() -> None:
    """List the models that are known or in the cache: id, size, whether it is in the cache."""
    from pagelift.commands import models

    raise Done(models.list_models())


@models_app.command("pull", epilog=EPILOG, short_help="Fetch a model into the cache.")
def models_pull(
    name: Annotated[str, typer.Argument(metavar="ID", help="Hub id such as datalab-to/lift, or ID@REVISION.")],
) -> None:
    """Show the licence of a model's weights, fetch it into the cache, and print its folder."""
    from pagelift.commands import models

    raise Done(models.pull(name))


@models_app.command("show", epilog=EPILOG, short_help="Describe a checkpoint.")
def models_show(name: Annotated[str, typer.Argument(metavar="M", help="A checkpoint folder or a cached hub id.")]) -> None:
    """Describe a checkpoint: architecture, layout, size, bits per weight."""
    from pagelift.commands import models

    raise Done(models.show(name))


@schema_app.command("check", epilog=EPILOG, short_help="Report what becomes of each keyword of a schema.")
def schema_check(
    schema: Annotated[str, typer.Argument(metavar="S", help="A file, inline JSON, or a saved name.")],
    strict: Annotated[bool, typer.Option("--strict", help="Refuse constraints that would be advisory only.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    nulls: Annotated[Nulls, typer.Option(help="As for extract.")] = Nulls.allowed,
) -> None:
    """Report what becomes of each keyword: enforced, rewritten or advisory. Ends with 3 if the schema is refused."""
    from pagelift.commands import schemas

    raise Done(schemas.check(schema, nulls.value, strict, as_json))


@schema_app.command("infer", epilog=EPILOG, short_help="Propose a schema that fits example results.")
def schema_infer(
    examples: Annotated[list[Path], typer.Argument(metavar="EXAMPLE.json", help="JSON files that show what results look like.")],
    title: Annotated[str, typer.Option(help="Title of the schema.")] = "",
) -> None:
    """Propose a schema that fits example results, as JSON on standard output."""
    from pagelift.commands import schemas

    raise Done(schemas.infer(examples, title))


@schema_app.command("list", epilog=EPILOG)
def schema_list() -> None:
    """List the saved schemas: name and file."""
    from pagelift.commands import schemas

    raise Done(schemas.list_saved())


@schema_app.command("save", epilog=EPILOG, short_help="Save a schema under a name.")
def schema_save(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Letters, digits, '-', '_' and '.'.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The schema, which is checked first.")],
) -> None:
    """Save a schema under a name that --schema then takes; an older one of that name is replaced."""
    from pagelift.commands import schemas

    raise Done(schemas.save(name, file))


@app.command("eval", epilog=EPILOG, short_help="Measure an engine on documents with known values.")
def evaluate(  # noqa: PLR0913, PLR0917
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Collections of documents, schemas and true values; see docs/cli.md.")],
    engine: Annotated[
        str | None, typer.Option(metavar="NAME", help="The engine to measure. Default: vlm with --model, else layout.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", metavar="M", help="For vlm: a checkpoint folder or a cached hub id.")
    ] = None,
    backend: Annotated[Backend, typer.Option(help="For vlm: what runs the model.")] = Backend.auto,
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
    how = Run(engine, cache, _local(engine, model, backend, None, None) or NOTHING_ASKED)
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
    )
    raise Done(command.run(asked, out, as_json))


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
    documents: Annotated[int, typer.Option(min=1, metavar="N", help="Generated documents for the statistics.")] = 24,
    sensitivity_documents: Annotated[int, typer.Option(min=1, metavar="N", help="Generated documents for the sensitivities.")] = 4,
    held_out: Annotated[int, typer.Option(min=1, metavar="N", help="Generated documents to decide and to measure on in the end.")] = 8,
    rounds: Annotated[int, typer.Option(min=0, metavar="N", help="Rounds of trying other allocations on held-out documents.")] = 0,
    backend: Annotated[Backend, typer.Option(help="What runs the model; auto is cpu-exact.")] = Backend.auto,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the bits of every matrix.")] = None,
) -> None:
    """Write a checkpoint in MLX affine format that pagelift, mlx-lm and mlx-vlm load, with the bits where the answers need them."""
    from pagelift.commands import quantize as command
    from pagelift.quantization.job import Effort, Job
    from pagelift.weights import find_model

    effort = Effort(documents, sensitivity_documents, held_out, rounds)
    job = Job(find_model(model), out, target, size_gb, method.value, calibration, vision, effort, "" if Path(model).is_dir() else model)
    raise Done(command.run(job, backend.value, plot))


@app.command(epilog=EPILOG, short_help="Report what this machine is and what is missing.")
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    measure: Annotated[
        bool, typer.Option("--measure/--no-measure", help="Measure memory bandwidth and matrix speed: about a second.")
    ] = True,
) -> None:
    """Report the platform, the instruction sets available and used, threads, measured speeds, memory, backends, and what is missing."""
    from pagelift.commands import doctor as command

    raise Done(command.run(__version__, as_json, measure))


if __name__ == "__main__":
    main()
