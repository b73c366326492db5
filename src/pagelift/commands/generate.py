"""`pagelift generate`: one prompt with pictures through a model, the answer as it comes on standard output, or as JSON with the places
that the model names."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pagelift.commands import ExitCode, say
from pagelift.commands.frames import read_video
from pagelift.core import ConfigError, Json
from pagelift.documents import Page, open_document
from pagelift.evidence.claims import PictureSize, Units, check_claims, read_claims
from pagelift.extract.prompts import page_picture
from pagelift.models.pictures import picture_size
from pagelift.runtime import Generation, LoadedModel, RuntimeSettings, Sampling, load_model

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True, slots=True)
class Job:
    """What was asked for on the command line.

    images: pictures or PDFs, of which all pages are shown. prompt: text or @file. as_json: one JSON object with the places that the
    model names. units: of its coordinates. tile_cache: where weights are kept as the backend lays them out.
    """

    model: str
    prompt: str
    images: tuple[str, ...] = ()
    videos: tuple[Path, ...] = ()
    backend: str = "auto"
    sampling: Sampling = field(default_factory=Sampling)
    as_json: bool = False
    units: Units = "thousandths"
    tile_cache: Path | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """A picture and the page that it is of, which stays open."""

    source: str
    page: Page
    picture: Image


def run(job: Job) -> ExitCode:
    """Generate and report. Raises WeightsError, EngineError, DocumentError, ConfigError."""
    text = _read_prompt(job.prompt)
    with contextlib.ExitStack() as documents:
        shown = list(_shown(job, documents))
        loaded = load_model(job.model, job.backend, RuntimeSettings(tile_cache=job.tile_cache))
        if job.videos and loaded.processor is None:
            raise ConfigError(f"{job.model} is a text-only checkpoint; it cannot read videos")
        videos = [read_video(path, loaded.processor.choose_frames) for path in job.videos if loaded.processor]
        generation = loaded.stream(loaded.prompt(text, [one.picture for one in shown], videos), job.sampling)
        try:
            if job.as_json:
                _write(json.dumps(_with_claims(job, loaded, generation, shown), ensure_ascii=False, indent=2))
            for piece in generation if not job.as_json else ():
                _write(piece.text)
            _write("\n")
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


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _with_claims(job: Job, loaded: LoadedModel, generation: Generation, shown: Sequence[Shown]) -> dict[str, Json]:
    """The whole answer, and every place that it names: in page coordinates, and compared with the words of the page."""
    for _ in generation:
        pass
    written = loaded.tokenizer.decode([token.id for token in generation.tokens], skip_special=False)
    claims = read_claims(written)
    if claims:
        contents = [replace(one.page.content, number=number) for number, one in enumerate(shown, 1)]
        claims = check_claims(claims, contents, [_size(loaded, one.picture) for one in shown], job.units)
    return {
        "text": generation.text,
        "written": written,
        "claims": [claim.to_dict() for claim in claims],
        "pages": [{"number": number, "source": one.source, "page": one.page.number} for number, one in enumerate(shown, 1)],
        "finish_reason": generation.finish_reason,
        "metadata": generation.metadata,
    }


def _size(loaded: LoadedModel, picture: Image) -> PictureSize:
    """The size in which the model saw a picture."""
    if loaded.processor is None or not loaded.processor.image.resize:
        return PictureSize(picture.width, picture.height)
    height, width = picture_size(picture.height, picture.width, loaded.processor.image)
    return PictureSize(width, height)


def _read_prompt(prompt: str) -> str:
    if not prompt.startswith("@"):
        return prompt
    try:
        return Path(prompt[1:]).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(f"the prompt file {prompt[1:]} cannot be read: {error}") from error


def _shown(job: Job, documents: contextlib.ExitStack) -> Iterator[Shown]:
    """Image files in their own pixels, pages of PDFs as the vlm engine draws them."""
    for source in job.images:
        document = documents.enter_context(open_document(source, ocr="auto" if job.as_json else "never"))
        for page in document.pages():
            yield Shown(source, page, _native(page) or page_picture(page))


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
