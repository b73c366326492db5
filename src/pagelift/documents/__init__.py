"""Open PDF files and images: pages with words, form fields, rules and pictures, from a worker process that can be killed."""

from pagelift.documents.open import Document, Page, open_document

__all__ = ["Document", "Page", "open_document"]
