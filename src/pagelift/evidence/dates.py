"""Dates as printed, read by locale: the order of day and month is decided once per document."""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Order = Literal["dmy", "mdy"]

_MONTH_NAMES = {
    1: "january jan januar jänner janvier janv januari enero ene gennaio gen janeiro styczeń leden",
    2: "february feb februar février fevrier févr fevr fév februari febrero febbraio fevereiro fev luty únor",
    3: "march mar märz maerz mrz mär mars maart mrt marzo março marco marzec březen",
    4: "april apr avril avr abril abr aprile kwiecień duben",
    5: "may mai mei mayo maggio mag maio maj květen",
    6: "june jun juni juin junio giugno giu junho czerwiec červen",
    7: "july jul juli juillet juil julio luglio lug julho lipiec červenec",
    8: "august aug août aout augustus agosto ago sierpień srpen",
    9: "september sep sept septembre septiembre settembre set setembro wrzesień září",
    10: "october oct oktober okt octobre octubre ottobre ott outubro out październik říjen",
    11: "november nov novembre noviembre novembro listopad",
    12: "december dec dezember dez décembre decembre déc diciembre dic dicembre dezembro prosinec",
}
MONTHS = {name: number for number, names in _MONTH_NAMES.items() for name in names.split()}
_WORD = r"[A-Za-zÀ-ž]{3,10}"
_SEP = r"\s?[-./]\s?"
_DATE = re.compile(
    rf"""(?:(?<![\w,/-])|(?<=[./]\d\d-)|(?<=[./]\d{{4}}-))(?<!\d\.)(?:
    (?P<y1>(?:19|20)\d\d)[-./年]\s?(?P<m1>\d{{1,2}})[-./月]\s?(?P<d1>\d{{1,2}})日?(?:[T](?=\d))?
    |(?P<a>\d{{1,2}}){_SEP}(?P<b>\d{{1,2}}){_SEP}(?P<y2>(?:19|20)\d\d|['’]?\d\d)
    |(?P<d3>\d{{1,2}})(?:\.|st|nd|rd|th|er|º|°)?[\s\-/.]?\s?(?:(?:de|of|d')\s)?(?P<n3>{_WORD})[.,]?[\s\-/.,]*(?:de\s)?(?P<y3>(?:19|20)\d\d|['’]?\d\d)
    |(?P<n4>{_WORD})\.?\s?(?P<d4>\d{{1,2}})(?:st|nd|rd|th)?\s?,?\s?[-/]?\s?(?P<y4>(?:19|20)\d\d)
    |(?P<y5>(?:19|20)\d\d)[\s\-/.](?P<n5>{_WORD})[\s\-/.](?P<d5>\d{{1,2}})
    |(?P<y6>(?:19|20)\d\d)(?P<m6>0[1-9]|1[0-2])(?P<d6>0[1-9]|[12]\d|3[01])
    )(?!\d(?!\d?:\d\d))(?!/\d)(?!-\d+(?![\d./]))""",
    re.X,
)


@dataclass(frozen=True, slots=True)
class DateSpan:
    """A date in a text: [start, end) in characters. ambiguous: day and month could be swapped."""

    start: int
    end: int
    date: datetime.date
    ambiguous: bool = False

    def iso(self) -> str:
        return self.date.isoformat()


def find_dates(text: str, order: Order = "dmy") -> Iterator[DateSpan]:
    """All dates in `text`, left to right. order: how purely numeric dates are read when both readings exist."""
    composed, starts = _composed(text)
    for match in _DATE.finditer(composed):
        found = _read(match, order)
        if found is not None:
            yield DateSpan(starts[match.start()], starts[match.end()], *found)


def _composed(text: str) -> tuple[str, Sequence[int]]:
    """The text with accents composed (NFC), and where each of its characters starts in `text`, with the end behind them."""
    composed = unicodedata.normalize("NFC", text)
    if len(composed) == len(text):
        return composed, range(len(text) + 1)
    clusters = [(m[0], m.start()) for m in re.finditer(r"[^\u0300-\u036f][\u0300-\u036f]*|[\u0300-\u036f]+", text)]
    pairs = [(c, at) for cluster, at in clusters for c in unicodedata.normalize("NFC", cluster)]
    return "".join(c for c, _ in pairs), [*(at for _, at in pairs), len(text)]


_TO = r"\s*(?:-|–|—|to|through|thru|until|bis(?: zum)?|au|al|a|t/m|tot|y|hasta)\s*(?:the\s|den\s|le\s)?"
_ORDINAL = r"(?:\.|st|nd|rd|th|er|º|°)?"
_OPEN_RANGES = tuple(
    re.compile(pattern, re.I)
    for pattern in (
        rf"(?<![\d.])(?P<d1>\d{{1,2}})\.(?P<m1>\d{{1,2}})\.?{_TO}(?P<rest>(?P<d2>\d{{1,2}})\.(?P<m2>\d{{1,2}})\.(?P<y>(?:19|20)\d\d|\d\d))(?!\d)",
        rf"(?<![\d.])(?P<d1>\d{{1,2}}){_ORDINAL}(?:\s(?P<n1>{_WORD}))?{_TO}"
        rf"(?P<rest>(?P<d2>\d{{1,2}}){_ORDINAL}\s(?:de\s)?(?P<n2>{_WORD})\.?,?\s(?:de\s)?(?P<y>(?:19|20)\d\d))(?!\d)",
        rf"(?P<n1>{_WORD})\s(?P<d1>\d{{1,2}}){_ORDINAL}{_TO}(?P<rest>(?:(?P<n2>{_WORD})\s)?(?P<d2>\d{{1,2}}){_ORDINAL},?\s(?P<y>(?:19|20)\d\d))(?!\d)",
    )
)


