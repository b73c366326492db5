"""Counts with a price per unit that lists of items print beside, above or below the amount: "6 x 4,45", "2 Stk x 1.99"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pagelift.layout.lines import PageLayout, Token
from pagelift.layout.table_rows import is_total

_COUNTED_PRICE = re.compile(
    r"(\d{1,4}(?:[.,]\d{1,3})?)\s?(?:(?:pcs?|st(?:k|ck|ück)?|kg|ea|u|uds?|pz)\.?\s?)?[x×*@]\s?[$€£]?\s?(\d[\d.,'’]*)(?:\s?(?:[$€£]|[A-Z]{3}))?",
    re.I,
)
_LONGEST = 6  # words of a count with its price


def counted_price(text: str) -> tuple[str, str] | None:
    """Count and price per unit as printed; None for any other text."""
    match = _COUNTED_PRICE.fullmatch(text.strip())
    return (match[1], match[2].rstrip(".,'’")) if match else None


def split_count(tokens: Sequence[Token]) -> tuple[list[Token], list[Token]]:
    """The words of an item, and the count with its price behind them; the second is empty when there is none."""
    for size in range(min(_LONGEST, len(tokens)), 0, -1):
        if counted_price(" ".join(t.text for t in tokens[-size:])):
            return list(tokens[:-size]), list(tokens[-size:])
    return list(tokens), []


def name_above(page: PageLayout, index: int) -> list[Token]:
    """The words of the line directly above one that states count, price and amount, if that line has no numbers at its end."""
    if index == 0 or page.lines[index].box.top - page.lines[index - 1].box.bottom > page.unit:
        return []
    line = page.lines[index - 1]
    tokens = line.tokens
    worded = any(re.search(r"[^\W\d_]{2}", t.text) for t in tokens) and not is_total(line.segments)
    return tokens if worded and not re.search(r"\d[.,]\d\d\D{0,3}$", tokens[-1].text) else []


def count_below(page: PageLayout, index: int) -> list[Token]:
    """The words of the line directly below, when it is a count with a price and nothing else."""
    if index + 1 == len(page.lines) or page.lines[index + 1].box.top - page.lines[index].box.bottom > page.unit:
        return []
    words, count = split_count(page.lines[index + 1].tokens)
    return [] if words else count
