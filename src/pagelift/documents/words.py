"""Characters to words by geometry: gaps along the direction of the text, relative to the height of its characters."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field

from pagelift.documents.characters import Character, Style

MAX_GAP = 0.22  # of the character height; a wider gap is a space
MAX_OVERLAP = 0.5  # of the character height; going back further is a new word (kerning and bold by double printing go less)
MAX_SHIFT = 0.5  # of the character height, across the line; more is another line
SPACED_GAP = 0.10  # median gap of letter-spaced text; normal text has 0
MAX_LETTER_GAP = 1.0  # of the character height: letters of one letter-spaced word are not further apart


@dataclass(slots=True)
class Run:
    """Characters that follow each other without a space, in a frame along the text: start, end, low, high.

    characters: with the along-axis start and end of each. after_space: a space in the text layer stands before it.
    """

    style: Style
    turn: int
    start: float
    end: float
    low: float
    high: float
    after_space: bool
    characters: list[tuple[str, float, float]] = field(default_factory=list)

    @property
    def height(self) -> float:
        return max(self.high - self.low, 0.5)

    @property
    def text(self) -> str:
        return clean_text("".join(c[0] for c in self.characters))

    def box(self) -> tuple[float, float, float, float]:
        """Left, bottom, right, top in PDF user space."""
        if self.turn == 0:
            return self.start, self.low, self.end, self.high
        if self.turn == 90:
            return -self.high, self.start, -self.low, self.end
        if self.turn == 180:
            return -self.end, -self.high, -self.start, -self.low
        return self.low, -self.end, self.high, -self.start


def clean_text(text: str) -> str:
    """Composed (NFC), Latin ligatures spelled out, without zero-width and control characters; "" if nothing is left."""
    if text.isascii():
        return text
    text = unicodedata.normalize("NFC", text)
    text = "".join(unicodedata.normalize("NFKC", c) if "\ufb00" <= c <= "\ufb06" else c for c in text)
    return "".join(c for c in text if unicodedata.category(c) not in ("Cf", "Cc"))


def group_characters(characters: Iterable[Character | None]) -> list[Run]:
    """Words in the order of the text layer. None in `characters` is a space."""
    runs = _runs(characters)
    return _join_spaced_letters(_split_repeats(runs))


def _runs(characters: Iterable[Character | None]) -> list[Run]:
    runs: list[Run] = []
    run: Run | None = None
    after_space = True
    style: Style | None = None
    turn = 0
    for character in characters:
        if character is None:
            run, after_space = None, True
            continue
        if character.style is not style:
            style = character.style
            turn = round(style.angle / 90) % 4 * 90
        start, end, low, high = _along(character, turn)
        height = max(high - low, 0.5)
        if run is not None and run.turn == turn and _continues(run, start, low + high, height):
            if _repeats(run, character.text, start, height):
                continue
            run.start, run.end = min(run.start, start), max(run.end, end)
            run.low, run.high = min(run.low, low), max(run.high, high)
        else:
            run = Run(character.style, turn, start, end, low, high, after_space)
            runs.append(run)
        run.characters.append((character.text, start, end))
        after_space = False
    return runs


def _along(character: Character, turn: int) -> tuple[float, float, float, float]:
    _, left, bottom, right, top, _ = character
    if turn == 0:
        return left, right, bottom, top
    if turn == 90:
        return bottom, top, -right, -left
    if turn == 180:
        return -right, -left, -top, -bottom
    return -top, -bottom, left, right


def _continues(run: Run, start: float, double_middle: float, height: float) -> bool:
    if abs(double_middle - run.low - run.high) >= 2 * MAX_SHIFT * height:
        return False
    return -MAX_OVERLAP * height < start - run.end < MAX_GAP * height


def _repeats(run: Run, text: str, start: float, height: float) -> bool:
    """Whether this is the character before once more at nearly the same place: bold by double printing."""
    last_text, last_start, _ = run.characters[-1]
    return text == last_text and abs(start - last_start) < 0.08 * height


def _split_repeats(runs: list[Run]) -> list[Run]:
    """Without words that are printed twice at nearly the same place (bold or shadow by double printing)."""
    seen: dict[tuple[str, int, int], Run] = {}
    kept = []
    for run in runs:
        text = "".join(c[0] for c in run.characters)
        column, row = int(run.start // 4), int(run.low // 4)
        near = (seen.get((text, column + i, row + j)) for i in (0, -1, 1) for j in (0, -1, 1))
        tolerance = 0.12 * run.height
        if any(other and abs(other.start - run.start) + abs(other.low - run.low) < tolerance and other.turn == run.turn for other in near):
            continue
        seen[text, column, row] = run
        kept.append(run)
    return kept


def _join_spaced_letters(runs: list[Run]) -> list[Run]:
    """Join letter-spaced text ("I N V O I C E"): single letters on one line in even steps, four or more."""
    joined: list[Run] = []
    index = 0
    while index < len(runs):
        stop = index + 1
        while stop < len(runs) and len(runs[stop].characters) == 1 == len(runs[stop - 1].characters) and _is_near(runs[stop - 1], runs[stop]):
            stop += 1
        if stop - index >= 4 and len(runs[index].characters) == 1:
            joined.extend(_regroup(runs[index:stop]))
        else:
            joined.extend(runs[index:stop])
        index = stop
    return joined


def _is_near(left: Run, right: Run) -> bool:
    height = min(left.height, right.height)
    same_line = left.turn == right.turn and abs(left.low + left.high - right.low - right.high) < height * 0.4
    return same_line and 0 < right.start - left.end < MAX_LETTER_GAP * height and math.isclose(left.height, right.height, rel_tol=0.2)


def _regroup(letters: list[Run]) -> list[Run]:
    gaps = sorted(b.start - a.end for a, b in zip(letters, letters[1:], strict=False))
    limit = gaps[len(gaps) // 2] * 1.5 + 0.1 * letters[0].height
    words = [letters[0]]
    for before, letter in zip(letters, letters[1:], strict=False):
        word = words[-1]
        if letter.start - before.end > limit:
            words.append(letter)
            continue
        word.end, word.low, word.high = letter.end, min(word.low, letter.low), max(word.high, letter.high)
        word.characters.extend(letter.characters)
    return words
