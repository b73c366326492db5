"""The command itself: its groups, what all subcommands share, its version."""

from __future__ import annotations

from typing import Annotated

import typer

from pagelift import __version__

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


class Done(SystemExit):
    """Ends the command with one of our own exit codes; the codes of the command line parser are mapped in `main`."""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pagelift {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")] = False,
) -> None:
    pass
