"""From a schema to the questions that are put to the pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from pagelift.evidence import stated_order
from pagelift.layout import lexicon
from pagelift.layout.query import Kind, Part, Path, Query, Table, Terms, shape, split_name
from pagelift.schema.nodes import Array, Node, Object, Scalar, Union

PART_WORDS: dict[str, Part] = {
    **dict.fromkeys(("street", "street address", "address line 1", "line1", "strasse"), "street"),
    **dict.fromkeys(("zip", "zip code", "postcode", "postal code", "post code", "plz"), "postcode"),
    **dict.fromkeys(("city", "town", "ort", "ville"), "city"),
    **dict.fromkeys(("state", "province"), "state"),
    **dict.fromkeys(("country", "land", "pays"), "country"),
}
"""Property names that ask for a part of an address."""
_ISSUERS = frozenset(
    """bank lab laboratory hotel institution university school college hospital clinic restaurant shop store merchant provider supplier
    insurer airline utility issuer employer practice agency retailer vendor""".split()
)
"""Nouns that name the kind of organisation whose letterhead a document carries."""

_PARTIES = frozenset("seller buyer employer landlord tenant bank shipper consignee carrier account_holder".split())
_NAMED = frozenset(
    """name person contact employee patient doctor guest insured holder signatory manager passenger advertiser agency institution hotel
    lab physician broker customer client issuer company business merchant store shop restaurant organization organisation organiser
    vendor supplier""".split()
)
"""Words of a property name that ask for the name of a person or an organisation."""
_FORMATS: dict[str, Kind] = {
    "date": "date",
    "date-time": "datetime",
    "time": "time",
    **dict.fromkeys(("email", "idn-email"), "email"),
    **dict.fromkeys(("uri", "iri", "uri-reference"), "url"),
}

MAX_FIELDS = 2_000
"""More scalar properties than this are not looked for; the rest of a wider schema comes back null."""


def plan(root: Node) -> tuple[list[Query], list[Table]]:
    """All scalars and tables of a schema, in schema order; recursive parts are entered once."""
    queries: list[Query] = []
    tables: list[Table] = []
    for item in _walk(root, (), (), frozenset()):
        if isinstance(item, Table):
            tables.append(item)
        elif len(queries) < MAX_FIELDS:
            queries.append(item)
    if not any(q.role == "owner" for q in queries):
        for query in queries:
            if query.words in ("company", "organization", "organisation", "business", "organiser", "organizer", "company name"):
                query.role = "owner"
    if any("order" in q.label for q in queries) and not any("invoice" in q.label for q in queries):
        for query in queries:  # an order is sent by the buyer
            if query.label & {"buyer", "seller"} and query.role:
                query.role = "owner" if "buyer" in query.label else "recipient"
    return queries, tables


def _walk(node: Node, path: Path, parents: tuple[Node, ...], context: frozenset[str]) -> Iterator[Query | Table]:
    if any(node is p for p in parents) or len(path) > 12:
        return
    if isinstance(node, Union):
        first = next((o for o in node.options if not isinstance(o, Scalar)), node.options[0] if node.options else None)
        if first is not None:
            yield from _walk(first, path, (*parents, node), context)
    elif isinstance(node, Object):
        inner = context | lexicon.bag(split_name(path[-1])) if path else context
        for name, child in node.properties.items():
            yield from _walk(child, (*path, name), (*parents, node), inner)
    elif isinstance(node, Array):
        items = _first_option(node.items)
        if isinstance(items, Scalar):
            yield _query(items, path, context, node)
        elif isinstance(items, Object) and not any(items is p for p in parents):
            yield _table(node, items, path, (*parents, node))
    else:
        yield _query(node, path, context, None)


def _first_option(node: Node) -> Node:
    return node.options[0] if isinstance(node, Union) and node.options else node


def _table(array: Array, items: Object, path: Path, parents: tuple[Node, ...]) -> Table:
    table = Table(path, array, lexicon.bag(split_name(path[-1]) if path else "") | lexicon.bag(_main_clause(array.description)), [], [])
    for found in _walk(items, (), parents, frozenset()):
        if isinstance(found, Table):
            table.nested.append(found)
        else:
            table.columns.append(found)
    return table


def _main_clause(description: str) -> str:
    return re.split(r"[;(.:]\s|[;(]|, (?:with|without|not|null|if|as)\b|\bfor example\b|\be\.g\.", description, maxsplit=1)[0]


def _query(node: Scalar, path: Path, context: frozenset[str], array: Array | None) -> Query:
    name = split_name(path[-1]) if path else ""
    title = node.title or (array.title if array else "")
    description = " ".join(filter(None, [array.description if array else "", node.description]))
    label = lexicon.bag(name) | lexicon.bag(title)
    hint = lexicon.bag(_main_clause(description)) - label
    negated = re.findall(r"\b(?:not|before|without|excluding|other than)\s+(?:the\s+|any\s+|its\s+|a\s+)?([\w ]+)", description.lower())
    against = frozenset(c for text in negated for c in lexicon.bag(text)) - label
    stand_in = re.findall(r"\b(?:otherwise|else|or) (?:the )?((?:(?!\bor\b|\bof\b|\bwhere\b)[\w ])+)", description.lower())
    fallback = tuple(filter(None, (lexicon.bag(text) & lexicon.concept_names() - against for text in stand_in)))
    terms = Terms(label, hint - against, against, fallback, lexicon.stems(name))
    query = Query(path, node, "text", terms, Terms(context - label), description, name.lower(), many=array is not None)
    query.kind = _kind(query)
    if query.kind in ("date", "datetime"):
        query.terms = replace(query.terms, label=query.label | {"date"})
    _read_description(query)
    return query


def _kind(query: Query) -> Kind:
    node, label = query.node, query.label
    words = set(query.words.split())
    text = (query.words + " " + _main_clause(query.description)).lower()
    if node.enum is not None:
        return "boolean" if set(node.enum) <= {True, False} and all(isinstance(v, bool) for v in node.enum) else "enum"
    if node.types == ("boolean",):
        return "boolean"
    if "number" in node.types or "integer" in node.types:
        percent = re.search(r"percent|%|\bpct\b", text) and not words & {"price", "amount", "salary"}
        percent = percent or ("rate" in words and bool(label & {"tax", "discount", "commission", "interest"}))
        return "percent" if percent else "number"
    if node.format in _FORMATS:
        return _FORMATS[node.format]
    if words & {"time", "uhrzeit", "heure", "hora"} and not words & {"date", "full", "total", "zone"}:
        return "time"
    if "iban" in label:
        return "iban"
    if "currency" in words or "4217" in query.description or "currency code" in text:
        return "currency"
    if "email" in label:
        return "email"
    if words & {"phone", "telephone", "tel", "fax", "mobile", "telefon"}:
        return "phone"
    if words & {"url", "website", "web", "homepage"}:
        return "url"
    if query.words in PART_WORDS:
        query.extra["part"] = PART_WORDS[query.words]
        return "place"
    if words & {"address", "anschrift", "adresse", "direccion"} or (
        re.search(r"\baddress\b", text) and not re.search(r"e-?mail|web|ip\b", text) and not words & {"name"}
    ):
        return "address"
    if (words & {"date", "datum", "dob", "fecha"} and not words & {"range"}) or (
        query.words.endswith((" on", " at")) and "date" in label | query.hint
    ):
        return "date"
    if _is_identifier(query, words):
        return "id"
    if label & _PARTIES or words & _NAMED:
        return "name"
    return "text"


def _is_identifier(query: Query, words: set[str]) -> bool:
    if query.label & {"address"}:
        return False
    if words & {
        "number",
        "no",
        "nr",
        "num",
        "id",
        "iban",
        "reference",
        "ref",
        "code",
        "zip",
        "postcode",
        "sku",
        "vin",
        "ssn",
        "ein",
        "tin",
        "isbn",
        "bic",
        "swift",
    }:
        return True
    if query.node.pattern is not None and re.search(r"\\d|0-9", query.node.pattern):
        return True
    return bool(
        re.match(
            r"(?:the )?(?:unique )?(?:number|identifier|id)\b|.{0,40}\b(?:number|identifier)\b", _main_clause(query.description).lower()
        )
    )


def _read_description(query: Query) -> None:
    text = query.description
    example = re.search(r"(?:for example|e\.g\.|such as|example:?|like)\s+[\"'“]?([^\s,;)\"'”]+)", text)
    samples = [str(e) for e in query.node.examples if e is not None] or ([example[1]] if example else [])
    if samples and query.kind in ("id", "iban", "text", "phone") and re.search(r"\d", samples[0]):
        query.shape = shape(samples[0])
    pattern = re.search(r"\bas ([dDxX9#]+(?:[-./ ][dDxX9#]+)+)", text)
    if pattern and query.node.format is None:
        query.shape = shape(re.sub("[dDxX#]", "9", pattern[1]))
        query.extra["picture"] = re.sub("[dDxX#]", "9", pattern[1])
    digits = re.search(r"\b(\d+)[- ]digits?\b", text)
    query.digits = int(digits[1]) if digits else None
    query.compact = bool(re.search(r"without (?:any )?(?:spaces|blanks|separators)", text)) or query.kind == "iban"
    query.order = stated_order(text)
    own = query.label | (query.parents.label if not query.label & {"seller", "buyer"} else frozenset())
    query.principal = query.kind in ("date", "datetime") and query.label <= {"date", "issue", "invoice", "statement"}
    if query.kind in ("name", "address", "text"):
        words = set(query.words.split()) - {"name", "title", "of", "the"}
        issuer = re.search(r"\bissue[ds]\b|\bissuer\b|\bissuing\b|\bletterhead\b", text)
        if own & {"seller", "employer", "manufacturer"} or issuer or (words and words <= _ISSUERS and not query.parents.label):
            query.role = "owner"
        elif own & {"buyer", "consignee", "tenant", "employee", "patient", "requester", "account_holder", "guest", "student"}:
            query.role = "recipient"
        elif (query.label and not query.parents.label) and (
            query.label <= {"name", "title", "event", "form", "document", "report"} or re.search(r"\b(?:heading|headline|title)\b", text)
        ):
            query.role = "subject"
    first = re.match(r"first|start|begin", text.lower()) or "start" in query.label
    last = re.match(r"last|end", text.lower()) or "end" in query.label
    query.full_terms = replace(query.terms, label=query.label | query.parents.label)
    open_label = query.label - {"start", "end"}
    query.range_terms = replace(query.terms, label=open_label) if open_label else query.terms
    if query.kind in ("number", "percent") and query.parents.label:
        words = set(query.words.split())
        query.bound = "first" if words & {"min", "minimum", "from", "low", "lower"} else ""
        query.bound = "last" if words & {"max", "maximum", "to", "high", "upper"} else query.bound
        query.range_terms = query.parents if query.bound else query.terms
    if query.kind in ("date", "datetime"):
        query.bound = "first" if first and not last else "last" if last and not first else ""
