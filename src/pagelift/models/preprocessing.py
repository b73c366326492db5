"""The settings of a checkpoint's image and video preprocessors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pagelift.models.config import Section, VisionConfig
from pagelift.weights.tokenizer import read_json

IMAGE_PROCESSORS = ("Qwen2VLImageProcessor", "Qwen2VLImageProcessorFast", "Qwen2VLImageProcessorPil", "Qwen3VLImageProcessor")
VIDEO_PROCESSORS = ("Qwen3VLVideoProcessor", "Qwen3VLVideoProcessorFast")
RGB = 3


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """The preprocessor's settings. min_pixels, max_pixels: of one picture, or of all frames of a video together.

    scale: what pixel values are multiplied by. resample: Pillow's number of the filter. fps, min_frames, max_frames: of videos.
    """

    patch_size: int
    temporal_patch_size: int
    merge_size: int
    min_pixels: int
    max_pixels: int
    scale: float = 1 / 255
    mean: tuple[float, ...] = (0.5,) * RGB
    std: tuple[float, ...] = (0.5,) * RGB
    resample: int = 3
    resize: bool = True
    fps: float = 2.0
    min_frames: int = 4
    max_frames: int = 768

    @property
    def factor(self) -> int:
        """Pixels of the side of one token."""
        return self.patch_size * self.merge_size


def load_preprocessing(folder: Path, vision: VisionConfig) -> tuple[Preprocessing, Preprocessing | None]:
    """Settings for pictures and, if the checkpoint has them, for videos.

    Read from preprocessor_config.json and video_preprocessor_config.json, or from processor_config.json with both in it.
    Raises WeightsError when the picture settings are missing, or when any are wrong or contradict config.json.
    """
    both = Section(read_json(folder, "processor_config.json"), "", str(folder / "processor_config.json"))
    found = []
    for file, key, kinds in (
        ("preprocessor_config.json", "image_processor", IMAGE_PROCESSORS),
        ("video_preprocessor_config.json", "video_processor", VIDEO_PROCESSORS),
    ):
        values = read_json(folder, file)
        section = Section(values, "", str(folder / file)) if values or key not in both.values else both.section(key)
        if section.values or key == "image_processor":
            section.expect(f"{key}_type", *kinds)
            found.append(_settings(section, vision))
    return found[0], found[1] if len(found) > 1 else None


def _settings(c: Section, vision: VisionConfig) -> Preprocessing:
    """Keys for which transformers has one default may be missing; those that runtimes assume differently may not."""
    sizes = {"patch_size": vision.patch_size, "temporal_patch_size": vision.temporal_patch_size, "merge_size": vision.merge_size}
    for name, size in sizes.items():
        if name in c.values:
            c.expect(name, size)
    c.expect("do_convert_rgb", True, None)
    least, most = (_limit(c, old, new) for old, new in (("min_pixels", "shortest_edge"), ("max_pixels", "longest_edge")))
    normalise = c.flag("do_normalize", True)
    resample = c.token("resample") if c.values.get("resample") is not None else 3
    if least > most or resample > 5:
        raise c.fail("size" if least > most else "resample", "a range of pixels" if least > most else "one of Pillow's filters, 0 to 5")
    return Preprocessing(
        **sizes,
        min_pixels=least,
        max_pixels=most,
        scale=_positive(c, "rescale_factor", 1 / 255) if c.flag("do_rescale", True) else 1.0,
        mean=_channels(c, "image_mean") if normalise else (0.0,) * RGB,
        std=_channels(c, "image_std") if normalise else (1.0,) * RGB,
        resample=resample,
        resize=c.flag("do_resize", True),
        fps=_positive(c, "fps", 2.0),
        min_frames=int(_positive(c, "min_frames", 4)),
        max_frames=int(_positive(c, "max_frames", 768)),
    )


def _limit(c: Section, old: str, new: str) -> int:
    """A limit of area in pixels: `size` gives it under names that once meant edges, older files beside it."""
    return c.pixels(old) if c.values.get(old) is not None else c.section("size").pixels(new)


def _positive(c: Section, name: str, default: float) -> float:
    return c.positive(name) if c.values.get(name) is not None else default


def _channels(c: Section, name: str) -> tuple[float, ...]:
    values: Any = c.values.get(name)
    numbers = isinstance(values, list) and len(values) == RGB and all(type(v) in (int, float) and math.isfinite(v) for v in values)
    if not numbers or (name == "image_std" and 0 in values):
        raise c.fail(name, f"a list of {RGB} numbers")
    return tuple(map(float, values))
