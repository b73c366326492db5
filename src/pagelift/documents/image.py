"""One image file in the worker process; every frame of a TIFF is a page."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from PIL import (
    BmpImagePlugin,
    GifImagePlugin,
    Image,
    JpegImagePlugin,
    MpoImagePlugin,
    PngImagePlugin,
    TiffImagePlugin,
    UnidentifiedImageError,
    WebPImagePlugin,
)

from pagelift.core.errors import CorruptDocument, LimitExceeded
from pagelift.documents.wire import Header

# Importing a plugin registers its format; no other format is ever tried on a file.
PLUGINS = (BmpImagePlugin, GifImagePlugin, JpegImagePlugin, MpoImagePlugin, PngImagePlugin, TiffImagePlugin, WebPImagePlugin)
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")  # a JPEG of several pictures opens as MPO
JPEG_FORMATS = ("JPEG", "MPO")
MAX_SIDE_PX = 30_000
ORIENTATION = 0x0112
MIN_DPI, MAX_DPI = 72.0, 1200.0
MIN_SIDE_IN, MAX_SIDE_IN = 1.0, 17.0  # up to A3: cameras write 72 dpi without meaning it
ASSUMED_WIDTH_PT = 612.0
DAMAGE = (OSError, ValueError, SyntaxError, TypeError, KeyError, IndexError, EOFError, ZeroDivisionError, OverflowError, struct.error)
"""What Pillow raises on damaged files, besides its own UnidentifiedImageError."""

Image.MAX_IMAGE_PIXELS = None  # our own limit is checked before anything is decoded


class ImageFile:
    """An image file. source: a path, or the content. page_pixels: the limit of core.Limits.

    Every operation opens the file anew and drops what it decoded, so that an open document costs no memory.
    """

    def __init__(self, source: str | bytes, page_pixels: int) -> None:
        self.warnings: list[str] = []
        self.page_count = 1
        self._source = source
        self._page_pixels = page_pixels
        with self._opened(1) as image:
            if image.format == "TIFF":
                self.page_count = int(getattr(image, "n_frames", 1))
            elif image.format in ("GIF", "WEBP") and getattr(image, "is_animated", False):
                self.warnings.append("the image is animated; only its first frame is used")

    def close(self) -> None:
        """Nothing is held open."""

    def size(self, page: int) -> tuple[float, float]:
        """Width and height in points, after EXIF orientation, without decoding."""
        with self._opened(page) as image:
            return _size_pt(image)

    def content(self, page: int) -> Header:
        """The reply of worker.py's operation "content": an image has no text layer."""
        with self._opened(page) as image:
            width_pt, height_pt = _size_pt(image)
            dpi = max(_resolution(image))
        empty: Header = {"words": [], "hidden_words": [], "form_fields": [], "rules": [], "pictures": [], "warnings": []}
        return empty | {"width_pt": width_pt, "height_pt": height_pt, "text": "empty", "picture_dpi": dpi}

    def picture(self, page: int, dpi: float, max_pixels: int) -> tuple[Header, bytes]:
        """The page as rows of RGB pixels at `dpi`, or smaller if above `max_pixels`."""
        with self._opened(page) as image:
            width_pt, height_pt = _size_pt(image)
            scale = min(dpi / 72, (max_pixels / (width_pt * height_pt)) ** 0.5, MAX_SIDE_PX / max(width_pt, height_pt))
            size_px = max(1, int(width_pt * scale + 0.01)), max(1, int(height_pt * scale + 0.01))
            rows = _shown(image, size_px).tobytes()
        return {"width_px": size_px[0], "height_px": size_px[1], "stride": size_px[0] * 3, "mode": "RGB"}, rows

    @contextmanager
    def _opened(self, page: int) -> Iterator[Any]:
        """The image at `page`, not yet decoded. Raises CorruptDocument for anything that goes wrong with it, LimitExceeded."""
        try:
            with Image.open(io.BytesIO(self._source) if isinstance(self._source, bytes) else self._source, formats=FORMATS) as image:
                if page > 1:
                    image.seek(page - 1)
                self._check_size(image)
                yield image
        except (UnidentifiedImageError, *DAMAGE) as error:
            raise CorruptDocument(f"the image of page {page} is damaged or truncated ({error}); fetch or save it again") from error

    def _check_size(self, image: Any) -> None:
        width_px, height_px = image.size
        if width_px < 1 or height_px < 1:
            raise CorruptDocument(f"the image has {width_px} x {height_px} pixels; fetch or save it again")
        reducible = 64 if image.format in JPEG_FORMATS else 1  # JPEG decodes at 1/8 of each side
        if width_px * height_px > self._page_pixels * reducible:
            raise LimitExceeded(
                f"the image has {width_px} x {height_px} pixels, the limit is {self._page_pixels} pixels per page; "
                "raise limits.page_pixels or shrink the image"
            )


