"""The worker process: opens untrusted documents and reads page pictures, so that the program itself never does.

Started by `client.Worker` as `python -c "from pagelift.documents.worker import main; main()"`. It answers one request after
another, each a frame of `wire`: a header {"op": name, ...} and, for some, a body. Replies are {"ok": true, ...}, or
{"error": name of a class in core.errors, "message": text}. All boxes are page points, top-left origin, as lists of four.

    op        request                                        reply
    open      document, kind, path or body, password,        pages, warnings
              limits {pages, page_pixels, worker_bytes}
    size      document, page (from 1)                        width_pt, height_pt
    content   document, page                                 width_pt, height_pt, words, hidden_words, form_fields,
                                                             rules, pictures, text, warnings (see pdf.PdfFile.content)
    picture   document, page, dpi, max_pixels                width_px, height_px, stride, mode; body: the rows
    region    document, page, dpi, box, max_pixels (PDF)     as for picture
    close     document                                       -
    ocr       as a reply to picture, and threads             lines (see ocr.read_lines)

`document` is an integer that the client chooses. The process ends when its standard input ends, even in the middle of a
request: a thread of its own reads the input.
"""

from __future__ import annotations

import io
import logging
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from pagelift.core.errors import CorruptDocument, DocumentError, LimitExceeded
from pagelift.documents.wire import Header, read_frame, write_frame

if TYPE_CHECKING:
    from pagelift.documents.image import ImageFile
    from pagelift.documents.pdf import PdfFile

Reply = tuple[Header, "bytes | memoryview"]


class Service:
    """The documents that this process has open, and what it can do with them."""

    def __init__(self) -> None:
        self.documents: dict[int, PdfFile | ImageFile] = {}
        self.operations: dict[str, Callable[[Header, bytes], Reply]] = {
            "open": self.open,
            "size": self.size,
            "content": self.content,
            "picture": self.picture,
            "region": self.region,
            "close": self.close,
            "ocr": self.ocr,
        }

    def answer(self, request: Header, body: bytes) -> Reply:
        """Carry out one request; what goes wrong with the document is a reply too, with "error" and "message"."""
        try:
            header, reply_body = self.operations[request["op"]](request, body)
        except DocumentError as error:
            return {"error": type(error).__name__, "message": str(error)}, b""
        except MemoryError:
            message = "it needs more memory than limits.worker_bytes allows; raise that limit if the document is trusted"
            return {"error": LimitExceeded.__name__, "message": message}, b""
        except Exception as error:  # the boundary of a document: any library error concerns this document only
            logging.getLogger(__name__).debug("request failed", exc_info=True)
            return {
                "error": CorruptDocument.__name__,
                "message": f"unexpected {type(error).__name__}: {error}; save it again with another program",
            }, b""
        return {"ok": True} | header, reply_body

    def open(self, request: Header, body: bytes) -> Reply:
        """Open the document at "path" or in the body, under the limits that the request states."""
        limits: dict[str, Any] = request["limits"]
        limit_memory(limits["worker_bytes"])
        source = request["path"] if request.get("path") else body
        document: PdfFile | ImageFile
        if request["kind"] == "pdf":
            from pagelift.documents.pdf import PdfFile

            document = PdfFile(source, request.get("password"))
        else:
            from pagelift.documents.image import ImageFile

            document = ImageFile(source, limits["page_pixels"])
        if document.page_count > limits["pages"]:
            pages = document.page_count
            document.close()
            raise LimitExceeded(f"it has {pages} pages, the limit is {limits['pages']}; raise limits.pages or split the file")
        self.documents[request["document"]] = document
        return {"pages": document.page_count, "warnings": document.warnings}, b""

    def size(self, request: Header, _body: bytes) -> Reply:
        width_pt, height_pt = self.documents[request["document"]].size(request["page"])
        return {"width_pt": width_pt, "height_pt": height_pt}, b""

    def content(self, request: Header, _body: bytes) -> Reply:
        return self.documents[request["document"]].content(request["page"]), b""

    def picture(self, request: Header, _body: bytes) -> Reply:
        document = self.documents[request["document"]]
        return document.picture(request["page"], request["dpi"], request["max_pixels"])

    def region(self, request: Header, _body: bytes) -> Reply:
        document = cast("PdfFile", self.documents[request["document"]])
        return document.region(request["page"], request["dpi"], request["box"], request["max_pixels"])

    def close(self, request: Header, _body: bytes) -> Reply:
        document = self.documents.pop(request["document"], None)
        if document is not None:
            document.close()
        return {}, b""

    def ocr(self, request: Header, body: bytes) -> Reply:
        from pagelift.documents.ocr import picture_from_rows, read_lines

        size_px = request["width_px"], request["height_px"]
        return {"lines": read_lines(picture_from_rows(body, size_px, request["stride"], request["mode"]), request["threads"])}, b""


def limit_memory(size_bytes: int) -> None:
    """Bound the address space of this process where the system supports it."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        _soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        soft = size_bytes if hard == resource.RLIM_INFINITY else min(size_bytes, hard)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def main() -> None:
    """Answer requests on standard input until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests: queue.SimpleQueue[tuple[Header, bytes]] = queue.SimpleQueue()
    replies = io.FileIO(os.dup(sys.stdout.fileno()), "w")
    # Native libraries may write to the standard streams; nothing of that may reach the protocol or the user.
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.dup2(devnull, sys.stderr.fileno())
    threading.Thread(target=_receive, args=(io.FileIO(sys.stdin.fileno(), closefd=False), requests), daemon=True).start()
    service = Service()
    while True:
        header, body = service.answer(*requests.get())
        write_frame(replies, header, body)


def _receive(stream: io.RawIOBase, requests: queue.SimpleQueue[tuple[Header, bytes]]) -> None:
    try:
        while True:
            requests.put(read_frame(stream))
    except (EOFError, ValueError, OSError):
        os._exit(0)


if __name__ == "__main__":
    main()
