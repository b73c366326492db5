"""A checkpoint that is ready to answer: model, tokenizer, chat template and picture processor together."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pagelift.backends import installed_backends, open_backend
from pagelift.decoding import Constraint, Sampling, Token
from pagelift.models import Model, open_model
from pagelift.models.pictures import PictureProcessor, Video
from pagelift.models.prompt import Prompt, PromptBuilder, user_turn
from pagelift.runtime.runner import Runner
from pagelift.runtime.sequences import FinishReason, Request
from pagelift.weights import ChatTemplate, Message, TextStream, Tokenizer, find_model

if TYPE_CHECKING:
    from PIL.Image import Image

log = logging.getLogger(__name__)


def load_model(name: str | Path, backend: str = "auto") -> LoadedModel:
    """Load a checkpoint: a folder, or a hub id whose files are in the cache already (`pagelift models pull`).

    backend: "cpu", "mlx", "reference", or "auto" for the best one installed. Nothing is ever fetched.
    Raises WeightsError when it is not there, not complete, damaged or not supported; EngineError for an unknown backend.
    """
    folder = find_model(name)
    chosen = best_backend() if backend == "auto" else backend
    start = time.perf_counter()
    tokenizer = Tokenizer.load(folder)
    template = ChatTemplate.load(folder, tokenizer)
    model = open_model(folder, open_backend(chosen))
    vision = model.config.vision
    processor = PictureProcessor.load(folder, vision) if vision else None
    log.info("loaded %s on backend %s in %.2f s", folder, chosen, time.perf_counter() - start)
    return LoadedModel(str(name), chosen, model, tokenizer, PromptBuilder(model.config, tokenizer, template, processor), processor)


def best_backend() -> str:
    """The fastest backend that is installed: mlx on macOS, else cpu; `reference`, which is only for tiny models, warns."""
    installed = installed_backends()
    for name in ("mlx", "cpu") if sys.platform == "darwin" else ("cpu", "mlx"):
        if name in installed:
            return name
    log.warning("neither backend cpu nor mlx is installed; backend reference is far too slow for real models")
    return "reference"


@dataclass(frozen=True, slots=True)
class Piece:
    """A generated token and the text that it completes; the last piece may have text left over and no token."""

    text: str
    token: Token | None


@dataclass(slots=True)
class LoadedModel:
    """Answers prompts. Safe to use from several threads: their steps take turns.

    name: as it was asked for. processor: None for a text-only checkpoint.
    """

    name: str
    backend: str
    model: Model
    tokenizer: Tokenizer
    prompts: PromptBuilder
    processor: PictureProcessor | None = None
    turn: threading.Lock = field(default_factory=threading.Lock, repr=False)

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
        copy from, such as the words of each page in reading order; they make it faster and never change it.
        """
        return Generation(self, Request(prompt, sampling or Sampling(), constraint, tuple(hints)))

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


class Generation:
    """An answer being generated; an iterator of pieces. `cancel` ends it before the next token."""

    def __init__(self, loaded: LoadedModel, request: Request) -> None:
        self._turn = loaded.turn
        self._runner = Runner(loaded.model, loaded.tokenizer.stop_tokens)
        self._sequence = self._runner.add(request.prompt, request.sampling, request.constraint, request.hints)
        self._stream = TextStream(loaded.tokenizer)
        self._pieces = self._run()
        self._parts: list[str] = []
        self.seconds_to_first_token = 0.0
        self.seconds = 0.0

    def __iter__(self) -> Iterator[Piece]:
        return self._pieces

    @property
    def text(self) -> str:
        """The answer so far."""
        return "".join(self._parts)

    @property
    def tokens(self) -> tuple[Token, ...]:
        """The tokens of the answer so far, without the one that ended it."""
        return tuple(self._sequence.output)

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why the answer ended, None before that."""
        return self._sequence.finish_reason

    @property
    def metadata(self) -> dict[str, int | float]:
        """Counts and times (seconds) so far."""
        counters = self._runner.counters
        return {
            "prompt_tokens": len(self._sequence.prompt),
            "output_tokens": len(self._sequence.output),
            "forced_tokens": sum(token.forced for token in self._sequence.output),
            "passes": counters.passes,
            "pictures": counters.pictures,
            "encode_s": round(counters.encode_s, 4),
            "first_token_s": round(self.seconds_to_first_token, 4),
            "generate_s": round(self.seconds, 4),
            "cache_bytes": self._sequence.cache.nbytes,
        }

    def cancel(self) -> None:
        """Generate no further tokens."""
        with self._turn:
            self._runner.cancel(self._sequence)

    def _run(self) -> Iterator[Piece]:
        start = time.perf_counter()
        given = 0
        while given < len(self._sequence.output) or self._sequence.finish_reason is None:
            with self._turn:
                self._runner.step()
            self.seconds = time.perf_counter() - start
            for token in self._sequence.output[given:]:
                self.seconds_to_first_token = self.seconds_to_first_token or self.seconds
                given += 1
                yield self._piece(self._stream.put([token.id]), token)
        rest = self._stream.finish()
        if rest:
            yield self._piece(rest, None)

    def _piece(self, text: str, token: Token | None) -> Piece:
        self._parts.append(text)
        return Piece(text, token)
