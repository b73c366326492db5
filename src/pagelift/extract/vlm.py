"""The `vlm` engine: pages and schema to a local vision-language model, its answer to values with their places on the pages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from pagelift.core import EngineError, Proposal
from pagelift.extract.conduct import extract_by_asking
from pagelift.extract.prompts import read_template
from pagelift.extract.settings import LocalModel, choose_model
from pagelift.extract.words_prompt import WORDS_PROMPT, known_marks, wants_words

if TYPE_CHECKING:
    from pagelift.core import Budget
    from pagelift.decoding import JsonStyle
    from pagelift.extract.engines import ExtractOptions, ReadablePage
    from pagelift.extract.local import LocalAsker
    from pagelift.extract.telling import Tell
    from pagelift.runtime import LoadedModel, RuntimeSettings
    from pagelift.schema import Schema


class VlmEngine:
    """Asks a local model for the whole document, or for parts of it where it is long; the answer is held to the schema's grammar.

    model: a loaded model, a checkpoint folder or the id of a cached model. prompt: a file with the prompt's text, {schema} in it.
    style: how the model writes its JSON. settings: how a model that is loaded here uses the machine.
    tell: if set, called with every value as the model writes it. Raises WeightsError, EngineError, ConfigError.
    """

    name = "vlm"

    def __init__(
        self,
        model: str | Path | LoadedModel,
        backend: str = "auto",
        prompt: str | Path | None = None,
        style: JsonStyle | None = None,
        settings: RuntimeSettings | None = None,
    ) -> None:
        from pagelift.decoding import JsonStyle
        from pagelift.runtime import load_model

        self._template: str | None
        self._template, self._wording = read_template(Path(prompt) if prompt else None)
        self.model = load_model(model, backend, settings) if isinstance(model, str | Path) else model
        self._style = style or JsonStyle()
        if prompt is None and wants_words(self.model.name):
            self._template, self._wording = None, WORDS_PROMPT
            self._style = replace(self._style, marks=known_marks(self.model.tokenizer, self.model.name))
        self.tell: Tell | None = None

    def asker(self, budget: Budget) -> LocalAsker:
        """What puts this engine's questions to the model."""
        from pagelift.extract.local import LocalAsker

        return LocalAsker(self.model, self._template, budget.answer_tokens, self._style, self.tell)

    def extract(self, pages: Iterable[ReadablePage], schema: Schema, options: ExtractOptions) -> Proposal:
        """Values for all properties. Raises InvalidOutput, with the answer, when it is not JSON; EngineError, DocumentError."""
        asker = self.asker(options.budget)
        asker.prepare(schema, options.budget.fields)  # while the pages are read
        proposal = extract_by_asking(pages, schema, asker, options.budget)
        metadata = {"model": self.model.name, "backend": self.model.backend, "wording": self._wording}
        return Proposal(proposal.data, proposal.fields, proposal.warnings, metadata | dict(proposal.metadata))


def local_engine(asked: LocalModel) -> VlmEngine:
    """The engine for the model that was asked for, is configured or cached. Raises EngineError when there is none."""
    chosen = choose_model(asked)
    if chosen is None or chosen.model is None:
        raise EngineError(
            "no local model is configured: give one (--model, PAGELIFT_MODEL, or model in config.toml), or fetch one with "
            "pagelift models pull datalab-to/lift"
        )
    return _load(chosen)


@lru_cache(maxsize=1)
def _load(chosen: LocalModel) -> VlmEngine:
    """Extractors for several schemas share the weights."""
    from pagelift.runtime import RuntimeSettings

    assert chosen.model is not None
    settings = RuntimeSettings(tile_cache=Path(chosen.tile_cache) if chosen.tile_cache else None)
    return VlmEngine(chosen.model, chosen.backend, chosen.prompt, settings=settings)
