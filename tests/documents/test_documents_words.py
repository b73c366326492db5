"""Grouping of characters into words, and the verdict on a text layer, without any PDF file."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from pagelift.documents.characters import BREAK, GUESS, Character, Style
from pagelift.documents.soundness import Drawn, judge, letter_likeness, unreadable
from pagelift.documents.words import Run, clean_text, group_characters

PLAIN = Style(0.0, 10.0, False, False, (0, 0, 0, 255), 1)
LETTER = (
    "We thank you for your order and ask you to pay the amount due within thirty days of the date of this invoice "
    "stating the invoice number as the reference of your transfer so that we can assign the payment to your account"
)
PROSE = LETTER.split()
NO_PICTURE = Drawn(0.0, 0)


def line(text: str, x: float = 0.0, y: float = 0.0, gap: float = 0.0, style: Style = PLAIN) -> list[Character | None]:
    """Characters 5 wide and 10 high; a space is a gap of 5 without a character, as PDFium leaves it after our reading."""
    characters: list[Character | None] = []
    for character in text:
        if character != " ":
            characters.append((character, x, y, x + 5, y + 10, style))
        x += 5 + gap
    return characters


def texts(runs: list[Run]) -> list[str]:
    return [r.text for r in runs]


printable = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=8)


@given(st.lists(printable, min_size=1, max_size=12))
@settings(max_examples=50, deadline=None)
def test_words_apart_by_a_space_come_back_in_order_with_disjoint_boxes(words: list[str]) -> None:
    spaced = [w if len(w) > 1 else w + w + "x" for w in words]  # single letters in a row are one letter-spaced word
    words = ["".join(c for i, c in enumerate(w) if i == 0 or w[i - 1] != c) + "-x" for w in spaced]
    runs = group_characters(line(" ".join(words)))
    assert texts(runs) == words
    boxes = [r.box() for r in runs]
    assert all(left[2] < right[0] for left, right in pairwise(boxes))
    assert boxes[0][0] == 0
    assert boxes[-1][2] == 5 * len(" ".join(words))


@given(st.sampled_from([0, 90, 180, 270]), st.floats(-1000, 1000), st.floats(-1000, 1000))
@settings(max_examples=50, deadline=None)
def test_direction_does_not_change_the_words(turn: int, x: float, y: float) -> None:
    def turned(c: Character | None) -> Character | None:
        if c is None:
            return None
        text, left, bottom, right, top, _ = c
        corners = {
            0: (left, bottom, right, top),
            90: (-top, left, -bottom, right),
            180: (-right, -top, -left, -bottom),
            270: (bottom, -right, top, -left),
        }
        a, b, d, e = corners[turn]
        return text, a + x, b + y, d + x, e + y, Style(float(turn), 10.0, False, False, (0, 0, 0, 255), 1)

    runs = group_characters([turned(c) for c in line("Total due 12")])
    assert texts(runs) == ["Total", "due", "12"]
    assert all(round((b[2] - b[0]) * (b[3] - b[1])) == 50 * len(r.text) for r in runs for b in [r.box()])


def test_a_stated_space_splits_even_without_a_gap() -> None:
    assert texts(group_characters([*line("ab"), BREAK, *line("cd", x=10)])) == ["ab", "cd"]


def test_lines_and_columns_are_apart() -> None:
    assert texts(group_characters(line("left") + line("right", x=200) + line("below", y=-12))) == ["left", "right", "below"]


def test_letter_spaced_words_keep_their_own_spaces() -> None:
    assert texts(group_characters(line("TOTAL", gap=4) + line("INVOICE", x=50, gap=4))) == ["TOTAL", "INVOICE"]


def test_right_to_left_text_is_one_word() -> None:
    letters = [(c, 50.0 - 5 * i, 0.0, 55.0 - 5 * i, 10.0, PLAIN) for i, c in enumerate("שלום")]
    (run,) = group_characters(letters)
    assert (run.text, run.box()) == ("שלום", (35.0, 0.0, 55.0, 10.0))


def test_clean_text() -> None:
    assert clean_text("e\u0301") == "é"
    assert clean_text("\ufb01n\u200b") == "fin"
    assert clean_text("\u200b\x07é") == "é"
    assert clean_text("½²") == "½²"  # compatibility characters that mean something are kept


def test_substituted_letters_are_garbage() -> None:
    """Subset fonts without a mapping give every letter a constant offset, three in the alphabet most often."""
    shifted = []
    for shift in range(1, 26):
        cipher = str.maketrans({chr(97 + i): chr(97 + (i + shift) % 26) for i in range(26)})
        shifted.append([w.lower().translate(cipher) for w in PROSE])
    assert all(letter_likeness(words) < letter_likeness(PROSE) - 0.01 for words in shifted)
    assert judge(PROSE, NO_PICTURE) == "sound"
    assert judge(shifted[2], NO_PICTURE) == "garbage"
    assert [judge(words, NO_PICTURE) for words in shifted].count("garbage") >= 12


def test_verdicts() -> None:
    assert judge([], NO_PICTURE) == "blank"
    assert judge([], Drawn(0.3, 0)) == "empty"
    assert judge([], Drawn(0.0, 500)) == "empty"  # letters as outlines
    assert judge(["Page", "1"], Drawn(0.9, 0)) == "sparse"
    assert judge(PROSE * 3, Drawn(0.9, 0)) == "sound"
    assert judge(["\ue001\ue002\ue003"] * 20, NO_PICTURE) == "garbage"
    assert judge([*PROSE, "\ue001\ue002\ue003\ue004\ue005"], NO_PICTURE) == "partial"
    assert judge([*PROSE, *["\uf0b7"] * 30], NO_PICTURE) == "sound"  # bullets of a symbol font
    assert judge(["¤¬¦", "þ¬¶", "¬¬"] * 20, Drawn(1.0, 0)) == "garbage"
    assert judge([*PROSE, *["☐", "☒", "──────"] * 30], NO_PICTURE) == "sound"
    assert judge(["発注番号", "株式会社"] * 40, NO_PICTURE) == "sound"
    assert judge([*PROSE, *["WFLD-TV", "KXYZ", "0731", "MTWTFSS"] * 5], NO_PICTURE) == "sound"


def test_unreadable() -> None:
    assert [unreadable(w) for w in ("plain", "Größe", "a\ufffdb", "(cid:12)", "\uf0b7", "\ufffd")] == [0, 0, 1, 5, 0, 1]


def test_a_guessed_space_counts_where_the_gap_agrees() -> None:
    first, second = line("ab"), line("cd", x=11.5)  # 1.5 apart: less than an unguessed space, more than kerning
    assert texts(group_characters([*first, GUESS, *second])) == ["ab", "cd"]
    assert texts(group_characters([*first, *second])) == ["abcd"]
    assert texts(group_characters([*first, GUESS, *line("cd", x=10.4)])) == ["abcd"]


def test_parts_of_a_ligature_share_one_box_and_stay_together() -> None:
    other = Style(0.0, 10.0, False, False, (0, 0, 0, 255), 2)
    ligature: list[Character | None] = [("t", 5.0, 0.0, 12.0, 10.0, PLAIN), ("t", 5.0, 0.0, 12.0, 10.0, other)]
    assert texts(group_characters([*line("a"), *ligature, *line("er", x=12.0)])) == ["atter"]
