"""Text in pictures, read by RapidOCR's detection and recognition models in the worker process.

Detection runs on a reduced picture, because its time grows with the area, and recognition on crops of the full one.
A picture that lies on its side or upside down is turned first; boxes are always those of the picture as given.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

DETECTION_PIXELS = 0.8e6  # area of the picture in which lines are looked for
FINE_DETECTION_PIXELS = 1.6e6  # the same where the lines turn out to be small
SMALL_LINE_PX = 13  # median line height in the first detection below which the second is worth its time
MIN_CROP_PX = 128  # shorter lines are padded; the recogniser's default of 320 takes half as long again and reads no better
MARGIN_PX = 40
MIN_CONTRAST = 24  # of 255
MIN_SCORE = 0.5
UPRIGHT_SAMPLE = 16  # lines that vote on whether the picture stands upside down
MAX_ASPECT = 80  # a longer line is compressed: the recogniser's memory grows with the length, and no page has such lines
TALL = 1.5  # height by width of a line that runs vertically
MIN_SPACE_COLUMNS = 5  # of the recogniser's output, 8 px each at 48 px line height
Quad = NDArray[np.float32]  # (4, 2): top left, top right, bottom right, bottom left in reading direction, px
Picture = NDArray[Any]  # (height, width, 3) BGR


def read_lines(picture: Picture, threads: int) -> list[dict[str, Any]]:
    """The text lines of a picture, top to bottom: text, score in [0, 1], and words as [text, x0, top, x1, bottom] in px."""
    height_px, width_px = picture.shape[:2]
    engine = _engine(threads)
    quads = _detect(engine, picture)
    turns = 0
    if _lies_on_side(quads):
        turns = 1
        quads = _detect(engine, np.ascontiguousarray(np.rot90(picture)))
    turned = np.ascontiguousarray(np.rot90(picture, turns)) if turns else picture
    crops = [_crop(turned, q) for q in quads]
    if _is_upside_down(engine, crops):
        turns += 2
        turned = np.ascontiguousarray(np.rot90(picture, turns))
        quads = _detect(engine, turned)
        crops = [_crop(turned, q) for q in quads]
    if not crops:
        return []
    lines = _recognize(engine, crops, quads)
    for line in lines:
        line["words"] = [[text, *_turn_back(corners, turns, width_px, height_px)] for text, *corners in line["words"]]
    return lines


def picture_from_rows(rows: bytes, size_px: tuple[int, int], stride: int, mode: str) -> Picture:
    """Rows of `stride` bytes as a picture. mode: "RGB" or "BGR"."""
    width_px, height_px = size_px
    pixels = np.frombuffer(rows, np.uint8, height_px * stride).reshape(height_px, stride)[:, : width_px * 3].reshape(height_px, width_px, 3)
    return np.ascontiguousarray(pixels[:, :, ::-1] if mode == "RGB" else pixels)


@lru_cache(maxsize=1)
def _engine(threads: int) -> Any:
    logging.disable(logging.CRITICAL)
    from omegaconf import flag_override
    from onnxruntime import InferenceSession, SessionOptions
    from rapidocr import RapidOCR

    cv2.setNumThreads(threads)
    options = SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    options.enable_cpu_mem_arena = False
    # Threads that spin while they wait make everything several times slower as soon as the machine has other work.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    parameters = {
        "Global.log_level": "critical",
        "Global.max_side_len": 100_000,
        "Det.limit_side_len": 32,
        "Rec.rec_img_shape": [3, 48, MIN_CROP_PX],
    }
    engine = RapidOCR(params=parameters)
    models = Path(engine.cfg.Global.model_root_dir)
    for section, pattern in ((engine.cfg.Det, "*_det_*.onnx"), (engine.cfg.Cls, "*_cls_*.onnx"), (engine.cfg.Rec, "*_rec_*.onnx")):
        with flag_override(section, "allow_objects", True):
            section.session = InferenceSession(str(next(models.glob(pattern))), options, providers=["CPUExecutionProvider"])
    blank = np.full((48, 160, 3), 255, np.uint8)
    engine(blank, use_det=False, use_cls=True, use_rec=True)  # loads the models, which are public attributes from then on
    return engine


def _detect(engine: Any, picture: Picture) -> list[Quad]:
    """Quads of the text lines in the inked part of a picture; looked for again at a larger size where they are small.

    The blank part is left out, because the detector overlooks a single line on an otherwise empty page.
    """
    x, y, width_px, height_px = _inked(picture)
    if not width_px:
        return []
    inked = np.ascontiguousarray(picture[y : y + height_px, x : x + width_px])
    quads = _detect_at(engine, inked, DETECTION_PIXELS)
    reduction = (DETECTION_PIXELS / (width_px * height_px)) ** 0.5
    if quads and reduction < 1 and median(_height(q) for q in quads) * reduction < SMALL_LINE_PX:
        quads = _detect_at(engine, inked, FINE_DETECTION_PIXELS)
    return [q + np.array([x, y], np.float32) for q in quads]


def _inked(picture: Picture) -> tuple[int, int, int, int]:
    """Left, top, width and height of what differs from the picture's ground colour, with a margin; zeros if nothing does."""
    gray = cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY)
    ground = int(np.median(gray[::4, ::4]))
    x, y, width_px, height_px = cv2.boundingRect((cv2.absdiff(gray, np.full_like(gray, ground)) > MIN_CONTRAST).astype(np.uint8))
    if not width_px or not height_px:
        return 0, 0, 0, 0
    left, top = max(x - MARGIN_PX, 0), max(y - MARGIN_PX, 0)
    right, bottom = min(x + width_px + MARGIN_PX, gray.shape[1]), min(y + height_px + MARGIN_PX, gray.shape[0])
    return left, top, right - left, bottom - top


