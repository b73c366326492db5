"""Pictures and videos as a checkpoint's preprocessor wants them: resized, normalised, cut into patches.

The computation is that of the Qwen2-VL image processor and the Qwen3-VL video processor of transformers in its Pillow form: sizes are
rounded to whole merged patches within the pixel limits, pictures resized bicubically in 8 bits, then scaled and normalised. A picture
stands for two equal frames; a video's frames go in pairs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pagelift.backends.tensors import AnyArray, Floats
from pagelift.core.errors import EngineError
from pagelift.models.config import VisionConfig
from pagelift.models.positions import Grid
from pagelift.models.preprocessing import Preprocessing, load_preprocessing

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_ASPECT = 200


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture, or the frames of a video that share their tokens, resized.

    frames: temporal_patch_size of them, (height, width, 3) in 8 bits. Patches take 24 times the memory of a picture, so they are
    made when they are asked for.
    """

    frames: tuple[AnyArray, ...]
    settings: Preprocessing

    @property
    def grid(self) -> Grid:
        height, width, _ = self.frames[0].shape
        return Grid(1, height // self.settings.patch_size, width // self.settings.patch_size)

    def patches(self) -> Floats:
        """What the vision tower takes: (grid.patches, patch_features)."""
        return cut(normalised(self.frames, self.settings), self.settings)


@dataclass(frozen=True, slots=True)
class Clip:
    """A video's frame pairs, and the seconds that each stands for."""

    pairs: tuple[Picture, ...]
    timestamps: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Video:
    """Frames (RGB pictures of one size), their numbers in the source, and the source's frames per second."""

    frames: Sequence[Image]
    indices: Sequence[int]
    fps: float


class PictureProcessor:
    """Pictures and videos to patches, by the files of a checkpoint."""

    def __init__(self, image: Preprocessing, video: Preprocessing | None) -> None:
        self.image = image
        self.video = video

    @classmethod
    def load(cls, folder: Path, vision: VisionConfig) -> PictureProcessor:
        """By the settings in a checkpoint folder. Raises WeightsError, see `load_preprocessing`."""
        return cls(*load_preprocessing(folder, vision))

    def picture(self, image: Image) -> Picture:
        """One picture of any mode and size. Raises EngineError when it is far too narrow."""
        s = self.image
        rgb = image if image.mode == "RGB" else image.convert("RGB")
        height, width = picture_size(rgb.height, rgb.width, s) if s.resize else (rgb.height, rgb.width)
        return Picture((_resized(rgb, height, width, s),) * s.temporal_patch_size, s)

    def clip(self, video: Video) -> Clip:
        """A video whose frames were chosen before; a frame that lacks its partner is doubled. Raises EngineError."""
        s = self.video
        if s is None:
            raise EngineError("this checkpoint has no video settings (video_preprocessor_config.json); it cannot read videos")
        frames = [frame if frame.mode == "RGB" else frame.convert("RGB") for frame in video.frames]
        if len({frame.size for frame in frames}) != 1 or len(frames) != len(video.indices):
            raise EngineError("the frames of a video must be there and all of one size")
        height, width = frames[0].height, frames[0].width
        if s.resize:
            height, width = video_size(len(frames), height, width, s)
        resized = [_resized(frame, height, width, s) for frame in frames]
        step, missing = s.temporal_patch_size, -len(frames) % s.temporal_patch_size
        resized += [resized[-1]] * missing
        times = [index / video.fps for index in [*video.indices, *([video.indices[-1]] * missing)]]
        starts = range(0, len(times), step)
        return Clip(
            tuple(Picture(tuple(resized[k : k + step]), s) for k in starts), tuple((times[k] + times[k + step - 1]) / 2 for k in starts)
        )

    def choose_frames(self, count: int, fps: float) -> list[int]:
        """Which of a video's `count` frames to look at: evenly spaced, about as many per second as the checkpoint says."""
        s = self.video or self.image
        wanted = min(max(int(count / fps * s.fps), s.min_frames), s.max_frames, count)
        return [int(k) for k in np.linspace(0, count - 1, wanted).round()]


def picture_size(height: int, width: int, s: Preprocessing) -> tuple[int, int]:
    """Height and width in pixels that a picture is resized to: multiples of `factor`, area within the limits, shape about kept.

    Raises EngineError when one side is more than MAX_ASPECT times the other.
    """
    return _fit(1, 1, height, width, s)


def video_size(frames: int, height: int, width: int, s: Preprocessing) -> tuple[int, int]:
    """The same for the frames of a video, whose limits are for all frames together. Raises EngineError for a single frame."""
    if frames < s.temporal_patch_size:
        raise EngineError(f"a video needs at least {s.temporal_patch_size} frames, this one has {frames}")
    if min(height, width) < s.factor:
        scale = max(s.factor / height, s.factor / width)
        height, width = int(height * scale), int(width * scale)
    return _fit(frames, round(frames / s.temporal_patch_size) * s.temporal_patch_size, height, width, s)


def _fit(frames: int, counted: int, height: int, width: int, s: Preprocessing) -> tuple[int, int]:
    """counted: the frames that the area is compared with the limits for; the scale is then computed for `frames`."""
    if max(height, width) > MAX_ASPECT * min(height, width):
        raise EngineError(f"a picture of {width} x {height} pixels is too narrow; one side may be at most {MAX_ASPECT} times the other")
    rows, columns = round(height / s.factor), round(width / s.factor)
    area = counted * rows * columns * s.factor**2
    if area > s.max_pixels:
        shrink = math.sqrt(frames * height * width / s.max_pixels)
        rows, columns = (max(1, math.floor(side / shrink / s.factor)) for side in (height, width))
    elif area < s.min_pixels:
        grow = math.sqrt(s.min_pixels / (frames * height * width))
        rows, columns = (math.ceil(side * grow / s.factor) for side in (height, width))
    if not rows or not columns:
        raise EngineError(f"a picture of {width} x {height} pixels is smaller than one token of {s.factor} pixels")
    return rows * s.factor, columns * s.factor


def normalised(frames: Sequence[AnyArray], s: Preprocessing) -> Floats:
    """Frames (height, width, channels) of 8 bits as (frames, channels, height, width), scaled, less the mean, by the deviation."""
    pixels = np.stack(frames).astype(np.float32) * np.float32(s.scale)
    centred: Floats = pixels - np.array(s.mean, np.float32)
    return np.divide(centred, np.array(s.std, np.float32), dtype=np.float32).transpose(0, 3, 1, 2)


def cut(frames: Floats, s: Preprocessing) -> Floats:
    """Patches (patches, patch_features) of frames (frames, channels, height, width): pair by pair, blocks of merged patches together,
    each patch flattened as channel, frame of the pair, row, column."""
    count, channels, height, width = frames.shape
    merge, patch, pair = s.merge_size, s.patch_size, s.temporal_patch_size
    rows, columns = height // s.factor, width // s.factor
    if height % s.factor or width % s.factor:
        raise EngineError(f"a picture of {height} x {width} pixels is not made of whole tokens of {s.factor} pixels")
    blocks = frames.reshape(count // pair, pair, channels, rows, merge, patch, columns, merge, patch)
    ordered = blocks.transpose(0, 3, 6, 4, 7, 2, 1, 5, 8)  # pair, block row and column, patch in the block, then the patch's own axes
    return np.ascontiguousarray(ordered).reshape(-1, channels * pair * patch * patch)


def _resized(frame: Image, height: int, width: int, s: Preprocessing) -> AnyArray:
    from PIL.Image import Resampling

    return np.asarray(frame if frame.size == (width, height) else frame.resize((width, height), Resampling(s.resample)))
