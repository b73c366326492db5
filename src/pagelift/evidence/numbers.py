"""Numbers as printed, read by locale.

A separator is decimal or grouping by what the number itself shows ("1.234,56", "27,80"); where it does not
("1.234"), the document's own convention decides, inferred from all its unambiguous numbers.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

Decimalmark = Literal[".", ","]

_SPACES = "\u00a0\u202f\u2009\u2007 "
_CURRENCY = r"(?:[$€£¥₹₽₩₺₪₫₱฿]|US\$|C\$|A\$|HK\$|S\$|R\$|RM|Rs\.?|Fr\.|kr\.?|zł|Kč|[A-Z]{3})"
_DIGITS = rf"\d+(?:[.,'’{_SPACES}]\d+)*|[.,]\d+"
_NUMBER = re.compile(
    rf"^(?:(?P<cur0>{_CURRENCY})(?=\s*\())?\s*(?P<lead>[(\[<]?)\s*(?P<sign>[-+−–]?)\s*(?P<cur1>{_CURRENCY})?\s*(?P<sign2>[-+−–]?)\s*(?P<digits>{_DIGITS})"
    rf"(?P<dash>[.,](?:-+|—|–))?\s*(?P<close>[)\]>]?)(?P<trail>\s?[-−]|\s?CR|\s?DR)?\s*(?P<cur2>{_CURRENCY})?\s*(?P<pct>[%‰])?(?P<rest>\s*[A-Z*#]{{0,3}}|[*]+)$"
)
MAX_DIGITS = 28
"""A longer run of digits is no amount."""
CURRENCY_CODES = frozenset(
    """AED ARS AUD BDT BGN BHD BRL CAD CHF CLP CNY COP CZK DKK EGP EUR GBP HKD HRK HUF IDR ILS INR ISK JPY KES KRW KWD KZT LKR
    MAD MXN MYR NGN NOK NZD OMR PEN PHP PKR PLN QAR RON RSD RUB SAR SEK SGD THB TND TRY TWD UAH USD UYU VND ZAR""".split()
)
CURRENCY_SYMBOLS = {
    "€": "EUR",
    "$": "USD",
    "US$": "USD",
    "£": "GBP",
    "¥": "JPY",
    "₹": "INR",
    "Rs": "INR",
    "Rs.": "INR",
    "₽": "RUB",
    "₩": "KRW",
    "₺": "TRY",
    "₪": "ILS",
    "₫": "VND",
    "₱": "PHP",
    "฿": "THB",
    "RM": "MYR",
    "C$": "CAD",
    "A$": "AUD",
    "HK$": "HKD",
    "S$": "SGD",
    "R$": "BRL",
    "Fr.": "CHF",
    "kr": "SEK",
    "kr.": "SEK",
    "zł": "PLN",
    "Kč": "CZK",
    "EURO": "EUR",
}


@dataclass(frozen=True, slots=True)
class Number:
    """value: exact. decimals: printed digits after the decimal mark. ambiguous: one separator before three digits,
    decided by the document's convention. currency: ISO 4217 code or None."""

    value: Decimal
    decimals: int = 0
    percent: bool = False
    currency: str | None = None
    ambiguous: bool = False

    def as_json(self, integer: bool = False) -> int | float:
        """The JSON number: int when the value is whole and was printed so or `integer` asks for it."""
        if self.value == self.value.to_integral_value() and (integer or self.decimals == 0):
            return int(self.value)
        return float(self.value)


