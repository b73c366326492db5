"""Where schemas come from: a mapping, a file, inline JSON, a saved name, or a Pydantic model."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import platformdirs
import pydantic

from pagelift.core import InvalidSchema, Json, SchemaNotFound, SchemaRefused
from pagelift.core.files import write_atomic

SCHEMA_BYTES = 2 * 1024 * 1024
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def read_source(source: Any, folder: Path | None = None) -> tuple[Json, Any]:
    """The schema document and, when the source was one, the Python type that it came from.

    source: a mapping or bool; a path; a string that is a path, inline JSON or a saved name (in `folder`, or the user's);
    a Pydantic model, or any type that Pydantic knows, such as a dataclass or TypedDict.
    Raises SchemaNotFound, InvalidSchema, SchemaRefused (too large).
    """
    if isinstance(source, bool):
        return source, None
    if isinstance(source, Mapping):
        return _copy(source), None
    if isinstance(source, Path):
        return _read_file(source), None
    if isinstance(source, str):
        return _read_text(source, folder), None
    return _read_type(source), source


def _copy(source: Mapping[str, Json]) -> Json:
    try:
        text = json.dumps(dict(source), allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidSchema(f"the schema cannot be written as JSON: {error or 'nested too deeply'}") from error
    return parse(text, "the schema")


def _read_text(source: str, folder: Path | None) -> Json:
    if source.lstrip().startswith("{") or source.strip() in ("true", "false"):
        return parse(source, "the inline schema")
    try:
        is_file = Path(source).expanduser().is_file()
    except (OSError, ValueError, RuntimeError):
        is_file = False
    if is_file:
        return _read_file(Path(source).expanduser())
    saved = saved_schemas(folder)
    if source in saved:
        return _read_file(saved[source])
    near = difflib.get_close_matches(source, list(saved), n=3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else f"; saved schemas: {', '.join(sorted(saved)) or 'none'}"
    raise SchemaNotFound(f"no schema {source[:200]!r}: neither a file, nor inline JSON starting with '{{', nor a saved name{hint}")


def _read_file(path: Path) -> Json:
    try:
        with path.open("rb") as file:
            content = file.read(SCHEMA_BYTES + 1)
    except FileNotFoundError as error:
        raise SchemaNotFound(f"no schema file {path}; check the path") from error
    except OSError as error:
        raise SchemaNotFound(f"schema file {path} cannot be read: {error.strerror or error}") from error
    try:
        return parse(content.decode("utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        raise InvalidSchema(f"{path} is not UTF-8 text (byte {error.start}); save the schema as UTF-8 JSON") from error


def _read_type(source: Any) -> Json:
    try:
        schema = pydantic.TypeAdapter(source).json_schema(mode="validation", by_alias=True)
    except (pydantic.PydanticUserError, pydantic.errors.PydanticInvalidForJsonSchema) as error:
        why = str(error).split("\n", 1)[0]
        raise InvalidSchema(f"{source!r} is neither a JSON Schema nor a type that Pydantic can describe: {why}") from error
    return schema


def parse(text: str, what: str) -> Json:
    """JSON text to a value. Raises InvalidSchema with line and column, also for repeated keys, NaN and Infinity."""
    if len(text) > SCHEMA_BYTES or len(text.encode("utf-8", "surrogatepass")) > SCHEMA_BYTES:
        raise SchemaRefused(f"{what} is larger than {SCHEMA_BYTES // 1024 // 1024} MB")
    try:
        value = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise InvalidSchema(f"{what} is not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        raise SchemaRefused(f"{what} is nested too deeply") from error
    except UnicodeEncodeError as error:
        raise InvalidSchema(f"{what} holds half of a surrogate pair, which is not valid Unicode") from error
    except ValueError as error:
        raise InvalidSchema(f"{what} is not valid JSON: {error}") from error
    if not isinstance(value, dict | bool):
        raise InvalidSchema(f'{what} is a JSON {type(value).__name__}; a schema is an object such as {{"type": "object"}}')
    return value


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is not a JSON number")


def _unique_keys(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    out = dict(pairs)
    if len(out) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} occurs twice in one object")
    return out


def schema_folder() -> Path:
    """The user's folder of saved schemas."""
    return Path(platformdirs.user_config_dir("pagelift", appauthor=False)) / "schemas"


def saved_schemas(folder: Path | None = None) -> dict[str, Path]:
    """Saved schemas by name."""
    folder = folder or schema_folder()
    return {path.stem: path for path in sorted(folder.glob("*.json"))} if folder.is_dir() else {}


def save_document(name: str, document: Json, folder: Path | None = None) -> Path:
    """Write a schema document under a name; an existing one is replaced. Raises InvalidSchema for an unusable name, ConfigError."""
    if not _NAME.fullmatch(name):
        raise InvalidSchema(
            f"{name!r} cannot be a schema name: use up to 100 letters, digits, '-', '_' and '.', starting with a letter or digit"
        )
    path = (folder or schema_folder()) / f"{name}.json"
    write_atomic(path, json.dumps(document, ensure_ascii=False, indent=2) + "\n")
    return path
