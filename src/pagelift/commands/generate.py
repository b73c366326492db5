"""`pagelift generate`: one prompt with pictures through a model, the answer as it comes on standard output."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pagelift.commands import ExitCode, say
from pagelift.commands.frames import read_video
from pagelift.core import ConfigError
from pagelift.documents import Page, open_document
from pagelift.extract.prompts import page_picture
from pagelift.runtime import Generation, Sampling, load_model

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True, slots=True)
class Job:
    """What was asked for on the command line. images: pictures or PDFs, of which all pages are shown. prompt: text or @file."""

    model: str
    prompt: str
    images: tuple[str, ...] = ()
    videos: tuple[Path, ...] = ()
    backend: str = "auto"
    sampling: Sampling = field(default_factory=Sampling)


def run(job: Job) -> ExitCode:
    """Generate and report. Raises WeightsError, EngineError, DocumentError, ConfigError."""
    text = _read_prompt(job.prompt)
    pictures = list(_pictures(job.images))
    loaded = load_model(job.model, job.backend)
    if job.videos and loaded.processor is None:
        raise ConfigError(f"{job.model} is a text-only checkpoint; it cannot read videos")
    videos = [read_video(path, loaded.processor.choose_frames) for path in job.videos if loaded.processor]
    generation = loaded.stream(loaded.prompt(text, pictures, videos), job.sampling)
    try:
        for piece in generation:
            sys.stdout.write(piece.text)
            sys.stdout.flush()
        sys.stdout.write("\n")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains when it flushes at the end
        return ExitCode.OUTPUT_CLOSED
    except KeyboardInterrupt:
        generation.cancel()
        say("\ninterrupted")
        return ExitCode.INTERRUPTED
    finally:
        _report(loaded.backend, generation)
    return ExitCode.FINE


def _read_prompt(prompt: str) -> str:
    if not prompt.startswith("@"):
        return prompt
    try:
        return Path(prompt[1:]).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(f"the prompt file {prompt[1:]} cannot be read: {error}") from error


def _pictures(sources: Iterable[str]) -> Iterator[Image]:
    """Image files in their own pixels, pages of PDFs as the vlm engine draws them."""
    for source in sources:
        with open_document(source, ocr="never") as document:
            for page in document.pages():
                yield _native(page) or page_picture(page)


def _native(page: Page) -> Image | None:
    return page.image(min(2400.0, page.native_dpi)) if page.native_dpi else None


def _report(backend: str, generation: Generation) -> None:
    """Statistics on standard error, as people compare them between runtimes."""
    numbers = generation.metadata
    decode_s = numbers["generate_s"] - numbers["first_token_s"]
    rate = (numbers["output_tokens"] - 1) / decode_s if decode_s > 0 else 0.0
    prefill_s = numbers["first_token_s"] - numbers["encode_s"]
    say(
        f"backend {backend}: {numbers['prompt_tokens']} prompt tokens with {numbers['pictures']} pictures"
        f" (pictures {numbers['encode_s']:.2f} s, prompt {prefill_s:.2f} s),"
        f" {numbers['output_tokens']} tokens in {decode_s:.2f} s ({rate:.1f} tokens/s),"
        f" {numbers['passes']} passes, cache {numbers['cache_bytes'] / 1e6:.1f} MB, ended by {generation.finish_reason}"
    )
