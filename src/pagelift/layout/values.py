"""From a printed text to the JSON value that a query asks for, by the document's locale."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pagelift.core import Json
from pagelift.evidence import CURRENCY_CODES, CURRENCY_SYMBOLS, Decimalmark, Order, find_dates, infer_mark, infer_order, parse_number
from pagelift.layout.lines import PageLayout
from pagelift.layout.query import Query

TIME = re.compile(r"(?<![\d.,:])([01]?\d|2[0-3])[:h.]([0-5]\d)(?::([0-5]\d))?\s?([AaPp]\.?[Mm]\.?)?(?![\d.,:]\d|\d)")
_YES = frozenset("yes y true ja oui sí si sì x ✓ ✔ ☑ ☒ [x] (x) checked wahr vrai 1 on".split())
_NO = frozenset("no n false nein non nee ☐ [] () unchecked falsch faux 0 off".split())
EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
URL = re.compile(
    r"(?:https?://|www\.)[^\s,;]+|\b[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|de|fr|nl|it|es|eu|co\.uk|io|info|ch|at|be|us|ca|my|in)\b(?:/\S*)?",
    re.I,
)
PHONE = re.compile(r"\+?\(?\d[\d\s()./–-]{5,20}\d")
IBAN = re.compile(r"(?:\b|(?<=IBAN))[A-Z]{2}\d{2}(?:\s?[A-Z0-9]{2,4}){3,8}\b")


@dataclass(frozen=True, slots=True)
class Locale:
    """How a document writes numbers and dates. currency: ISO 4217 code of most amounts, None when none is printed."""

    mark: Decimalmark | None = None
    order: Order = "dmy"
    currency: str | None = None


def infer_locale(pages: Sequence[PageLayout], queries: Sequence[Query] = ()) -> Locale:
    """Decimal mark, date order and currency from everything that is printed, and from what the schema states."""
    texts = [t.text for p in pages for line in p.lines for t in line.tokens]
    stated = " ".join(q.description for q in queries if q.order)
    order = next((q.order for q in queries if q.order), None) or infer_order([line.text for p in pages for line in p.lines], stated)
    counts: Counter[str] = Counter()
    for text in texts:
        code = text.strip(".,:;()").upper()
        if code in CURRENCY_CODES or code == "EURO":
            counts["EUR" if code == "EURO" else code] += 1
        for symbol, currency in CURRENCY_SYMBOLS.items():
            if (
                symbol in text
                and (not symbol.isalpha() or re.match(rf"{symbol}\s?\d", text))
                and not (symbol == "$" and re.search(r"[A-Z]\$", text))
            ):
                counts[currency] += 1
                break
    return Locale(infer_mark(texts), order, counts.most_common(1)[0][0] if counts else None)


def read_value(query: Query, text: str, locale: Locale) -> Json | None:
    """The value of `text` in the query's type, None when the text cannot be read as that type."""
    text = re.sub(r"\s+", " ", text).strip()
    if not text:
        return None
    kind = query.kind
    if kind in ("number", "percent"):
        return _number(query, text, locale)
    if kind in ("date", "datetime"):
        return _date(query, text, locale)
    if kind == "time" and query.node.format == "time":
        found = TIME.search(text)
        return _clock(found) if found else None
    if kind == "boolean":
        return read_boolean(text)
    if kind == "enum":
        return match_enum(query, text)
    if kind == "currency":
        return read_currency(text)
    if kind == "email":
        found = EMAIL.search(text)
        return found[0].rstrip(".") if found else None
    if kind == "phone" and not PHONE.search(text):
        return None
    if kind == "iban":
        found = IBAN.search(text.upper())
        return re.sub(r"\s", "", found[0]) if found else None
    return re.sub(r"\s", "", text) if query.compact else text


def _number(query: Query, text: str, locale: Locale) -> Json | None:
    number = parse_number(text, locale.mark)
    if number is None:
        found = re.fullmatch(r"(\S+)\s?(?:[A-Za-zµ°²³/%.]{1,8}\.?)", text)  # a unit behind: "12 kg", "100,0000Stk."
        number = parse_number(found[1], locale.mark) if found else None
    if number is None:
        return None
    if query.node.types == ("integer",):
        return int(number.value) if number.value == number.value.to_integral_value() else None
    return number.as_json()


def _date(query: Query, text: str, locale: Locale) -> str | None:
    order = query.order or locale.order
    span = next(find_dates(text, order), None)
    if span is None:
        return None
    if query.kind == "date":
        return span.iso()
    clock = TIME.search(text, span.end) or TIME.search(text[: span.start])
    time = _clock(clock) if clock else "00:00:00"
    return f"{span.iso()}T{time}Z" if query.node.format == "date-time" else f"{span.iso()}T{time}"


def _clock(match: re.Match[str]) -> str:
    hour = int(match[1])
    if match[4]:
        hour = hour % 12 + (12 if match[4].lower().startswith("p") else 0)
    return f"{hour:02}:{match[2]}:{match[3] or '00'}"


def iban_checks(text: str) -> bool:
    """Whether the check digits of an IBAN are right (ISO 13616: the rearranged number is 1 modulo 97)."""
    compact = re.sub(r"\s", "", text.upper())
    if not re.fullmatch(r"[A-Z]{2}\d{2}[A-Z0-9]{11,30}", compact):
        return False
    return int("".join(str(int(c, 36)) for c in compact[4:] + compact[:4])) % 97 == 1


def read_boolean(text: str) -> bool | None:
    low = text.lower().strip(" .:;,")
    return True if low in _YES else False if low in _NO else None


def read_currency(text: str) -> str | None:
    """The ISO 4217 code that a text names by code or symbol."""
    for word in re.findall(r"[A-Z]{3}", text.upper()):
        if word in CURRENCY_CODES:
            return str(word)
    return next((code for symbol, code in CURRENCY_SYMBOLS.items() if symbol in text), None)


@functools.lru_cache(50_000)
def plain(text: str) -> str:
    """Letters and digits only, without accents and case: the form in which enum values and names are compared."""
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    return "".join(c for c in decomposed if c.isalnum())


def match_enum(query: Query, text: str) -> Json | None:
    """The enum value that a text is, apart from case, spaces and punctuation."""
    wanted = plain(text)
    for value in query.node.enum or ():
        if wanted and plain(str(value)) == wanted:
            return value
    return None
