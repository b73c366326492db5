"""Where tokens are: M-RoPE positions in time, height and width, and the rotary tables made from them.

Text advances all three axes by one per token. A picture of t x h x w merged patches starts at the next free position p: its
patches are at (p + frame, p + row, p + column), and the text after it continues at p + max(h, w). A video's frames are separate
pictures with their time stamps as text between them, so each has t = 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pagelift.backends.tensors import Floats
from pagelift.core.errors import EngineError
from pagelift.models.config import Rope

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Grid:
    """Patches of one picture or video: frames (temporal pairs), rows and columns, before merging."""

    frames: int
    rows: int
    columns: int

    @property
    def patches(self) -> int:
        return self.frames * self.rows * self.columns

    def merged(self, merge_size: int) -> Grid:
        """The grid of tokens after merging. Raises EngineError when it does not divide."""
        if self.rows % merge_size or self.columns % merge_size or min(self.frames, self.rows, self.columns) < 1:
            raise EngineError(f"a grid of {self.rows} x {self.columns} patches cannot be merged {merge_size} x {merge_size}")
        return Grid(self.frames, self.rows // merge_size, self.columns // merge_size)


def text_positions(start: int, length: int) -> Integers:
    """Positions (3, length) of text tokens from `start` on."""
    return np.broadcast_to(np.arange(start, start + length), (3, length))


def prompt_positions(tokens: Integers, pictures: Sequence[tuple[int, Grid]], merge_size: int) -> tuple[Integers, int]:
    """Positions (3, T) of a prompt's tokens, and the position of the token after it.

    pictures: in prompt order, the placeholder token id and the unmerged grid of each run of placeholders; a video gives one
    entry per frame. Raises EngineError when the placeholders in `tokens` do not match the grids.
    """
    placeholders = np.isin(tokens, [token for token, _ in pictures])
    parts: list[Integers] = []
    row = position = 0
    for token, grid in pictures:
        merged = grid.merged(merge_size)
        ahead = np.flatnonzero(placeholders[row:])
        text = int(ahead[0]) if len(ahead) else len(tokens) - row
        if not (tokens[row + text : row + text + merged.patches] == token).all() or row + text + merged.patches > len(tokens):
            raise EngineError(f"a picture of {merged.patches} tokens does not match its placeholders at token {row + text}")
        parts.append(text_positions(position, text))
        position += text
        parts.append(position + np.indices((merged.frames, merged.rows, merged.columns)).reshape(3, -1))
        position += max(merged.rows, merged.columns)
        row += text + merged.patches
    if placeholders[row:].any():
        raise EngineError("the prompt has more picture placeholders than pictures")
    parts.append(text_positions(position, len(tokens) - row))
    return np.concatenate(parts, axis=1), position + len(tokens) - row


def frequencies(theta: float, dim: int) -> Floats:
    """Rotary frequencies theta ** (-2 i / dim) for i < dim / 2, in the float32 arithmetic that the models were trained with."""
    exponents = np.arange(0, dim, 2, dtype=np.float32) / np.float32(dim)
    inverse: Floats = np.float32(1) / np.power(np.float32(theta), exponents)
    return inverse


def text_angles(positions: Integers, rope: Rope) -> Floats:
    """Rotary angles (T, rotary_dim / 2) of positions (3, T).

    Frequency i turns with height where i % 3 == 1, with width where i % 3 == 2, as far as 3 * its section reaches, else with time.
    """
    inverse = frequencies(rope.theta, rope.rotary_dim)
    axis = np.zeros(len(inverse), np.int64)
    for dimension in (1, 2):
        axis[dimension : 3 * rope.sections[dimension] : 3] = dimension
    return positions[axis].T.astype(np.float32) * inverse


def block_order(grid: Grid, merge_size: int) -> tuple[Integers, Integers]:
    """Row and column (patches,) of each patch in the order of the vision tower: merged blocks first, then inside each block."""
    merged = grid.merged(merge_size)
    rows, columns = np.indices((grid.rows, grid.columns))
    shape = (merged.rows, merge_size, merged.columns, merge_size)
    row, column = (x.reshape(shape).swapaxes(1, 2).ravel() for x in (rows, columns))
    return np.tile(row, grid.frames), np.tile(column, grid.frames)


def vision_angles(grids: Sequence[Grid], merge_size: int, theta: float, head_dim: int) -> Floats:
    """Rotary angles (patches, head_dim / 2): the first half turns with the row, the second with the column."""
    inverse = frequencies(theta, head_dim // 2)
    orders = [np.stack(block_order(grid, merge_size), axis=1) for grid in grids]  # (patches, 2)
    angles = np.concatenate(orders).astype(np.float32)[:, :, None] * inverse
    return angles.reshape(len(angles), -1)


def interpolate_table(table: Floats, grid: Grid, merge_size: int) -> Floats:
    """A learned square position table (side * side, features) resampled to the grid: (patches, features).

    Bilinear with the corners aligned; the same for each frame.
    """
    side = round(len(table) ** 0.5)
    row, column = block_order(Grid(1, grid.rows, grid.columns), merge_size)
    (top, bottom, down), (left, right, across) = (_taps(grid.rows, side, row), _taps(grid.columns, side, column))
    upper = table[top * side + left] * (1 - across) + table[top * side + right] * across
    lower = table[bottom * side + left] * (1 - across) + table[bottom * side + right] * across
    return np.tile(upper * (1 - down) + lower * down, (grid.frames, 1))


def _taps(size: int, side: int, index: Integers) -> tuple[Integers, Integers, Floats]:
    """Both neighbours in the table of `index` on an axis of `size`, and the weight (n, 1) of the second."""
    place = index.astype(np.float32) * np.float32(side - 1) / np.float32(max(size - 1, 1))
    first = np.floor(place).astype(np.int64)
    return first, np.minimum(first + 1, side - 1), (place - first.astype(np.float32))[:, None]
