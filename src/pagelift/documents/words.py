"""Characters to words by geometry: gaps along the direction of the text, relative to the height of its characters."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from pagelift.documents.characters import Character, Style
from pagelift.documents.frame import Rectangle

MAX_GAP = 0.22  # of the character height; a wider gap is a space
MAX_GUESSED_GAP = 0.09  # the same where PDFium guesses a space, as it does in letter-spaced text too
MAX_OVERLAP = 0.5  # of the character height; going back further is a new word (kerning goes less)
MAX_SHIFT = 0.5  # of the character height, across the line; more is another line
MAX_REPEAT_SHIFT = 0.08  # of the character height, between two prints of one character
SKEWED = 8.0  # degrees off the axes
RIGHT_TO_LEFT = "\u0590"  # no character below runs to the left
MAX_LETTER_GAP = 1.0  # of the character height: letters of one letter-spaced word are not further apart
MAX_DIGIT_GAP = 0.5  # the same for digits, which also stand alone in narrow columns
MIN_SPACED_LETTERS = 4


@dataclass(slots=True, eq=False)
class Run:
    """Characters that follow each other without a space, in a frame along the text: start, end, low, high.

    turn: direction of the text in PDF user space, counter-clockwise, to the nearest 90 degrees.
    text_before, start_before: the last character.
    """

    style: Style
    turn: int
    start: float
    end: float
    low: float
    high: float
    characters: list[str]
    text_before: str = ""
    start_before: float = 0.0

    @property
    def height(self) -> float:
        return max(self.high - self.low, 0.5)

    @property
    def text(self) -> str:
        return clean_text("".join(self.characters))

    def box(self) -> Rectangle:
        """The rectangle in PDF user space."""
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
    text = "".join(unicodedata.normalize("NFKC", c) if "\ufb00" <= c <= "\ufb06" else c for c in text)
    return "".join(c for c in unicodedata.normalize("NFC", text) if unicodedata.category(c) not in ("Cf", "Cc"))


def group_characters(characters: Iterable[Character | str | None]) -> list[Run]:
    """Words in the order of the text layer. In `characters` None is a space, a string a guessed one."""
    return _join_spaced_letters(_without_repeats(_runs(characters)))


def _runs(characters: Iterable[Character | str | None]) -> list[Run]:
    runs: list[Run] = []
    run: Run | None = None
    style: Style | None = None
    turn = 0
    max_gap = MAX_GAP
    for character in characters:
        if character is None:
            run = None
            continue
        if isinstance(character, str):
            max_gap = MAX_GUESSED_GAP
            continue
        text, start, low, end, high, character_style = character
        if character_style is not style:
            style = character_style
            turn = round(style.angle / 90) % 4 * 90
        if turn:
            start, low, end, high = _along(start, low, end, high, turn)
        if run is not None and run.turn == turn and _continues(run, character, (start, low, end, high), max_gap):
            if text == run.text_before and _is_second_print(run, start, end, high - low):
                continue
            run.start, run.end = min(run.start, start), max(run.end, end)
            run.low, run.high = min(run.low, low), max(run.high, high)
            run.characters.append(text)
        else:
            run = Run(character_style, turn, start, end, low, high, [text])
            runs.append(run)
        run.text_before, run.start_before = text, start
        max_gap = MAX_GAP
    return runs


def _is_second_print(run: Run, start: float, end: float, height: float) -> bool:
    """Whether a character repeats the one before it at nearly the same place: bold by double printing.

    In the very same box it is a part of a ligature ("tt").
    """
    shift = abs(start - run.start_before)
    return shift < MAX_REPEAT_SHIFT * height and not (shift == 0 and end == run.end)


def _along(left: float, bottom: float, right: float, top: float, turn: int) -> Rectangle:
    """The box turned so that its text runs to the right: start, low, end, high."""
    if turn == 90:
        return bottom, -right, top, -left
    if turn == 180:
        return -right, -top, -left, -bottom
    return -top, left, -bottom, right


def _continues(run: Run, character: Character, box: Rectangle, max_gap: float) -> bool:
    start, low, end, high = box
    height = max(high - low, 0.5)
    text, style = character[0], character[5]
    if abs(low + high - run.low - run.high) < 2 * MAX_SHIFT * height:
        if -MAX_OVERLAP * height < start - run.end < max_gap * height or (start == run.start_before and end == run.end):
            return True
        if text >= RIGHT_TO_LEFT and -MAX_OVERLAP * height < run.start - end < max_gap * height:
            return unicodedata.bidirectional(text) in ("R", "AL", "NSM")
    return style is run.style and abs(style.angle - round(style.angle / 90) * 90) > SKEWED


def _without_repeats(runs: list[Run]) -> list[Run]:
    """Without words that are printed twice at nearly the same place (bold or shadow by double printing)."""
    seen: dict[str, list[Run]] = {}
    kept = []
    for run in runs:
        twins = seen.setdefault("".join(run.characters), [])
        tolerance = 0.12 * run.height
        if any(abs(twin.start - run.start) + abs(twin.low - run.low) < tolerance and twin.turn == run.turn for twin in twins[-20:]):
            continue
        twins.append(run)
        kept.append(run)
    return kept


def _join_spaced_letters(runs: list[Run]) -> list[Run]:
    """Join letter-spaced text ("I N V O I C E"): single characters on one line in even steps."""
    joined: list[Run] = []
    index = 0
    while index < len(runs):
        stop = index + 1
        if len(runs[index].characters) == 1:
            while stop < len(runs) and len(runs[stop].characters) == 1 and _is_next_letter(runs[stop - 1], runs[stop]):
                stop += 1
        if stop - index >= MIN_SPACED_LETTERS:
            joined.extend(_regroup(runs[index:stop]))
        else:
            joined.extend(runs[index:stop])
        index = stop
    return joined


def _is_next_letter(left: Run, right: Run) -> bool:
    height = min(left.height, right.height)
    if left.turn != right.turn or abs(left.low + left.high - right.low - right.high) > 0.4 * height:
        return False
    letters = left.text_before.isalpha() and right.text_before.isalpha()
    return 0 < right.start - left.end < (MAX_LETTER_GAP if letters else MAX_DIGIT_GAP) * height


def _regroup(letters: list[Run]) -> list[Run]:
    gaps = sorted(b.start - a.end for a, b in pairwise(letters))
    limit = gaps[len(gaps) // 2] * 1.5 + 0.1 * letters[0].height
    words = [letters[0]]
    before = letters[0]
    for letter in letters[1:]:
        word = words[-1]
        if letter.start - before.end > limit:
            words.append(letter)
        else:
            word.end, word.low, word.high = letter.end, min(word.low, letter.low), max(word.high, letter.high)
            word.characters.extend(letter.characters)
        before = letter
    return words
