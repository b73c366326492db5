"""The checks of a run as a Markdown table.

python -m nano.curve --run runs/nano
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from nano.lessons import LESSONS


def table(lines: Iterable[str], every: int = 1) -> Iterator[str]:
    """A row for every so many checks, and for the last one. lines: of curve.jsonl.

    fresh: values right in new documents of the train split. The other columns: the validation split.
    """
    checks = [entry for entry in map(json.loads, lines) if "check" in entry]
    yield "| step | tokens | minutes | lesson | fresh | values | flat | array | nulls | lines |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for index, entry in enumerate(checks):
        if index % every == 0 or index == len(checks) - 1:
            check = entry["check"]
            shares = " | ".join(f"{check[name]:.3f}" for name in ("values", "flat", "array", "nulls", "lines"))
            fresh = f"{entry['fresh']['values']:.3f}"
            millions = f"{entry['tokens'] / 1e6:.2f} M"
            yield f"| {entry['step']} | {millions} | {entry['seconds'] / 60:.0f} | {LESSONS[entry['lesson']].name} | {fresh} | {shares} |"


def main() -> None:
    parser = argparse.ArgumentParser(description="Print the curve of a run.")
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--every", type=int, default=1, help="print every so many checks")
    given = parser.parse_args()
    lines = (given.run / "curve.jsonl").read_text(encoding="utf-8").splitlines()
    sys.stdout.writelines(f"{line}\n" for line in table(lines, given.every))


if __name__ == "__main__":
    main()