def parse_number(text: str, mark: Decimalmark | None = None) -> Number | None:
    """Read one printed number with optional sign, parentheses, currency and percent sign; None if `text` is anything else.

    mark: the document's decimal mark, used only where the number itself leaves it open.
    """
    text = unicodedata.normalize("NFKC", drop_footnote_marks(text)).strip()
    match = _NUMBER.match(text)
    if not match:
        return None
    currency = _currency(match["cur0"]) or _currency(match["cur1"]) or _currency(match["cur2"])
    if match["sign"] and match["sign2"]:
        return None
    if (match["cur0"] or match["cur1"] or match["cur2"]) and currency is None:
        return None
    whole = match["dash"]  # "1.000,-": the mark before the dash is the decimal one
    digits, decimals, ambiguous = _plain_digits(match["digits"], mark if not whole else "," if whole[0] == "," else ".")
    if whole and decimals:
        return None
    ambiguous = ambiguous and not whole
    if digits is None or len(digits) > MAX_DIGITS:
        return None
    value = Decimal(digits)
    negative = "-" in _dashes(match["sign"] + match["sign2"] + (match["trail"] or "")) or (match["lead"] == "(" and match["close"] == ")")
    negative = negative or (match["lead"] == "<" and match["close"] == ">")
    return Number(-value if negative else value, decimals, bool(match["pct"]), currency, ambiguous)


def drop_footnote_marks(text: str) -> str:
    """The text without superscript digits behind a digit, which are references to notes."""
    return re.sub(r"(?<=\d)[⁰¹²³⁴-⁹]+", "", text)


def infer_mark(texts: Iterable[str]) -> Decimalmark | None:
    """The decimal mark that most unambiguous numbers among `texts` use; None when there are none or they balance."""
    votes = {".": 0, ",": 0}
    for text in texts:
        body = re.sub(r"[^\d.,]", "", text).strip(".,")
        if not re.search(r"\d[.,]\d", body) or len(re.findall(r"\d+", body)) > 4:
            continue
        last = body[max(body.rfind("."), body.rfind(","))]
        tail = len(body) - body.rfind(last) - 1
        other = "," if last == "." else "."
        if other in body and body.count(last) == 1:
            votes[last] += 2
        elif body.count(last) == 1 and tail in (1, 2):
            votes[last] += 1
        elif body.count(last) > 1 and tail == 3 and other not in body:
            votes[other] += 1
    if votes["."] == votes[","]:
        return None
    return "." if votes["."] > votes[","] else ","


def _currency(mark: str | None) -> str | None:
    if mark is None:
        return None
    return CURRENCY_SYMBOLS.get(mark) or (mark if mark in CURRENCY_CODES else None)


def _dashes(text: str) -> str:
    return text.replace("−", "-").replace("–", "-").replace(" ", "")


def _plain_digits(printed: str, mark: Decimalmark | None) -> tuple[str | None, int, bool]:
    """Digits with "." as decimal mark, number of decimals, whether the mark was decided by convention."""
    body = re.sub(rf"[{_SPACES}'’]", "|", printed)
    groups = body.split("|")
    if len(groups) > 1 and not (
        1 <= len(groups[0]) <= 3 and all(len(g) == 3 for g in groups[1:-1]) and re.fullmatch(r"\d{3}(?:[.,]\d+)?", groups[-1])
    ):
        return None, 0, False
    body = body.replace("|", "")
    separators = [c for c in body if c in ".,"]
    if not separators:
        return body, 0, False
    last = separators[-1]
    head, tail = body[: body.rfind(last)], body[body.rfind(last) + 1 :]
    kinds = set(separators)
    if len(kinds) == 2:
        if separators.count(last) > 1:
            return None, 0, False
        return re.sub("[.,]", "", head) + "." + tail, len(tail), False
    if len(separators) > 1:  # 1.234.567, or 1.234.56 where recognition took one mark for the other
        if len(tail) == 3:
            return re.sub("[.,]", "", body), 0, False
        grouped = len(tail) == 2 and re.fullmatch(r"\d{1,3}(?:[.,]\d{3})+", head)
        return (re.sub("[.,]", "", head) + "." + tail, 2, False) if grouped else (None, 0, False)
    ambiguous = len(tail) == 3 and 1 <= len(head) <= 3 and head.lstrip("0") != "" and len(groups) == 1
    if ambiguous and (mark is None or last != mark):
        return head + tail, 0, True
    return (head or "0") + "." + tail, len(tail), ambiguous
