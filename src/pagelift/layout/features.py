"""What is seen of a candidate that could answer a query, as named numbers; absent ones are 0."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pagelift.layout import lexicon
from pagelift.layout.candidates import Candidate, Family
from pagelift.layout.labels import CONNECTOR, match_label
from pagelift.layout.lines import PageLayout, block_below
from pagelift.layout.query import Query, shape
from pagelift.layout.values import iban_checks
from pagelift.layout.weights import group_of

ORGANISATION = re.compile(
    r"\b(?:gmbh|ag|inc|ltd|llc|llp|sdn|bhd|s\.?a\.?r?\.?l?|b\.?v|co|corp|corporation|kg|ohg|plc|pty|enterprises?|trading|restaurant"
    r"|company|limited|group|verein|e\.?v|ug|sas|sasu|srl|spa|s\.p\.a|oy|ab|as|committee|stores?|mart|university|college|school"
    r"|hospital|clinic|bank|hotel|services|solutions|systems|association|foundation|institute|agency|partners|holdings?"
    r"|industries|international|insurance|logistics|technologies)\b",
    re.I,
)
"""Words and legal forms that mark the name of an organisation."""
_NOT_ADDRESS = re.compile(
    r"\b(?:tel|te1|fax|gst|date|invoice|receipt|phone|h/p|co\.? reg|email|e-mail|vat|ust|iban|www|http|page|total|qty|item|order"
    r"|cashier|table|reg\.? no)\b|@|\d{7,}|\d\.\d\d\b|\d:\d\d|\b\d{4,7}-[A-Z]\b|\b0\d{1,3}[- ]\d{4}|\+\d{2}",
    re.I,
)
_STREET_START = re.compile(
    r"^(?:address:?\s*)?(?:no\.?|lot|unit|blk|block|level|suite|ste|flat|plot|po box|p\.o\.|gf|ground|\d|[a-z]?\d"
    r"|[^\W\d]+(?:straße|str\.|strasse|weg|platz|gasse|allee|ring|laan|straat)"
    r"|rue|avenue|av\.|boulevard|via|viale|piazza|calle|avda|jalan|jln|c/)",
    re.I,
)
_SENDER_LINE = re.compile(r"^[^,•·●|*\d]+[,•·●|*–-]+\s[^,•·●|*]+[,•·●|*–-]+\s?.*\b\d{4,5}\b")
"""A return address in one line: name, street, place."""
_PLACE_BEFORE_DATE = re.compile(
    r"(?:Fait à |Done at |Signed at )?[A-ZÀ-Ý][\w .-]{2,25}(?:,|\bden|\ble|\bil)[ ,]*(?:den|le|il|the|de)?", re.I
)
_NOT_NAME = re.compile(
    r"^(?:no|nr|reg|tel|fax|attn|page|code|date|www|http|email|e-mail|vat|gst|iban)\b"
    r"|\b(?:reg|registration|co|company|roc)\.? ?(?:no|nr|#)",
    re.I,
)
_LEGAL_FORM = re.compile(r"(?:sdn|bhd|gmbh|ltd|inc|llc|co|kg|ag|plc|limited|company|&|und|and|[\W_])+", re.I)

_POSTCODE = re.compile(r"\b(?:[A-Z]{1,2}-)?\d{4,6}\b|\b[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}\b")


def block_heads(page: PageLayout) -> frozenset[int]:
    """Ids of the segments that head an address block: two to five lines below, one of them with a postcode, none a label."""
    heads = set()
    for segment in page.segments:
        block = block_below(segment, limit=6)
        has_postcode = any(_POSTCODE.search(s.text) and re.search(r"[^\W\d_]{3}", s.text) for s in block[1:])
        if len(block) >= 2 and has_postcode and not re.search(r"[:\d]", segment.text) and not lexicon.only_label_words(segment.text):
            first = not any(id(s) in heads for s in segment.above[:1] if s in block_below(s) and segment in block_below(s))
            if first:
                heads.add(id(segment))
    return frozenset(heads)


@dataclass(slots=True)
class DocumentFacts:
    """What the features need to know of the whole document. amounts: distinct amounts, largest first. pages: how many.
    table_tokens: ids of tokens that belong to a table. form: the document is a form with filled fields.
    block_heads: ids of segments that head an address block.
    distinct: how many different values a family has."""

    amounts: list[float] = field(default_factory=list)
    pages: int = 1
    table_tokens: frozenset[int] = frozenset()
    form: bool = False
    block_heads: frozenset[int] = frozenset()
    distinct: dict[Family, int] = field(default_factory=dict)


def features(query: Query, candidate: Candidate, facts: DocumentFacts, label_match: float = 0.0) -> dict[str, float]:
    """Named features of a candidate for a query besides its labels; absent ones are 0."""
    page = candidate.page
    high = 1 - candidate.segment.box.top / max(1.0, page.height)
    seen = {"high": high, "low": 1 - high, "page": float(min(page.number - 1, 5))}
    if candidate.is_form and not candidate.text:
        return {"form": 1.0}
    if facts.form:
        seen["form" if candidate.is_form else "not_in_form"] = 1.0
    if candidate.tokens and id(candidate.tokens[0]) in facts.table_tokens:
        seen["table"] = 1.0
    group = group_of(query.kind)
    if group in ("number", "percent"):
        seen |= _number_features(query, candidate, facts)
    elif group == "date":
        part = {"first": 1, "last": 2}.get(query.bound)
        only_date = (query.principal or query.label & {"signed", "issue"}) and any(
            relation == "inline" and (lexicon.bag(text) == {"date"} or CONNECTOR.fullmatch(text) or _PLACE_BEFORE_DATE.fullmatch(text))
            for text, _, relation in candidate.labels
        )
        seen["plain_date"] = float(bool(only_date))
        seen["range"] = 0.0 if not part or not candidate.range_part else 1.0 if candidate.range_part == part else -1.0
    elif group in ("id", "pattern"):
        seen |= _identifier_features(query, candidate, facts)
    elif group == "place":
        seen["parts_found"] = float(candidate.family == "place")
        seen["labelless"] = float(candidate.family == "text" and label_match < 0.75)
        seen["is_label"] = float(lexicon.only_label_words(candidate.text))
    elif group == "address":
        seen |= _address_features(candidate)
    else:
        seen |= _text_features(query, candidate, facts)
    return seen


def _number_features(query: Query, candidate: Candidate, facts: DocumentFacts) -> dict[str, float]:
    number = candidate.number
    assert number is not None
    part = {"first": 1, "last": 2}.get(query.bound)
    seen = {"percent": float(number.percent), "range": 0.0}
    seen["in_date"] = float(candidate.in_date and not set(query.words.split()) & {"year", "day", "month"})
    if part and candidate.range_part:
        seen["range"] = 1.0 if candidate.range_part == part else -1.0
    if query.node.types == ("integer",):
        return seen | {"whole": float(number.decimals == 0), "bare": 0.0, "low": 0.0}
    value = abs(float(number.value))
    rank = facts.amounts.index(value) if value in facts.amounts[:9] else 9
    concepts = query.label | query.hint
    seen |= {"cents": float(number.decimals == 2), "currency": float(number.currency is not None)}
    seen["bare"] = float(number.decimals == 0 and number.currency is None)
    if query.label & {"grade", "credit", "points", "hours", "qty", "weight", "volume", "package", "night"}:
        seen |= {"low": 0.0, "bare": 0.0, "cents": 0.0, "currency": 0.0}
    elif concepts & {"total", "gross"} and not query.label & {"tax", "net"}:
        seen |= {"largest": float(rank == 0), "rank": 4.0 - min(rank, 4)}
    elif "tax" in query.label:
        seen["not_largest"] = float(rank == 0)
    elif not query.label & {"net", "balance", "amount"}:
        seen |= {"low": 0.0, "bare": 0.0, "cents": 0.0, "currency": 0.0}
    return seen


def _identifier_features(query: Query, candidate: Candidate, facts: DocumentFacts) -> dict[str, float]:
    text = re.sub(r"\s", "", candidate.text)
    typed = candidate.family in ("email", "phone", "url") or (candidate.family == "iban" and iban_checks(text))
    seen = {"typed": float(typed), "phrase": float(candidate.family == "text")}
    if query.shape:
        seen["shape" if shape(text) == shape(re.sub(r"\s", "", query.shape)) else "off_shape"] = 1.0
    if query.digits:
        seen["digits" if len(re.sub(r"\D", "", text)) == query.digits else "off_digits"] = 1.0
    seen["date_or_amount"] = float(bool(re.search(r"\d[.,]\d\d$|\d[/.-]\d{1,2}[/.-]\d{2,4}", candidate.text)))
    seen["short"] = float(len(text) < 3)
    seen["only"] = float(facts.distinct.get(candidate.family) == 1)
    after = candidate.segment.tokens[candidate.end].text if candidate.end < len(candidate.segment.tokens) else ""
    seen["cut"] = float(candidate.family == "id" and bool(re.fullmatch(r"\d[\d-]*", after)))
    picture = query.extra.get("picture")
    seen["picture"] = float(isinstance(picture, str) and re.sub(r"\d", "9", candidate.text) == picture)
    seen["long"] = float(min(len(text), 8)) if candidate.family == "id" else 0.0
    return seen


def _address_features(candidate: Candidate) -> dict[str, float]:
    text = candidate.text
    lines = [s.text for s in candidate.lines] or [text]
    return {
        "postcode": float(bool(_POSTCODE.search(text))),
        "commas": float(text.count(",") >= 2),
        "lines": float(min(len(lines), 4)),
        "noise": float(bool(_NOT_ADDRESS.search(text))),
        "starts_with_name": float(bool(ORGANISATION.search(lines[0] if len(lines) > 1 else text[:40]) and len(lines) > 1)),
        "starts_street": float(bool(_STREET_START.search(text))),
        "ends_place": float(bool(_POSTCODE.search(" ".join(lines[-2:])) and not _POSTCODE.search(" ".join(lines[:-2])))),
        "long": float(max(0, len(text) - 120)),
        "cut_start": float(_goes_on_from_above(candidate)),
    }


def _goes_on_from_above(candidate: Candidate) -> bool:
    """Whether the line above belongs to the same address."""
    segment = candidate.segment
    over = segment.above[0] if segment.above and not candidate.start else None
    if over is None or abs(over.box.x0 - segment.box.x0) > segment.page.unit or segment.box.top - over.box.bottom > segment.page.unit:
        return False
    return bool(_STREET_START.search(over.text)) and not lexicon.only_label_words(over.text) and ":" not in over.text


def _text_features(query: Query, candidate: Candidate, facts: DocumentFacts) -> dict[str, float]:
    text, segment, page = candidate.text, candidate.segment, candidate.page
    organisation = bool(ORGANISATION.search(text))
    words = text.split()
    seen = {
        "organisation": float(organisation),
        "digits": len(re.findall(r"\d", text)) / max(1, len(text)),
        "colon": float(text.endswith(":")),
        "length": float(len(text) > 60) + float(len(text) < 4),
        "is_label": float(_names_itself(query, text) and not (query.role == "owner" and organisation and len(words) > 1)),
        "street": float(bool(_STREET_START.search(text)) and not organisation),
        "no_letters": float(not re.search(r"[^\W\d_]{2}", text)),
        "generic": float(not organisation and lexicon.only_label_words(text)),
        "single_word": float(" " not in text and organisation),
        "not_a_name": float(bool(_NOT_NAME.search(text) or _LEGAL_FORM.fullmatch(text))),
        "trimmed": float(candidate.trimmed) * (1.0 if query.role == "owner" or "without" in query.description else -1.0),
        "sentence": float(len(words) >= 5 and sum(w[0].islower() for w in words) > len(words) / 2),
        "inner_label": float(":" in text[:-1] and not re.search(r"\d:\d|https?:", text)),
        "unfinished": float(text.count("(") > text.count(")") or text.endswith(("&", ",", " and", " und", " et", " of"))),
        "wrapped": float(candidate.family == "wrapped"),
        "partial": float(bool(candidate.start) and not segment.text.endswith(text)),
    }
    seen |= _role_features(query, candidate, facts)
    seen["phrase"] = float(candidate.family == "phrase")
    if query.shape:
        seen["shape" if shape(text) == query.shape else "off_shape"] = 1.0
    if "title" in query.label | query.hint:
        seen["title_size"] = min(segment.height / page.unit - 1, 2.0)
    return seen


def _role_features(query: Query, candidate: Candidate, facts: DocumentFacts) -> dict[str, float]:
    """Where the names of the parties and of the document itself stand."""
    text, segment, page = candidate.text, candidate.segment, candidate.page
    place, size = segment.box.top / page.height, segment.height / page.unit - 1
    heads_block = float(id(segment) in facts.block_heads and not candidate.start)
    if query.role == "owner":
        sender = candidate.end < len(segment.tokens) and not candidate.start and bool(_SENDER_LINE.search(segment.text))
        stands_out = size > 0.15 or segment.bold > 0.5 or bool(ORGANISATION.search(text))
        own_word = bool(lexicon.bag(text) & query.label) and not lexicon.only_label_words(text)
        return {
            "owner_high": 1 - place,
            "owner_size": min(size, 1.5),
            "owner_block": heads_block,
            "sender_line": float(sender),
            "letterhead": float(place < 0.14 and page.number == 1 and stands_out),
            "own_word": float(own_word and not re.search(r"[:#]|\d{3}", text)),
        }
    if query.role == "recipient":
        return {
            "recipient_top": float(place < 0.08),
            "recipient_block": heads_block * float(0.1 < place < 0.5),
            "recipient_left": heads_block * float(segment.box.x0 < 0.4 * page.width),
        }
    if query.role == "subject":
        return {"subject_high": float(place < 0.25 and page.number == 1), "subject_size": min(size, 1.5)}
    return {}


def _names_itself(query: Query, text: str) -> bool:
    return lexicon.only_label_words(text) and match_label(query, text) > 0.6