def find_open_ranges(text: str) -> list[tuple[DateSpan, DateSpan]]:
    """Ranges whose first date leaves out what the second states: "1.–31.10.2024", "du 1er au 30 juin 2024", "Oct 3 - 9, 2024"."""
    found: list[tuple[DateSpan, DateSpan]] = []
    for pattern in _OPEN_RANGES:
        for match in pattern.finditer(text):
            parts = match.groupdict()
            if "m1" in parts:
                first, last = int(parts["m1"]), int(parts["m2"])
            else:
                name1, name2 = parts["n1"] or parts["n2"], parts["n2"] or parts["n1"]
                first, last = MONTHS.get(name1.lower(), 0), MONTHS.get(name2.lower(), 0)
            start, end = _make(parts["y"], first, int(parts["d1"]), False), _make(parts["y"], last, int(parts["d2"]), False)
            if start and end and start[0] <= end[0] and not any(a.start < match.end() and match.start() < b.end for a, b in found):
                found.append((DateSpan(match.start(), match.start("rest"), start[0]), DateSpan(match.start("rest"), match.end(), end[0])))
    return sorted(found, key=lambda pair: pair[0].start)


def parse_date(text: str, order: Order = "dmy") -> datetime.date | None:
    """The date that `text` consists of, apart from surrounding punctuation, a weekday and a time; else None."""
    spans = list(find_dates(text, order))
    if len(spans) != 1:
        return None
    rest = text[: spans[0].start] + text[spans[0].end :]
    return spans[0].date if len(re.sub(r"[\W\d_]|[AaPp]\.?[Mm]", "", rest)) <= 10 else None


def infer_order(texts: Iterable[str], hint: str = "") -> Order:
    """Order of day and month of a document: explicit hint, then dates that admit one reading, then the language around.

    hint: text of the schema that may state the order ("month/day/year", "dd.mm.yyyy").
    """
    stated = stated_order(hint)
    if stated:
        return stated
    votes = {"dmy": 0.0, "mdy": 0.0}
    for text in texts:
        for match in _DATE.finditer(text):
            if not match["a"]:
                continue
            first, second = int(match["a"]), int(match["b"])
            if first > 12 >= second:
                votes["dmy"] += 1
            elif second > 12 >= first:
                votes["mdy"] += 1
            elif "." in match[0]:
                votes["dmy"] += 0.3
        if re.search(r"\b[A-Z]{2} \d{5}(?:-\d{4})?\b|\bUSA?\b|\bU\.S\.|US\$", text):
            votes["mdy"] += 0.2
    return "mdy" if votes["mdy"] > votes["dmy"] else "dmy"


_DAY_FIRST = re.compile(
    r"day (?:comes )?before (?:the )?month|day[./ -]month[./ -]year|\bday first\b|\bdd?[./ -]mm?[./ -]yy|\bdmy\b"
    r"|\bt+[./]m+[./]j+\b|\bj+[./]m+[./]a+\b"
)
_MONTH_FIRST = re.compile(
    r"month (?:comes )?before (?:the )?day|month[./ -]day[./ -]year|\bmonth first\b|\bmm?[./ -]dd?[./ -]yy|\bmdy\b"
    r"|\bus(?:-style)? (?:date|format)"
)


def stated_order(hint: str) -> Order | None:
    """The order of day and month that a description states in words or as a pattern, or None."""
    low = hint.lower()
    day, month = _DAY_FIRST.search(low), _MONTH_FIRST.search(low)
    if day and not month:
        return "dmy"
    return "mdy" if month and not day else None


def _read(match: re.Match[str], order: Order) -> tuple[datetime.date, bool] | None:
    group = match.groupdict()
    if group["y1"]:
        return _make(group["y1"], int(group["m1"]), int(group["d1"]), False)
    if group["a"]:
        first, second = int(group["a"]), int(group["b"])
        month, day = (first, second) if order == "mdy" else (second, first)
        ambiguous = first <= 12 and second <= 12 and first != second
        return _make(group["y2"], month, day, ambiguous) or _make(group["y2"], day, month, False)
    if group["y6"]:
        return _make(group["y6"], int(group["m6"]), int(group["d6"]), False)
    for k in "345":
        if group["n" + k]:
            number = MONTHS.get(group["n" + k].lower())
            return _make(group["y" + k], number, int(group["d" + k]), False) if number else None
    return None


def _make(year_text: str, month: int, day: int, ambiguous: bool) -> tuple[datetime.date, bool] | None:
    year = int(year_text.strip("'’"))
    if year < 100:
        year += 2000 if year < 70 else 1900
    try:
        return datetime.date(year, month, day), ambiguous
    except ValueError:
        return None
