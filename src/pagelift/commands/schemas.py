"""`pagelift schema`: check, infer, list, save."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pagelift.commands import ExitCode, say
from pagelift.core import ConfigError
from pagelift.schema import check_schema, infer_schema, save_schema, saved_schemas, schema_report_text


def check(source: str, nulls: Literal["allowed", "declared"], strict: bool, as_json: bool) -> ExitCode:
    """Print the report of a schema. Raises SchemaNotFound, InvalidSchema."""
    report = check_schema(source, nulls=nulls, strict=strict)
    _print_json(report.to_dict()) if as_json else _print(schema_report_text(report))
    return ExitCode.FINE if report.accepted else ExitCode.SCHEMA_REFUSED


def infer(examples: Sequence[Path], title: str) -> ExitCode:
    """Print a schema that fits the examples. Raises ConfigError for files that are not JSON."""
    values = []
    for path in examples:
        try:
            values.append(json.loads(path.read_text(encoding="utf-8-sig")))
        except (OSError, ValueError, RecursionError) as error:
            raise ConfigError(f"{path}: not a readable JSON file ({error}); give example results as JSON") from error
    _print_json(infer_schema(values, title))
    return ExitCode.FINE


def list_saved() -> ExitCode:
    """Print name and file of every saved schema, separated by a tab."""
    saved = saved_schemas()
    for name, path in saved.items():
        _print(f"{name}\t{path}")
    if not saved:
        say("no saved schemas; save one with: pagelift schema save NAME FILE")
    return ExitCode.FINE


def save(name: str, file: Path) -> ExitCode:
    """Save the schema in a file under a name. Raises SchemaError when it cannot be used."""
    say(f"saved {save_schema(name, file)}")
    return ExitCode.FINE


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")


def _print_json(value: object) -> None:
    _print(json.dumps(value, ensure_ascii=False, indent=2))
