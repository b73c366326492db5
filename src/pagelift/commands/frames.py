"""Videos as frames: a folder of pictures, an animated picture, or a video file where OpenCV is installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image, ImageSequence, UnidentifiedImageError

from pagelift.core import CorruptDocument, DocumentNotFound, UnsupportedDocument
from pagelift.models.pictures import Video

PICTURES = {".png", ".jpg", ".jpeg", ".webp", ".bmp"}
FOLDER_FPS = 2.0
Choose = Callable[[int, float], list[int]]


def read_video(path: Path, choose: Choose) -> Video:
    """The frames of a video that `choose(count, fps)` picks by number.

    A folder's pictures, in the order of their names, count as 2 frames per second. Raises DocumentError.
    """
    if path.is_dir():
        return _from_folder(path, choose)
    if not path.is_file():
        raise DocumentNotFound(f"{path}: there is no such video; give a folder of pictures, an animated picture or a video file")
    try:
        with Image.open(path, formats=("GIF", "WEBP", "PNG")) as picture:
            return _from_animation(picture, choose)
    except UnidentifiedImageError:
        return _from_file(path, choose)
    except (OSError, ValueError, SyntaxError, EOFError) as error:
        raise CorruptDocument(f"{path}: the picture is damaged or truncated ({error})") from error


def _from_folder(folder: Path, choose: Choose) -> Video:
    files = sorted(file for file in folder.iterdir() if file.suffix.lower() in PICTURES)
    if not files:
        raise UnsupportedDocument(f"{folder}: there is no picture in the folder")
    indices = choose(len(files), FOLDER_FPS)
    frames = []
    for index in indices:
        try:
            with Image.open(files[index]) as picture:
                frames.append(picture.convert("RGB"))
        except (OSError, ValueError, SyntaxError, EOFError) as error:
            raise CorruptDocument(f"{files[index]}: the picture is damaged or of an unknown kind ({error})") from error
    return Video(frames, indices, FOLDER_FPS)


def _from_animation(picture: Any, choose: Choose) -> Video:
    durations_ms = [frame.info.get("duration", 0) or 100 for frame in ImageSequence.Iterator(picture)]
    fps = 1000 * len(durations_ms) / sum(durations_ms)
    indices = choose(len(durations_ms), fps)
    frames = []
    for index in indices:
        picture.seek(index)
        frames.append(picture.convert("RGB"))
    return Video(frames, indices, fps)


def _from_file(path: Path, choose: Choose) -> Video:
    try:
        import cv2
    except ImportError as error:
        raise UnsupportedDocument(f"{path}: video files need OpenCV (pip install opencv-python-headless)") from error
    video = cv2.VideoCapture(str(path))
    try:
        count, fps = int(video.get(cv2.CAP_PROP_FRAME_COUNT)), float(video.get(cv2.CAP_PROP_FPS))
        if not video.isOpened() or count < 1 or not fps > 0:
            raise UnsupportedDocument(f"{path}: it is not a video that can be read")
        indices, frames = choose(count, fps), []
        for number in range(indices[-1] + 1):
            there = video.grab()
            if not there:
                raise CorruptDocument(f"{path}: the video ends at frame {number} of {count}")
            if number in indices:
                frames.append(Image.fromarray(cv2.cvtColor(video.retrieve()[1], cv2.COLOR_BGR2RGB)))
    finally:
        video.release()
    return Video(frames, indices, fps)
