"""Parts of postal addresses: street, postcode, city, state and country, each as a span of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pagelift.layout.candidates import Candidate, token_range
from pagelift.layout.lines import Segment
from pagelift.layout.query import Part
from pagelift.layout.values import plain

_COUNTRIES = frozenset(
    plain(name)
    for name in """Argentina|Australia|Austria|Österreich|Autriche|Bangladesh|Belgium|Belgien|Belgique|België|Brazil|Brasil|Brasilien|
    Bulgaria|Canada|Kanada|Chile|China|Colombia|Croatia|Czech Republic|Czechia|Tschechien|Denmark|Dänemark|Danmark|Egypt|
    Estonia|Finland|Finnland|France|Frankreich|Germany|Deutschland|Allemagne|Alemania|Germania|Duitsland|Greece|
    Griechenland|Hong Kong|Hungary|Ungarn|Iceland|India|Indien|Indonesia|Ireland|Irland|Israel|Italy|Italien|Italia|Italie|
    Japan|Japon|Kenya|Korea|South Korea|Latvia|Lithuania|Luxembourg|Luxemburg|Malaysia|Malta|Mexico|México|Morocco|
    Netherlands|The Netherlands|Niederlande|Nederland|Pays-Bas|New Zealand|Nigeria|Norway|Norwegen|Norge|Pakistan|Peru|
    Philippines|Poland|Polen|Polska|Portugal|Romania|Rumänien|Russia|Saudi Arabia|Serbia|Singapore|Slovakia|Slovenia|
    Slowenien|South Africa|Spain|Spanien|España|Espagne|Spagna|Sweden|Schweden|Sverige|Switzerland|Schweiz|Suisse|Svizzera|
    Taiwan|Thailand|Türkiye|Turkey|Türkei|Ukraine|United Arab Emirates|UAE|United Kingdom|UK|Great Britain|Royaume-Uni|
    Großbritannien|England|Scotland|Wales|United States|United States of America|USA|U.S.A.|États-Unis|Vietnam""".split("|")
)
_CITY = r"(?P<city>[^\W\d_][^\d,;:|•·]*?)"
_FORMS = (
    re.compile(rf"(?:^|,\s*|\s){_CITY},?\s+(?P<state>[A-Z]{{2}})\.?\s+(?P<postcode>\d{{5}}(?:-\d{{4}})?)\b"),
    re.compile(rf"(?:^|,\s*)(?:[A-Z]{{1,2}}[-\s])?(?P<postcode>\d{{4}}\s?[A-Z]{{2}}|\d{{4,5}})\s+{_CITY}(?=$|[,;|•·(]|\s[-–]\s)"),
    re.compile(rf"(?:^|,\s*){_CITY},?\s+(?P<postcode>[A-Z]{{1,2}}\d[A-Z\d]?\s?\d[A-Z]{{2}})\b"),
    re.compile(rf"(?:^|,\s*){_CITY}\s*[-–,]?\s+(?P<postcode>\d{{6}})\b"),
)
_STREET = re.compile(
    r"^[^:]*(?:\b\d{1,5}[a-z]?\b|straße|str\.|street|road|avenue|\bave\b|\brue\b|\bvia\b|\bcalle\b|weg\b|platz\b|lane\b)", re.I
)


def place_candidates(segment: Segment) -> Iterator[tuple[Part, Candidate]]:
    """Parts of an address on one segment, each with the tokens it is printed with."""
    label = re.match(r"[^\W\d_][\w .]{2,20}:\s*", segment.text)
    offset = label.end() if label else 0
    text = segment.text[offset:]
    if plain(text) in _COUNTRIES:
        yield "country", _span(segment, offset, offset + len(text))
    tail = re.search(r"[,\-–]\s*([^\W\d_][^,\d]*)$", text)
    if tail and plain(tail[1]) in _COUNTRIES:
        yield "country", _span(segment, offset + tail.start(1), offset + tail.end(1))
    for form in _FORMS:
        match = form.search(text)
        if match is None:
            continue
        for part in match.groupdict():
            yield part, _span(segment, offset + match.start(part), offset + match.end(part))  # type: ignore[misc]
        head = text[: match.start()].strip(" ,")
        if head and _STREET.search(head):
            yield "street", _span(segment, offset, offset + len(head))
        elif segment.above and _STREET.search(segment.above[0].text) and segment.box.top - segment.above[0].box.bottom < segment.page.unit:
            above = segment.above[0]
            yield "street", _span(above, 0, len(above.text))
        return


def _span(segment: Segment, start: int, end: int) -> Candidate:
    first, last = token_range(segment, start, end)
    return Candidate("place", segment, first, last, segment.text[start:end].strip(" ,;"))
