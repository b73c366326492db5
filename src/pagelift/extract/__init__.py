"""From a document and a schema to an `Extraction`: engines, and what is done around each of them."""

from pagelift.extract.engines import ENGINES, Engine, ExtractOptions, ReadablePage, load_engine
from pagelift.extract.extractor import Extractor, extract
from pagelift.extract.pages import select_pages
from pagelift.extract.settings import LocalModel

__all__ = ["ENGINES", "Engine", "ExtractOptions", "Extractor", "LocalModel", "ReadablePage", "extract", "load_engine", "select_pages"]
