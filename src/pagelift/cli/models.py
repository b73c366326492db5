"""`pagelift models`: checkpoints in the cache."""

from __future__ import annotations

from typing import Annotated

import typer

from pagelift.cli.root import EPILOG, Done, models_app


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
