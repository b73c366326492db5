"""Documents inside requests: data URIs, base64, and, only where the server allows it, URLs and paths."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, unquote_to_bytes, urlsplit

from pagelift.core import LimitExceeded, Limits
from pagelift.documents import open_document
from pagelift.documents.open import Document, OcrMode, Page
from pagelift.extract import select_pages
from pagelift.server.errors import ApiError
from pagelift.server.fetch import FetchLimits, fetch
from pagelift.server.settings import Access, ServiceLimits

_DATA_URI = re.compile(r"data:([^,;]*)((?:;[^,;]*)*),", re.IGNORECASE)
_BLANKS = str.maketrans("", "", " \t\r\n")


@dataclass(frozen=True, slots=True)
class Attachment:
    """A document as a request names it. reference: data URI, base64 or URL; or the content itself.

    name: for messages. param: the parameter that it came in. picture: shown to a model in its own pixels, as `image_url` is.
    """

    reference: str | bytes
    name: str = "document"
    param: str | None = None
    picture: bool = False

    def content(self, access: Access, limits: Limits) -> bytes | Path:
        """The bytes, or the path of an allowed file. Raises ApiError 400, 403, 413 or 422. May take long."""
        if isinstance(self.reference, bytes):
            return self.reference
        match = _DATA_URI.match(self.reference)
        if match:
            encoded = self.reference[match.end() :]
            return self._decode(encoded) if match[2].lower().endswith(";base64") else unquote_to_bytes(encoded)
        if "://" not in self.reference[:16]:
            return self._decode(self.reference)
        scheme = self.reference.partition(":")[0].lower()
        if scheme in ("http", "https"):
            if not access.urls:
                raise self._forbidden("URLs are not fetched by this server (see --allow-urls); send the document as a data URI")
            return fetch(self.reference, FetchLimits(limits.file_bytes))
        if scheme == "file":
            return self._local(access.folders)
        raise ApiError(400, f"the document is a {scheme[:16]} URL; send it as a data URI with base64", self.param, "invalid_document")

    def _decode(self, text: str) -> bytes:
        try:
            content = base64.b64decode(text.translate(_BLANKS), validate=True)
        except (binascii.Error, ValueError) as error:
            raise ApiError(400, f"the document is no valid base64 ({error})", self.param, "invalid_base64") from error
        if not content:
            raise ApiError(400, "the document is empty", self.param, "invalid_document")
        return content

    def _local(self, folders: Sequence[Path]) -> Path:
        """Links are followed before the check. What is outside and what does not exist look the same."""
        try:
            path = Path(unquote(urlsplit(self.reference).path)).resolve() if isinstance(self.reference, str) else Path()
            inside = any(path.is_relative_to(folder.resolve()) for folder in folders) and path.is_file()
        except (OSError, ValueError, RuntimeError):
            inside = False
        if not inside:
            raise self._forbidden("the file is not in a folder from which this server takes documents (see --allow-folder)")
        return path

    def _forbidden(self, message: str) -> ApiError:
        return ApiError(403, message, self.param, "source_not_allowed")


@dataclass(frozen=True, slots=True)
class Opened:
    """Open documents of one request. pages: those to read, by document."""

    documents: tuple[Document, ...]
    pages: tuple[tuple[Page, ...], ...]

    @property
    def count(self) -> int:
        return sum(map(len, self.pages))

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(warning for document in self.documents for warning in document.warnings)


@dataclass(frozen=True, slots=True)
class Reading:
    """How the documents of a request are opened. pages: a selection, for a single document."""

    limits: ServiceLimits
    access: Access
    ocr: OcrMode = "auto"
    pages: str | None = None
    password: str | None = None

    @contextmanager
    def open(self, attachments: Sequence[Attachment]) -> Iterator[Opened]:
        """Open them all; too many pages together are refused before one is read. Raises DocumentError, ApiError, ConfigError."""
        with ExitStack() as stack:
            documents, pages, count = [], [], 0
            for attachment in attachments:
                content = attachment.content(self.access, self.limits.document)
                opened = open_document(
                    content, password=self.password, limits=self.limits.document, ocr=self.ocr, name=attachment.name[:200] or "document"
                )
                document = stack.enter_context(opened)
                numbers = select_pages(self.pages, document.page_count)
                count += len(numbers)
                if count > self.limits.pages:
                    raise LimitExceeded(f"the request has more than {self.limits.pages} pages, the limit of this server")
                documents.append(document)
                pages.append(tuple(document.page(number) for number in numbers))
            yield Opened(tuple(documents), tuple(pages))


def check_count(attachments: Sequence[Attachment], limits: ServiceLimits) -> None:
    """Raises ApiError 413."""
    if len(attachments) > limits.documents:
        message = f"the request has {len(attachments)} documents, the limit of this server is {limits.documents}"
        raise ApiError(413, message, code="limit_exceeded")
