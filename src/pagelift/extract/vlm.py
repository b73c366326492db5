"""The `vlm` engine: pages and schema to a local vision-language model, its answer to values with their places on the pages."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from pagelift.core import EngineError, Field, InvalidOutput, Json, PageContent, Proposal
from pagelift.evidence.align import Leaf, align, leaves
from pagelift.evidence.places import Place
from pagelift.extract.answers import confidences, parse_answer, value_spans
from pagelift.extract.prompts import extraction_prompt, page_picture, read_template
from pagelift.extract.settings import LocalModel, choose_model

if TYPE_CHECKING:
    from pagelift.extract.engines import ExtractOptions, ReadablePage
    from pagelift.runtime import Generation, LoadedModel
    from pagelift.schema import Schema

MAX_TOKENS = 12_288


class VlmEngine:
    """Asks a model once for the whole document.

    model: a loaded model, a checkpoint folder or the id of a cached model. prompt: a file with the prompt's text, {schema} in it.
    max_tokens: of the answer. Raises WeightsError, EngineError, ConfigError.
    """

    name = "vlm"

    def __init__(
        self, model: str | Path | LoadedModel, backend: str = "auto", prompt: str | Path | None = None, max_tokens: int = MAX_TOKENS
    ) -> None:
        from pagelift.runtime import Sampling, load_model

        self._template, self._wording = read_template(Path(prompt) if prompt else None)
        self._sampling = Sampling(max_tokens=max_tokens)
        self.model = load_model(model, backend) if isinstance(model, str | Path) else model

    def extract(self, pages: Iterable[ReadablePage], schema: Schema, options: ExtractOptions) -> Proposal:  # noqa: ARG002
        """Values for all properties. Raises InvalidOutput, with the answer, when it is cut off or not JSON; EngineError, DocumentError."""
        start = time.perf_counter()
        contents: list[PageContent] = []
        pictures = []
        for page in pages:
            contents.append(page.content)
            pictures.append(page_picture(page))
        if not pictures:
            raise EngineError("there is no page to read")
        read = time.perf_counter()
        prompt = self.model.prompt(extraction_prompt(schema.original, self._template), pictures)
        answer = self.model.stream(prompt, self._sampling)
        pieces = [(piece.text, piece.token.logprob) for piece in answer if piece.token]
        data = self._parse(answer)
        aligned = time.perf_counter()
        fields = make_fields(data, align(data, contents), confidences(value_spans(answer.text), pieces))
        metadata = {"model": self.model.name, "backend": self.model.backend, "wording": self._wording, "words_s": round(read - start, 4)}
        metadata |= answer.metadata | {"align_s": round(time.perf_counter() - aligned, 4)}
        warnings = tuple(f"page {content.number}: {warning}" for content in contents for warning in content.warnings)
        return Proposal(data, fields, warnings, metadata)

    def _parse(self, answer: Generation) -> Json:
        if answer.finish_reason == "length":
            count = len(answer.tokens)
            raise InvalidOutput(f"the model's answer is truncated after {count} tokens; raise max_tokens or give fewer pages", answer.text)
        return parse_answer(answer.text)


def local_engine(asked: LocalModel) -> VlmEngine:
    """The engine for the model that was asked for, is configured or cached. Raises EngineError when there is none."""
    chosen = choose_model(asked)
    if chosen is None or chosen.model is None:
        raise EngineError(
            "no local model is configured: give one (--model, PAGELIFT_MODEL, or model in config.toml), or fetch one with "
            "pagelift models pull datalab-to/lift"
        )
    return _load(chosen.model, chosen.backend, chosen.prompt)


@lru_cache(maxsize=1)
def _load(model: str, backend: str, prompt: str | None) -> VlmEngine:
    """Extractors for several schemas share the weights."""
    return VlmEngine(model, backend, prompt)


def make_fields(data: Json, places: Mapping[str, Place], probabilities: Mapping[str, float]) -> dict[str, Field]:
    """Evidence for every scalar and empty array of a model's answer, by JSON Pointer."""
    found = {leaf.pointer: _field(leaf, places.get(leaf.pointer), probabilities.get(leaf.pointer, 0.0)) for leaf in leaves(data)}
    for pointer, probability in probabilities.items():
        if pointer not in found:
            found[pointer] = Field(pointer, [], "absent", confidence=probability, reason="the model gives no entries")
    return found


def _field(leaf: Leaf, place: Place | None, probability: float) -> Field:
    if leaf.value is None:
        return Field(leaf.pointer, None, "absent", confidence=probability, reason="the model gives null")
    if place is None:
        told = isinstance(leaf.value, bool)
        reason = "the model's judgement; yes and no are not located" if told else "given by the model, not located on the pages"
        return Field(leaf.pointer, leaf.value, "unverified", confidence=probability, reason=reason)
    boxes = place.boxes
    return Field(leaf.pointer, leaf.value, "found", place.raw, place.page, place.box, boxes if len(boxes) > 1 else (), probability)