def _size_pt(image: Any) -> tuple[float, float]:
    width_px, height_px = image.size
    dpi_x, dpi_y = _resolution(image)
    width_pt, height_pt = width_px * 72 / dpi_x, height_px * 72 / dpi_y
    return (height_pt, width_pt) if _orientation(image) >= 5 else (width_pt, height_pt)


def _orientation(image: Any) -> int:
    """The EXIF orientation, 1 to 8; 1 for a TIFF, which Pillow turns itself."""
    if image.format != "TIFF":
        with suppress(*DAMAGE):
            value = image.getexif().get(ORIENTATION, 1)
            return value if isinstance(value, int) and 1 <= value <= 8 else 1
    return 1


def _resolution(image: Any) -> tuple[float, float]:
    """Pixels per inch along both sides as stored: from the file where plausible, else for a page of US letter width."""
    width_px, height_px = image.size
    with suppress(*DAMAGE):
        dpi_x, dpi_y = (float(v) for v in image.info["dpi"])
        long_side_in = max(width_px / dpi_x, height_px / dpi_y)
        if MIN_DPI <= dpi_x <= MAX_DPI and MIN_DPI <= dpi_y <= MAX_DPI and MIN_SIDE_IN <= long_side_in <= MAX_SIDE_IN:
            return dpi_x, dpi_y
    shown_width_px = height_px if _orientation(image) >= 5 else width_px
    dpi = shown_width_px * 72 / ASSUMED_WIDTH_PT
    return dpi, dpi


def _shown(image: Any, size_px: tuple[int, int]) -> Any:
    """The decoded image in RGB, turned as it is shown, at `size_px`."""
    orientation = _orientation(image)
    stored_px = size_px[::-1] if orientation >= 5 else size_px
    if image.format in JPEG_FORMATS:
        image.draft("RGB", stored_px)
    rgb = flatten(image)
    if rgb.size != stored_px:
        shrinking = rgb.size[0] > stored_px[0]
        rgb = rgb.resize(stored_px, Image.Resampling.LANCZOS if shrinking else Image.Resampling.BICUBIC, reducing_gap=3.0)
    return rgb.transpose(TRANSPOSES[orientation]) if orientation in TRANSPOSES else rgb


TRANSPOSES = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def flatten(image: Any) -> Any:
    """Any Pillow image as RGB: transparent parts white, deep channels scaled to 8 bits."""
    if image.mode.startswith("I;16"):
        image = image.convert("I")
        return image.point(lambda v: v * (1 / 256)).convert("L").convert("RGB")
    if image.mode in ("I", "F"):
        low, high = image.getextrema()
        scale = 255 / (high - low) if high > low else 1.0
        return image.convert("F").point(lambda v: v * scale - low * scale).convert("L").convert("RGB")
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        image = image.convert("RGBA")
        ground = Image.new("RGB", image.size, (255, 255, 255))
        ground.paste(image, mask=image.getchannel("A"))
        return ground
    return image.convert("RGB")
