"""What label words mean: a small thesaurus of business terms, so that a schema in English finds labels in other languages.

The words are in thesaurus.txt. A text becomes a bag of concepts; a word outside the thesaurus stands for itself by its stem.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from importlib import resources

GENERIC = {
    "number": 0.4, "name": 0.4, "date": 0.4, "amount": 0.4, "total": 0.6, "code": 0.4, "value": 0.4, "registration": 0.5, "reference": 0.6,
    "type": 0.5, "title": 0.6, "description": 0.6, "status": 0.6, "unit": 0.5, "company": 0.6, "position": 0.6, "identification": 0.6,
    "time": 0.5, "product": 0.7, "period": 0.7, "bank": 0.6, "service_charges": 0.5,
}  # fmt: skip
"""Words that many labels share say little; all others weigh 1."""

_COMMON = frozenset({"number", "name", "date", "amount", "value", "code", "reference", "total", "type", "start", "end"})
_PARTY = re.compile(r"\b(bill|billed|sold|invoice|invoiced|ship|shipped|deliver) to\b", re.I)
"""Two words that name a party together."""
STOP = frozenset(
    """the of a an is that this as in on for and or by with be it if which not where was will were are at has have any all per its their
    der die das und des dem den im zu mit für le la les de et il d l les des aux el los las y e il lo gli di del della en het een op
    null none printed stated example iso 4217 8601 yyyy mm dd us dollars without spaces document otherwise field both digits one line
    given appears shown found extracted extract value-of should must e.g eg i.e ie""".split()
)


@functools.cache
def _words() -> tuple[dict[str, frozenset[str]], tuple[tuple[str, frozenset[str]], ...]]:
    """Words with their concepts, and those that may be part of a compound, long ones first."""
    table: dict[str, set[str]] = {}
    text = resources.files("pagelift.layout").joinpath("thesaurus.txt").read_text(encoding="utf-8")
    for row in text.replace("\n ", " ").splitlines():
        if row and not row.startswith("#"):
            concept, _, words = row.partition(": ")
            for word in [concept, *words.split()]:
                table.setdefault(word, set()).add(concept)
    parts = sorted(((w, frozenset(cs)) for w, cs in table.items() if len(w) >= 5 and w.isalpha()), key=lambda p: -len(p[0]))
    for concepts in table.values():
        if concepts & _ALSO_NUMBER:
            concepts.add("number")  # "Employee code" answers employee_number
    return {w: frozenset(c) for w, c in table.items()}, tuple(parts)


_ALSO_NUMBER = frozenset({"code", "reference", "identification"})


@functools.cache
def concept_names() -> frozenset[str]:
    return frozenset(c for cs in _words()[0].values() for c in cs)


def words_of(concept: str) -> list[str]:
    """The words that mean a concept."""
    return [w for w, concepts in _words()[0].items() if concept in concepts]


@functools.lru_cache(100_000)
def word_concepts(word: str) -> frozenset[str]:
    """Concepts of one word; a compound ("Rechnungsnummer") has those of its parts; an unknown word is its own stem."""
    word = word.lower().strip(".:,;()[]{}*/-'\"!?<>")
    if not word or word in STOP:
        return frozenset()
    table, parts = _words()
    if word in table:
        return table[word]
    if (bare := _without_accents(word)) in table:
        return table[bare]
    for ending in ("s", "es", "en", "n", "e"):
        if word.endswith(ending) and word[: -len(ending)] in table and len(word) - len(ending) >= 4:
            return table[word[: -len(ending)]]
    found: set[str] = set()
    for piece in re.split(r"[-./&']", word):
        if piece in table and piece not in STOP:
            found |= table[piece]
    if len(word) >= 7:
        rest = word
        for part, concepts in parts:
            if part in rest:
                found |= concepts
                if len(part) >= 6:
                    rest = rest.replace(part, " ")
    if not found:
        found = set(_kin(word)) or ({stem(word)} if len(word) > 1 else set())
    return frozenset(found)


def _kin(word: str) -> frozenset[str]:
    """Concepts of thesaurus words with the same beginning ("arrive", "arrival"), and of the one that a short form begins ("conf.")."""
    if len(word) < 4 or not word.isalpha():
        return frozenset()
    table = _words()[0]
    kin = {
        cs
        for w, cs in table.items()
        if len(w) >= 5 and w.isalpha() and w[:5] == word[:5] and abs(len(w) - len(word)) <= 3
        if _shared(w, word) >= min(len(w), len(word)) - 1
    }
    if not kin and len(word) <= 5:
        kin = {cs for w, cs in table.items() if w.startswith(word)}
    return next(iter(kin)) if len(kin) == 1 else frozenset()


def _without_accents(word: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c))


def _shared(a: str, b: str) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def stem(word: str) -> str:
    """The word without accents and common endings, cut to eight letters; enough to join singular and plural."""
    plain = _without_accents(word.lower())
    for ending in ("ations", "ation", "ings", "ing", "ies", "ungen", "ung", "ed", "es", "s", "y"):
        if plain.endswith(ending) and len(plain) - len(ending) >= 4:
            plain = plain[: -len(ending)]
            break
    return plain[:8]


@functools.lru_cache(100_000)
def bag(text: str) -> frozenset[str]:
    """All concepts of a text; numbers and stop words are left out."""
    text = _PARTY.sub(r"\1-to", text)
    words = re.split(r"[\s_:|]+|(?<=\w\w)[./](?=\w\w)|(?<=\w)\(|\)(?=\w)", text)
    return frozenset(c for w in words if not re.fullmatch(r"[\d.,/%$€£-]+", w) for c in word_concepts(w))


@functools.lru_cache(50_000)
def stems(text: str) -> frozenset[str]:
    """Stems of the words that are neither stop words nor generic; what two texts share literally."""
    words = (w.strip(".:,;()[]*/-'\"") for w in re.split(r"[\s_:|/]+", text.lower()))
    return frozenset(stem(w) for w in words if len(w) > 1 and w not in STOP and not word_concepts(w) <= _COMMON and not w.isdigit())


def weight(concepts: frozenset[str]) -> float:
    return sum(GENERIC.get(c, 1.0) for c in concepts)


@functools.lru_cache(50_000)
def only_label_words(text: str) -> bool:
    """Whether every word that says something is one of the thesaurus, as in "Invoice Date"."""
    concepts = bag(text)
    return bool(concepts) and concepts <= concept_names()
