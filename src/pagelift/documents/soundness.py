"""Whether the text layer of a page can be believed, judged by its characters and by what is drawn on the page."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["sound", "blank", "empty", "garbage", "partial", "sparse"]
"""sound: use it. blank: no text, and nothing drawn that could be text. empty: no text, but pictures or outlines.
garbage: not what the page shows. partial: some words are unreadable. sparse: a few words over a picture of the page."""

MAX_BAD = 0.15  # share of unreadable characters; above, the fonts have no usable mapping to Unicode
PARTIAL_BAD = 0.02
MAX_SYMBOLS = 0.3  # see _symbol_share
MIN_LETTERS = 150  # fewer say nothing about the language
MIN_LIKENESS = 0.040  # see letter_likeness; text in Latin letters has 0.055 to 0.07, a substitution cipher 0.02 to 0.04
SPARSE_WORDS = 40
FULL_PICTURE = 0.5  # of the page
OUTLINES = 30  # drawn paths; letters turned into outlines give hundreds

# Letter frequencies in running text, mean of English, German, French, Spanish and Italian in per cent, rounded
FREQUENCIES = dict(
    zip(
        "abcdefghijklmnopqrstuvwxyz",
        (9.2, 1.5, 3.6, 4.2, 14.3, 1.4, 1.7, 2.8, 7.5, 0.3, 0.4, 4.6, 2.8, 7.4, 7.0, 2.5, 0.7, 6.6, 6.5, 6.9, 4.1, 1.5, 0.8, 0.2, 0.8, 0.8),
        strict=True,
    )
)


@dataclass(frozen=True, slots=True)
class Drawn:
    """What is on the page besides its text: picture_share of the page's area, number of paths."""

    picture_share: float
    paths: int


def judge(words: Sequence[str], drawn: Drawn) -> Verdict:
    """The verdict on the words of a text layer that can be seen, or that lie invisible over a scan."""
    characters = sum(map(len, words))
    if not characters:
        return "empty" if drawn.picture_share > 0.01 or drawn.paths > OUTLINES else "blank"
    bad = sum(map(unreadable, words))
    if bad > MAX_BAD * characters or _symbol_share(words) > MAX_SYMBOLS or letter_likeness(words) < MIN_LIKENESS:
        return "garbage"
    if drawn.picture_share >= FULL_PICTURE and len(words) < SPARSE_WORDS:
        return "sparse"
    return "partial" if bad > PARTIAL_BAD * characters else "sound"


def unreadable(word: str) -> int:
    """Number of private-use, replacement, control and unassigned characters; an icon or bullet alone does not count."""
    if word.isascii():
        return word.count("(cid:") * 5
    bad = sum(c == "\ufffd" or unicodedata.category(c) in ("Co", "Cn", "Cc") for c in word)
    return bad if len(word) > 1 or word == "\ufffd" else 0


def _symbol_share(words: Sequence[str]) -> float:
    """Share of signs such as ¤ and ¬ among the different characters of the words.

    A check box is a word of one character, and a ruled line one of equal characters.
    """
    symbols = characters = 0
    for word in words:
        characters += len(set(word))
        if len(word) > 1 and not word.isascii():
            symbols += sum(unicodedata.category(c)[0] == "S" for c in set(word))
    return symbols / max(characters, 1)


def letter_likeness(words: Sequence[str]) -> float:
    """Mean frequency in running text of the words' Latin letters; 1.0 where there are too few to tell, or other scripts."""
    letters = total = 0
    weight = 0.0
    for word in words:
        for character in word.lower():
            total += not character.isdigit()
            frequency = FREQUENCIES.get(character)
            if frequency is not None:
                letters += 1
                weight += frequency
    if letters < MIN_LETTERS or letters < total / 3:
        return 1.0
    return weight / letters / 100
