"""A cache of page contents, so that an engine can be evaluated many times over words that were read (and recognised) once."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from pagelift.core import DocumentNotFound, Limits, PageContent
from pagelift.core.files import write_atomic
from pagelift.documents import open_document

_CONTENTS = TypeAdapter(list[PageContent])


def cached_contents(document_path: str | Path, cache_dir: str | Path, limits: Limits | None = None) -> list[PageContent]:
    """The content of every page of a document: from the cache or else read now and stored.

    Entries are keyed by the bytes of the document and the version of pagelift, so delete the folder after a change to
    how documents are read. An entry that no longer parses is read anew. Raises DocumentError as `open_document` does.
    """
    path = Path(document_path)
    entry = Path(cache_dir) / f"{_key(path)}.json"
    if entry.is_file():
        try:
            return _CONTENTS.validate_json(entry.read_bytes())
        except ValidationError:
            entry.unlink()  # written by a version with other fields
    with open_document(path, limits=limits or Limits()) as document:
        contents = [page.content for page in document.pages()]
    write_atomic(entry, _CONTENTS.dump_json(contents))
    return contents


def _key(path: Path) -> str:
    digest = hashlib.sha256(version("pagelift").encode())
    try:
        digest.update(path.read_bytes())
    except OSError as error:
        raise DocumentNotFound(f"{path}: cannot be read ({error.strerror})") from error
    return digest.hexdigest()[:32]
