"""`pagelift synth`: a folder of made-up documents with known values."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from pagelift.commands import ExitCode, say
from pagelift.core import ConfigError
from pagelift.evals.synthetic import Split, make_samples
from pagelift.evals.synthetic.folder import write_folder
from pagelift.evals.synthetic.kinds import kind_named


@dataclass(frozen=True, slots=True)
class Order:
    """What to make. kinds: in turn, drawn if empty. pictures: as for `write_folder`."""

    count: int
    seed: int
    split: Split
    kinds: tuple[str, ...] = ()
    pictures: bool = False


def run(folder: Path, order: Order) -> ExitCode:
    """Write the documents of an order. Raises ConfigError for an unknown kind, a folder with something in it, or a full disk."""
    kinds = [kind_named(kind) for kind in order.kinds]
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise ConfigError(f"{folder} is there already and not an empty folder; choose another place")
    samples = islice(make_samples(order.seed, order.split, kinds), order.count)
    say(f"{folder}: {write_folder(folder, samples, order.pictures)} documents; measure with: pagelift eval {folder}")
    return ExitCode.FINE
