"""`pagelift doctor`."""

from __future__ import annotations

from typing import Annotated

import typer

from pagelift import __version__
from pagelift.cli.root import EPILOG, Done, app


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
