"""Documents made of random tokens for the golden checkpoint, some with a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from pagelift.evals.forced import Forced
from pagelift.models import load_config
from pagelift.models.pictures import PictureProcessor
from pagelift.models.positions import prompt_positions
from pagelift.models.prompt import PlacedPicture
from pagelift.quantization.lockstep import Documents
from pagelift.quantization.work import Kind, Unwatched, Work, together

DOCUMENT = Path(__file__).parent.parent / "golden" / "document"
PICTURE_AT, ANSWER = 4, 12


class Watching(Unwatched):
    """Adds up what it is told. left: after so many steps it raises InterruptedError."""

    def __init__(self, left: int = -1) -> None:
        self.left = left
        self.told: dict[Kind, float] = {}

    def advance(self, kind: Kind, amount: float) -> None:
        self.told = together([self.told, {kind: amount}])
        self.left -= 1
        if self.left == 0:
            raise InterruptedError

    def skip(self, work: Work) -> None:
        self.told = together([self.told, work])


def forced(seed: int, pictured: bool = False) -> Forced:
    """A prompt and an answer of `ANSWER` tokens, of which two in three belong to values."""
    rng = np.random.default_rng(seed)
    config = load_config(DOCUMENT)
    tokens = rng.integers(20, 250, 40 + seed % 7)
    placed: tuple[PlacedPicture, ...] = ()
    grids = []
    if pictured:
        assert config.vision is not None
        assert config.image_token is not None
        pixels = rng.integers(0, 255, (40, 56, 3), np.uint8)
        picture = PictureProcessor.load(DOCUMENT, config.vision).picture(Image.fromarray(pixels))
        count = picture.grid.merged(config.vision.merge_size).patches
        tokens = np.concatenate([tokens[:PICTURE_AT], np.full(count, config.image_token), tokens[PICTURE_AT:]])
        placed = (PlacedPicture(PICTURE_AT, count, picture),)
        grids = [(config.image_token, picture.grid)]
    positions, _ = prompt_positions(tokens, grids, config.vision.merge_size if config.vision else 1)
    values = np.zeros(len(tokens), bool)
    values[-ANSWER:] = rng.random(ANSWER) < 2 / 3
    values[-2] = True
    return Forced(f"made-{seed}", tokens, positions, placed, len(tokens) - ANSWER, values)


def documents() -> Documents:
    """Six for statistics, two to measure."""
    return Documents(tuple(forced(k, k % 2 == 0) for k in range(6)), (forced(10, True), forced(11)))
