"""The built-in engine: extraction from a page's words without model weights."""

from pagelift.layout.engine import extract_pages

__all__ = ["extract_pages"]
