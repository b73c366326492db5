"""Where results go: JSON, JSON lines or CSV on standard output, or one file per document in a folder."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TextIO

from pagelift.commands.inputs import Input
from pagelift.commands.tables import Table, safe_cell
from pagelift.core import Extraction, Json
from pagelift.core.files import write_atomic

Format = Literal["json", "jsonl", "csv"]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no result for a document. type: the name of the error class. raw: a model's answer that is no result, or ""."""

    type: str
    message: str
    raw: str = ""

    def to_dict(self) -> dict[str, str]:
        return {"type": self.type, "message": self.message} | ({"raw": self.raw} if self.raw else {})


class Sink(Protocol):
    """Takes the outcome of one document after another."""

    def put(self, document: Input, outcome: Extraction | Failure) -> None: ...

    def close(self) -> None: ...


class JsonSink:
    """The outcome of one document, indented: its data alone, or with evidence the whole result; nothing after a failure."""

    def __init__(self, stream: TextIO, evidence: bool) -> None:
        self._stream = stream
        self._evidence = evidence

    def put(self, document: Input, outcome: Extraction | Failure) -> None:  # noqa: ARG002
        if isinstance(outcome, Extraction):
            text = outcome.to_json() if self._evidence else json.dumps(outcome.data, ensure_ascii=False, indent=2)
            self._stream.write(text + "\n")
            self._stream.flush()

    def close(self) -> None:
        pass


class LinesSink:
    """JSON lines, each flushed: {"source", "data", ...} or {"source", "error": {"type", "message"}}."""

    def __init__(self, stream: TextIO, evidence: bool) -> None:
        self._stream = stream
        self._evidence = evidence

    def put(self, document: Input, outcome: Extraction | Failure) -> None:
        self._stream.write(_line(document, outcome, self._evidence) + "\n")
        self._stream.flush()

    def close(self) -> None:
        pass


class ArraySink:
    """The objects of `LinesSink` as one JSON array."""

    def __init__(self, stream: TextIO, evidence: bool) -> None:
        self._stream = stream
        self._evidence = evidence
        self._before = "[\n"

    def put(self, document: Input, outcome: Extraction | Failure) -> None:
        self._stream.write(self._before + _line(document, outcome, self._evidence))
        self._before = ",\n"
        self._stream.flush()

    def close(self) -> None:
        self._stream.write("[]\n" if self._before == "[\n" else "\n]\n")
        self._stream.flush()


def _line(document: Input, outcome: Extraction | Failure, evidence: bool) -> str:
    line: dict[str, Json] = {"source": document.source}
    if isinstance(outcome, Failure):
        line["error"] = outcome.to_dict()
    else:
        line |= {**outcome.to_dict(evidence), "source": document.source}
    return json.dumps(line, ensure_ascii=False)


class CsvSink:
    """Rows as described in `tables`, with the document in front and the error, if any, at the end."""

    def __init__(self, stream: TextIO, table: Table) -> None:
        self._stream = stream
        self._writer = csv.writer(stream, lineterminator="\n")
        self._table = table
        self._writer.writerow(["source", *map(safe_cell, table.columns), "error"])

    def put(self, document: Input, outcome: Extraction | Failure) -> None:
        source = safe_cell(document.source)
        if isinstance(outcome, Failure):
            self._writer.writerow([source, *[""] * len(self._table.columns), safe_cell(f"{outcome.type}: {outcome.message}")])
        else:
            self._writer.writerows([source, *row, ""] for row in self._table.rows(outcome.data))
        self._stream.flush()

    def close(self) -> None:
        pass


class FolderSink:
    """One file per document that has a result, each written whole or not at all. make: the sink that fills one file."""

    def __init__(self, folder: Path, suffix: str, make: Callable[[TextIO], Sink]) -> None:
        self._folder = folder
        self._suffix = suffix
        self._make = make

    def put(self, document: Input, outcome: Extraction | Failure) -> None:
        if isinstance(outcome, Failure):
            return
        text = io.StringIO(newline="")
        inner = self._make(text)
        inner.put(document, outcome)
        inner.close()
        write_atomic(self._folder / document.place.with_name(document.place.name + self._suffix), text.getvalue())

    def close(self) -> None:
        pass
