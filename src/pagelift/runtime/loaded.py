"""A checkpoint that is ready to answer: model, tokenizer, chat template and picture processor together."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pagelift.backends import installed_backends, open_backend
from pagelift.decoding import Constraint, Sampling, Vocabulary
from pagelift.models import Model, open_model
from pagelift.models.pictures import PictureProcessor, Video
from pagelift.models.prompt import Prompt, PromptBuilder, user_turn
from pagelift.runtime.generation import Generation
from pagelift.runtime.runner import Runner
from pagelift.runtime.sequences import Request
from pagelift.runtime.service import Service
from pagelift.runtime.settings import RuntimeSettings
from pagelift.weights import ChatTemplate, Message, Tokenizer, find_model

if TYPE_CHECKING:
    from PIL.Image import Image

log = logging.getLogger(__name__)


def load_model(name: str | Path, backend: str = "auto", settings: RuntimeSettings | None = None) -> LoadedModel:
    """Load a checkpoint: a folder, or a hub id whose files are in the cache already (`pagelift models pull`).

    backend: "cpu", "mlx", "reference", or "auto" for the best one installed. settings: how it uses the machine.
    Nothing is ever fetched.
    Raises WeightsError when it is not there, not complete, damaged or not supported; EngineError for an unknown backend.
    """
    folder = find_model(name)
    chosen = best_backend() if backend == "auto" else backend
    start = time.perf_counter()
    tokenizer = Tokenizer.load(folder)
    template = ChatTemplate.load(folder, tokenizer)
    settings = settings or RuntimeSettings()
    model = open_model(folder, open_backend(chosen), settings.tile_cache)
    vision = model.config.vision
    processor = PictureProcessor.load(folder, vision) if vision else None
    log.info("loaded %s on backend %s in %.2f s", folder, chosen, time.perf_counter() - start)
    prompts = PromptBuilder(model.config, tokenizer, template, processor)
    return LoadedModel(str(name), chosen, model, tokenizer, prompts, processor, settings)


def best_backend() -> str:
    """The fastest backend that is installed: mlx on macOS, else cpu; `reference`, which is only for tiny models, warns."""
    installed = installed_backends()
    for name in ("mlx", "cpu") if sys.platform == "darwin" else ("cpu", "mlx"):
        if name in installed:
            return name
    log.warning("neither backend cpu nor mlx is installed; backend reference is far too slow for real models")
    return "reference"


@dataclass(slots=True)
class LoadedModel:
    """Answers prompts, those of several threads together.

    name: as it was asked for. processor: None for a text-only checkpoint. vocabulary: what grammars are compiled for.
    """

    name: str
    backend: str
    model: Model
    tokenizer: Tokenizer
    prompts: PromptBuilder
    processor: PictureProcessor | None = None
    settings: RuntimeSettings = field(default_factory=RuntimeSettings)
    vocabulary: Vocabulary = field(init=False, repr=False)
    service: Service = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.vocabulary = Vocabulary(self.tokenizer, self.model.config.text.vocab_size)
        self.service = Service(Runner(self.model, self.tokenizer.stop_tokens, self.settings, self.tokenizer))

    def prompt(
        self,
        messages: str | Sequence[Message],
        images: Sequence[Image] = (),
        videos: Sequence[Video] = (),
        variables: Mapping[str, Any] | None = None,
    ) -> Prompt:
        """The prompt for `messages`; a string is one user turn with the pictures and videos before the text. Raises EngineError."""
        if isinstance(messages, str):
            messages = user_turn(messages, len(images), len(videos))
        return self.prompts.build(messages, images, videos, variables)

    def stream(
        self, prompt: Prompt, sampling: Sampling | None = None, *, constraint: Constraint | None = None, hints: Sequence[str] = ()
    ) -> Generation:
        """Start an answer: iterate over it to get it piece by piece. Raises EngineError when the prompt is too long.

        constraint: what the answer may look like; it is advanced, so each answer needs its own. hints: texts that the answer may
        copy from, such as the lines of each page in reading order, and answers from elsewhere as JSON; they make it faster and never
        change it. Errors of the grammar or the model are raised while iterating.
        """
        ticket = self.service.submit(Request(prompt, sampling or Sampling(), constraint, tuple(hints)))
        return Generation(self.service, ticket, self.tokenizer)

    def generate(
        self,
        messages: str | Sequence[Message],
        images: Sequence[Image] = (),
        videos: Sequence[Video] = (),
        sampling: Sampling | None = None,
    ) -> Generation:
        """The whole answer. Raises EngineError."""
        generation = self.stream(self.prompt(messages, images, videos), sampling)
        for _ in generation:
            pass
        return generation
