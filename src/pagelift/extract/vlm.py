"""The `vlm` engine: pages and schema to a local vision-language model, its answer to values with their places on the pages."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from pagelift.core import EngineError, Proposal
from pagelift.extract.conduct import extract_by_asking
from pagelift.extract.prompts import extraction_prompt, part_notes, read_template
from pagelift.extract.questions import Question, Reply
from pagelift.extract.settings import LocalModel, choose_model

if TYPE_CHECKING:
    from pagelift.extract.engines import ExtractOptions, ReadablePage
    from pagelift.runtime import LoadedModel
    from pagelift.schema import Schema


class VlmEngine:
    """Asks a local model for the whole document, or for parts of it where it is long.

    model: a loaded model, a checkpoint folder or the id of a cached model. prompt: a file with the prompt's text, {schema} in it.
    Raises WeightsError, EngineError, ConfigError.
    """

    name = "vlm"

    def __init__(
        self,
        model: str | Path | LoadedModel,
        backend: str = "auto",
        prompt: str | Path | None = None,
    ) -> None:
        from pagelift.runtime import load_model

        self._template, self._wording = read_template(Path(prompt) if prompt else None)
        self.model = load_model(model, backend) if isinstance(model, str | Path) else model

    def extract(self, pages: Iterable[ReadablePage], schema: Schema, options: ExtractOptions) -> Proposal:
        """Values for all properties. Raises InvalidOutput, with the answer, when it is not JSON; EngineError, DocumentError."""
        asker = LocalAsker(self.model, self._template, options.budget.answer_tokens)
        proposal = extract_by_asking(pages, schema, asker, options.budget)
        metadata = {"model": self.model.name, "backend": self.model.backend, "wording": self._wording}
        return Proposal(proposal.data, proposal.fields, proposal.warnings, metadata | dict(proposal.metadata))


class LocalAsker:
    """Asks a loaded model, one question after the other."""

    def __init__(self, model: LoadedModel, template: str, answer_tokens: int) -> None:
        from pagelift.runtime import Sampling

        self._model = model
        self._template = template
        self._sampling = Sampling(max_tokens=answer_tokens)

    @property
    def context(self) -> int:
        return self._model.model.config.text.max_positions

    @property
    def concurrency(self) -> int:
        return 1

    def prompt_text(self, question: Question) -> str:
        notes = part_notes([page.number for page in question.pages], question.page_count, question.after)
        return extraction_prompt(question.schema.original, self._template, notes)

    def text_tokens(self, text: str) -> int:
        return len(self._model.tokenizer.encode(text))

    def picture_tokens(self, width_px: int, height_px: int) -> int:
        from pagelift.models.pictures import picture_size

        if self._model.processor is None:
            raise EngineError(f"{self._model.name} is a text-only checkpoint; it cannot read pages")
        settings = self._model.processor.image
        height, width = picture_size(height_px, width_px, settings) if settings.resize else (height_px, width_px)
        return height * width // settings.factor**2

    def ask(self, question: Question) -> Reply:
        prompt = self._model.prompt(self.prompt_text(question), [page.picture() for page in question.pages])
        hints = [line for page in question.pages for line in page.lines]
        answer = self._model.stream(prompt, self._sampling, hints=hints)
        pieces = tuple((piece.text, None if piece.token.forced else piece.token.logprob) for piece in answer if piece.token)
        return Reply(answer.text, answer.finish_reason == "length", pieces, answer.metadata)


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
