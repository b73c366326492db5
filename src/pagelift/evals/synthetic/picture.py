"""Pictures of pages: clean, or with the flaws of a scan."""

from __future__ import annotations

import io
from random import Random

import numpy as np
import numpy.typing as npt
import pypdfium2 as pdfium
from PIL import Image, ImageFilter

from pagelift.core import ConfigError

_PAPER = (248, 247, 243)


def drawn(pdf: bytes, page: int, dpi: float) -> Image.Image:
    """An RGB picture of a page of a generated PDF. Raises ConfigError when there is no such page."""
    document = pdfium.PdfDocument(pdf)
    try:
        if not 1 <= page <= len(document):
            raise ConfigError(f"page {page} does not exist; the document has {len(document)}")
        picture: Image.Image = document[page - 1].render(scale=dpi / 72).to_pil()
        return picture.convert("RGB")
    finally:
        document.close()


def degraded(picture: Image.Image, rng: Random) -> Image.Image:
    """Turned a little, blurred, unevenly lit, noisy, with less contrast, and compressed as JPEG; each flaw as drawn."""
    angle = rng.gauss(0, 0.6)
    picture = picture.rotate(angle, Image.Resampling.BICUBIC, fillcolor=_PAPER)
    if rng.random() < 0.7:
        picture = picture.filter(ImageFilter.GaussianBlur(rng.uniform(0.2, 1.0) * picture.width / 1240))
    pixels = np.asarray(picture, np.float32)
    pixels = pixels * rng.uniform(0.8, 1.0) + rng.uniform(0, 25)
    pixels = pixels * _light(picture.height, picture.width, rng)[:, :, None]
    noise = np.random.default_rng(rng.getrandbits(32)).standard_normal(pixels.shape[:2], dtype=np.float32)
    pixels = pixels + noise[:, :, None] * rng.uniform(1, 9)
    picture = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
    if rng.random() < 0.3:
        picture = picture.convert("L").convert("RGB")
    content = io.BytesIO()
    picture.save(content, "jpeg", quality=rng.randint(35, 90))
    return Image.open(io.BytesIO(content.getvalue())).convert("RGB")


def _light(height: int, width: int, rng: Random) -> npt.NDArray[np.float32]:
    """Brightness that falls off to one side, (height, width) float32 around 1."""
    strength = rng.uniform(-0.1, 0.1)
    across = np.linspace(1 - strength, 1 + strength, width, dtype=np.float32)
    down = np.linspace(1 - strength * rng.uniform(-1, 1), 1, height, dtype=np.float32)
    light: npt.NDArray[np.float32] = np.minimum(down[:, None] * across[None, :], np.float32(1.05))
    return light
