"""`pagelift schema`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pagelift.cli.options import Nulls
from pagelift.cli.root import EPILOG, Done, schema_app


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
