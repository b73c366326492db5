"""From a document and a schema to an `Extraction`: engines, and what is done around each of them."""

from pagelift.core import Budget
from pagelift.extract.engines import ENGINES, Engine, ExtractOptions, ReadablePage, load_engine
from pagelift.extract.extractor import Extractor, extract
from pagelift.extract.pages import select_pages
from pagelift.extract.settings import LocalModel, RemoteServer

__all__ = [
    "ENGINES",
    "Budget",
    "Engine",
    "ExtractOptions",
    "Extractor",
    "LocalModel",
    "ReadablePage",
    "RemoteServer",
    "extract",
    "load_engine",
    "select_pages",
]
