"""What the features of an answer count, by the kind of value asked for, and which candidates can answer at all.

The score of an answer is the sum of its features times these weights and nothing else, so that they can be fitted.
They were set by hand while looking at the development documents; see docs/benchmarks.md.
"""

from __future__ import annotations

from pagelift.layout.candidates import Family
from pagelift.layout.query import Kind

FAMILIES: dict[Kind, tuple[Family, ...]] = {
    "number": ("number",),
    "percent": ("number",),
    "date": ("date",),
    "datetime": ("date",),
    "time": ("time",),
    "iban": ("iban",),
    "email": ("email",),
    "phone": ("phone",),
    "url": ("url",),
    "id": ("id", "text"),
    "address": ("text", "block", "wrapped"),
    "name": ("text", "wrapped", "phrase"),
    "text": ("text", "wrapped", "phrase"),
    "place": ("place", "text"),
    "boolean": (),
    "enum": (),
    "currency": (),
}
"""Which families of candidates can answer which kind; booleans, enums and currencies are read from marks and choices."""

FAMILIES_OF_ONE = frozenset({"email", "phone", "url", "iban"})
"""Families of which a document's only value needs no label."""

WEIGHTS: dict[str, dict[str, float]] = {
    "*": {"label": 2.0, "context": 0.7, "table": -0.5, "form": 0.4, "not_in_form": -0.8},
    "number": {
        "page": -0.05, "cents": 0.3, "currency": 0.25, "largest": 0.25, "rank": 0.04, "low": 0.2, "bare": -0.3, "not_largest":
        -0.6, "whole": 0.3, "range": 0.8, "in_date": -2.0, "percent": -1.5,
    },
    "percent": {"page": -0.05, "percent": 0.8, "range": 0.8, "in_date": -2.0},
    "date": {"high": 0.25, "page": -0.2, "range": 0.35, "plain_date": 0.6},
    "id": {
        "high": 0.1, "page": -0.15, "shape": 0.8, "off_shape": -0.3, "picture": 0.5, "cut": -0.15, "digits": 0.8,
        "off_digits": -0.8, "date_or_amount": -1.2, "short": -0.3, "long": 0.02, "phrase": -0.1,
    },
    "pattern": {"high": 0.1, "page": -0.15, "shape": 0.8, "off_shape": -0.3, "typed": 0.4, "only": 0.4},
    "place": {"high": 0.3, "page": -0.3, "parts_found": 0.3, "labelless": -1.5, "is_label": -0.8},
    "address": {
        "high": 0.4, "page": -0.3, "postcode": 0.4, "commas": 0.2, "lines": 0.05, "noise": -1.2, "starts_with_name": -0.5,
        "long": -0.01, "starts_street": 0.4, "ends_place": 0.4, "cut_start": -0.5,
    },
    "name": {
        "high": 0.3, "page": -0.4, "organisation": 0.4, "digits": -0.8, "colon": -0.2, "length": -0.3, "is_label": -0.8,
        "owner_high": 0.5, "owner_size": 0.15, "no_letters": -1.0, "generic": -1.2, "single_word": -0.5, "not_a_name": -1.0,
        "recipient_top": -0.5, "partial": -0.05, "trimmed": 0.4, "street": -0.6, "inner_label": -0.4, "unfinished": -0.3,
        "sentence": -0.6, "phrase": -0.2, "subject_high": 0.3, "subject_size": 0.5, "wrapped": 0.3, "letterhead": 0.5,
        "own_word": 0.5, "owner_block": 0.3, "sender_line": 0.8, "recipient_block": 0.8, "recipient_left": 0.3, "shape": 0.8,
        "off_shape": -0.3,
    },
    "text": {
        "high": 0.15, "page": -0.2, "colon": -0.3, "is_label": -0.8, "no_letters": -0.15, "generic": -0.3, "length": -0.1,
        "partial": -0.05, "title_size": 0.25, "owner_high": 0.5, "owner_size": 0.15, "inner_label": -0.3, "unfinished": -0.3,
        "sentence": -0.4, "phrase": -0.2, "subject_high": 0.3, "subject_size": 0.5, "letterhead": 0.4, "own_word": 0.4,
        "organisation": 0.2, "wrapped": 0.2, "shape": 0.8, "off_shape": -0.3,
    },
}  # fmt: skip
"""Weights by group of kinds; those under "*" are common to all."""


def group_of(kind: Kind) -> str:
    """The group of weights that a kind of value uses."""
    if kind in ("iban", "email", "phone", "url", "time"):
        return "pattern"
    if kind in ("currency", "enum", "boolean"):
        return "text"
    return "date" if kind == "datetime" else kind
