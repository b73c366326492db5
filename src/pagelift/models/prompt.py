"""A prompt: the tokens of a conversation, where its pictures stand in them, and the position of every token."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pagelift.core.errors import EngineError
from pagelift.models.config import ModelConfig
from pagelift.models.pictures import Clip, Picture, PictureProcessor, Video
from pagelift.models.positions import Integers, prompt_positions
from pagelift.weights import ChatTemplate, Message, Tokenizer

if TYPE_CHECKING:
    from PIL.Image import Image

FRAME = "<{seconds:.1f} seconds><|vision_start|>{placeholder}<|vision_end|>"
"""How each frame pair of a video stands in the text."""


@dataclass(frozen=True, slots=True)
class PlacedPicture:
    """A picture, or one frame pair of a video. start: its first token in the prompt; tokens: how many it takes."""

    start: int
    tokens: int
    picture: Picture


@dataclass(frozen=True, slots=True)
class Prompt:
    """tokens: (T,) ids. positions: (3, T). next_position: of the first token of the answer. pictures: in order."""

    tokens: Integers
    positions: Integers
    next_position: int
    pictures: tuple[PlacedPicture, ...] = ()

    def __len__(self) -> int:
        return len(self.tokens)


class PromptBuilder:
    """Conversations to prompts, by the files of one checkpoint. processor: None for a text-only checkpoint."""

    def __init__(self, config: ModelConfig, tokenizer: Tokenizer, template: ChatTemplate, processor: PictureProcessor | None) -> None:
        self._config = config
        self._tokenizer = tokenizer
        self._template = template
        self._processor = processor

    def build(
        self,
        messages: Sequence[Message],
        images: Sequence[Image] = (),
        videos: Sequence[Video] = (),
        variables: Mapping[str, Any] | None = None,
    ) -> Prompt:
        """The prompt for an answer to `messages`.

        images, videos: for the parts {"type": "image"} and {"type": "video"} of the messages, in order. variables: for the
        chat template. Raises EngineError when they do not match, or when the checkpoint cannot read pictures.
        """
        text = self._template.render(messages, **(variables or {}))
        if not images and not videos:
            return self._place(text, [], [])
        if self._processor is None:
            raise EngineError("this checkpoint is text-only; it cannot read pictures")
        return self._place(text, [self._processor.picture(image) for image in images], [self._processor.clip(video) for video in videos])

    def _place(self, text: str, images: Sequence[Picture], clips: Sequence[Clip]) -> Prompt:
        config = self._config
        if config.vision is None or config.image_token is None or config.video_token is None:
            tokens = self._tokenizer.encode(text)
            return _prompt(np.array(tokens, np.int64), [], 1)
        names = [self._tokenizer.decode([token], skip_special=False) for token in (config.image_token, config.video_token)]
        if not all(names):
            raise EngineError(f"the tokenizer lacks the picture tokens {config.image_token} and {config.video_token} of config.json")
        for name, given, what in zip(names, (images, clips), ("pictures", "videos"), strict=True):
            if text.count(name) != len(given):
                raise EngineError(f"the prompt has {text.count(name)} places for {what} ({name}), but {len(given)} {what} were given")
        frames = iter(["".join(FRAME.format(seconds=t, placeholder=names[1]) for t in clip.timestamps) for clip in clips])
        text = re.sub(re.escape(names[1]), lambda _: next(frames), text)
        pictures = {config.image_token: iter(images), config.video_token: iter([pair for clip in clips for pair in clip.pairs])}
        tokens, placed = [], []
        for token in self._tokenizer.encode(text):
            count = 1
            if token in pictures:
                picture = next(pictures[token], None)
                if picture is None:
                    raise EngineError(f"the picture token {names[0]} or {names[1]} of config.json also stands for ordinary text")
                count = picture.grid.merged(config.vision.merge_size).patches
                placed.append((token, PlacedPicture(len(tokens), count, picture)))
            tokens += [token] * count
        return _prompt(np.array(tokens, np.int64), placed, config.vision.merge_size)


def user_turn(text: str, images: int = 0, videos: int = 0) -> list[Message]:
    """One user message: pictures, then videos, then the text; without any, just the text."""
    if not images and not videos:
        return [{"role": "user", "content": text}]
    parts: list[dict[str, str]] = [*([{"type": "image"}] * images), *([{"type": "video"}] * videos), {"type": "text", "text": text}]
    return [{"role": "user", "content": parts}]


def _prompt(tokens: Integers, placed: Sequence[tuple[int, PlacedPicture]], merge_size: int) -> Prompt:
    if not len(tokens):
        raise EngineError("the prompt is empty")
    positions, after = prompt_positions(tokens, [(token, placed_one.picture.grid) for token, placed_one in placed], merge_size)
    return Prompt(tokens, positions, after, tuple(placed_one for _, placed_one in placed))
