"""The command `pagelift`. What a subcommand does lies in `pagelift.commands` and is imported when it runs."""

from __future__ import annotations

from typing import NoReturn

from pagelift.cli import doctor, evals, extract, generate, make, models, schema, serve  # noqa: F401 (their order is that of the help)
from pagelift.cli.root import Done, app
from pagelift.commands import ExitCode, say, set_up_streams
from pagelift.core import ConfigError, EngineError, PageliftError, SchemaError

__all__ = ["app", "main"]


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
