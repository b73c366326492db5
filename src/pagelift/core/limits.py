"""Limits on untrusted documents, and on what a model is asked at once. Each can be set; none can be switched off by accident."""

from __future__ import annotations

from dataclasses import dataclass, fields

from pagelift.core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Limits:
    """Hard limits for one document.

    file_bytes: size of the file. pages: pages in the file. page_pixels: pixels of one page picture; a page that would
    be larger is rendered or decoded smaller where the format allows it, else refused. page_seconds: time for one
    operation (render, words) on one page; ocr_seconds: time to read one page picture; open_seconds: time to open the file.
    worker_bytes: address space of the worker process.
    """

    file_bytes: int = 256 * 1024 * 1024
    pages: int = 2_000
    page_pixels: int = 50_000_000
    page_seconds: float = 30.0
    ocr_seconds: float = 120.0
    open_seconds: float = 20.0
    worker_bytes: int = 1_200 * 1024 * 1024

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if not isinstance(value, int | float) or not value > 0:
                raise ConfigError(f"limit {f.name} is {value!r}; give a number above 0")


@dataclass(frozen=True, slots=True)
class Budget:
    """How much a single question may hold. Raises ConfigError for numbers out of range.

    prompt_tokens: of pages and text; less when the model's context is smaller. answer_tokens: of one answer. fields: scalars asked
    for at once, those of lists counted three times. overlap_pages: how many pages neighbouring windows share. follow_ups: how often
    an answer that was cut off is continued.
    """

    prompt_tokens: int = 118_784
    answer_tokens: int = 12_288
    fields: int = 240
    overlap_pages: int = 1
    follow_ups: int = 12

    def __post_init__(self) -> None:
        for f in fields(self):
            value, least = getattr(self, f.name), 0 if f.name in ("overlap_pages", "follow_ups") else 1
            if type(value) is not int or value < least:
                raise ConfigError(f"{f.name} is {value!r}; give a whole number from {least}")