def _detect_at(engine: Any, picture: Picture, pixels: float) -> list[Quad]:
    height_px, width_px = picture.shape[:2]
    scale = min(1.0, (pixels / (height_px * width_px)) ** 0.5)
    small = picture
    if scale < 1:
        size = max(1, round(width_px * scale)), max(1, round(height_px * scale))
        small = cv2.resize(picture, size, interpolation=cv2.INTER_AREA)
    found = engine(small, use_det=True, use_cls=False, use_rec=False)
    if found.boxes is None:
        return []
    ratio = np.array([width_px / small.shape[1], height_px / small.shape[0]], np.float32)
    return [np.asarray(box, np.float32) * ratio for box in found.boxes]


def _width(quad: Quad) -> float:
    return float(np.linalg.norm(quad[1] - quad[0]) + np.linalg.norm(quad[2] - quad[3])) / 2


def _height(quad: Quad) -> float:
    return float(np.linalg.norm(quad[3] - quad[0]) + np.linalg.norm(quad[2] - quad[1])) / 2


def _is_vertical(quad: Quad) -> bool:
    return _height(quad) > TALL * _width(quad)


def _lies_on_side(quads: list[Quad]) -> bool:
    """Whether most of the text's length is in vertical lines."""
    vertical = sum(_height(q) for q in quads if _is_vertical(q))
    return vertical > sum(_width(q) for q in quads if not _is_vertical(q))


def _crop(picture: Picture, quad: Quad) -> Picture:
    """The line cut out and straightened; a vertical one turned so that text running down reads to the right."""
    width_px, height_px = max(1, round(_width(quad))), max(1, round(_height(quad)))
    width_px, height_px = min(width_px, MAX_ASPECT * height_px), min(height_px, MAX_ASPECT * width_px)
    target = np.array([[0, 0], [width_px, 0], [width_px, height_px], [0, height_px]], np.float32)
    matrix = cv2.getPerspectiveTransform(quad, target)
    crop = cv2.warpPerspective(picture, matrix, (width_px, height_px), borderMode=cv2.BORDER_REPLICATE, flags=cv2.INTER_CUBIC)
    return np.ascontiguousarray(np.rot90(crop)) if _is_vertical(quad) else crop


def _is_upside_down(engine: Any, crops: list[Picture]) -> bool:
    sample = sorted(crops, key=lambda c: c.shape[1] / c.shape[0], reverse=True)[:UPRIGHT_SAMPLE]
    if not sample:
        return False
    votes = [str(label) == "180" for label, score in engine.text_cls(sample).cls_res if score > 0.8]
    return 2 * sum(votes) > len(sample)


def _recognize(engine: Any, crops: list[Picture], quads: list[Quad]) -> list[dict[str, Any]]:
    from rapidocr.ch_ppocr_rec import TextRecInput

    read = engine.text_rec(TextRecInput(img=crops, return_word_box=True))
    lines = []
    for quad, text, score, positions in zip(quads, read.txts, read.scores, read.word_results, strict=True):
        if score < MIN_SCORE or not text.strip():
            continue
        columns = [column for word in positions.word_cols for column in word]
        spans = _split(text, columns, positions.line_txt_len)
        words = [[word, *_corners(quad, start, end)] for word, start, end in spans]
        lines.append({"text": text, "score": float(score), "words": words})
    return lines


def _split(text: str, columns: list[int], total: float) -> list[tuple[str, float, float]]:
    """Words of a line with their start and end as shares of its length.

    columns: of the recogniser's output, one per character that is not white space. total: columns of the whole line.
    """
    letters = [(i, c) for i, c in enumerate(text) if not c.isspace()]
    if len(letters) != len(columns) or total <= 0:
        return [(text.strip().replace(" ", ""), 0.0, 1.0)]
    steps = [b - a for a, b in pairwise(columns)]
    pitch = median(steps) if steps else total
    spans: list[tuple[str, float, float]] = []
    first = 0
    for last in range(len(letters)):
        is_end = last + 1 == len(letters) or letters[last + 1][0] > letters[last][0] + 1
        if is_end or steps[last] > max(MIN_SPACE_COLUMNS, 1.7 * pitch):
            start, end = columns[first] + 0.5 - pitch / 2, columns[last] + 0.5 + pitch / 2
            word = "".join(c for _, c in letters[first : last + 1])
            spans.append((word, max(start / total, 0.0), min(end / total, 1.0)))
            first = last + 1
    return spans


def _corners(quad: Quad, start: float, end: float) -> list[float]:
    """The upright box around the part of a line between two shares of its length: x0, top, x1, bottom."""
    first, second, third, fourth = (quad[1], quad[2], quad[3], quad[0]) if _is_vertical(quad) else quad
    top, bottom = second - first, third - fourth
    points = np.array([first + top * start, first + top * end, fourth + bottom * end, fourth + bottom * start])
    (x0, y0), (x1, y1) = points.min(axis=0), points.max(axis=0)
    return [float(x0), float(y0), float(x1), float(y1)]


def _turn_back(corners: list[float], turns: int, width_px: int, height_px: int) -> list[float]:
    """Corners in the picture turned counter-clockwise `turns` times, as corners in the picture as given."""
    x0, top, x1, bottom = corners
    if turns == 1:
        x0, top, x1, bottom = width_px - bottom, x0, width_px - top, x1
    elif turns == 2:
        x0, top, x1, bottom = width_px - x1, height_px - bottom, width_px - x0, height_px - top
    elif turns == 3:
        x0, top, x1, bottom = top, height_px - x1, bottom, height_px - x0
    return [round(v, 1) for v in (x0, top, x1, bottom)]
