"""Names of companies, people and places; the names of a split occur in no other."""

from __future__ import annotations

from dataclasses import dataclass

from pagelift.evals.synthetic.locales import filled
from pagelift.evals.synthetic.scene import Printed, Scene
from pagelift.evals.synthetic.splits import share

ROOTS = (
    "Alder", "Bravo", "Castel", "Dorn", "Elm", "Falk", "Grun", "Hollen", "Isar", "Jasper", "Kestrel", "Linden", "Marlo", "Novar",
    "Orion", "Pell", "Quint", "Roven", "Salva", "Tavo", "Umbra", "Verdan", "Walden", "Xenos", "Yarrow", "Zephyr", "Arbor", "Briga",
    "Corvin", "Delta", "Estor", "Fjord", "Galan", "Harbor", "Ibex", "Juno", "Karst", "Lumen", "Mirador", "Nimbus", "Opal", "Prisma",
    "Quarz", "Rondel", "Sirius", "Tramont", "Ursa", "Valdor",
)  # fmt: skip
"""First parts of company names, shared out to the splits in turn."""
_ENDINGS = ("", "a", "is", "ex", "ton", "feld", "mar", "one", "via", "berg", "line", "cor")
_COMPANIES = ("{base} {trade} {legal}", "{base} {legal}", "{base} & {last} {legal}", "{trade} {base} {legal}", "{base} {trade}")
_STATES = ("CA", "NY", "TX", "OH", "WA", "IL", "MA", "GA")


_SYLLABLES = tuple(consonant + vowel for consonant in "bdfgklmnprstvwz" for vowel in "aeiou")
_MIDDLES = ("", "", "la", "ri", "no", "ve", "ma", "sto", "ndi", "lka", "rte", "mbo", "ssi", "ru")
_CODAS = ("n", "r", "l", "nd", "rt", "s", "ska", "ll", "ck", "ni", "tz", "m")
_STREETS = {"en": "{} Street", "de": "{}weg", "fr": "rue {}", "es": "Calle {}", "it": "Via {}", "nl": "{}straat"}


@dataclass(frozen=True, slots=True)
class Party:
    """Someone with an address. address: street and place, one a line. short: the name without its usual parts."""

    name: Printed
    address: Printed
    short: str


def invented(scene: Scene) -> str:
    """A word that means nothing, so that names cannot be known by heart. Its first two letters belong to one split only."""
    rng = scene.rng
    word = rng.choice(share(_SYLLABLES, scene.split)) + rng.choice(_MIDDLES) + rng.choice(_SYLLABLES) + rng.choice(_CODAS)
    return word.capitalize()


def last_name(scene: Scene) -> str:
    return invented(scene) if scene.chance(0.5) else scene.pick("last")


def city(scene: Scene) -> str:
    return invented(scene) if scene.chance(0.4) else scene.pick("city")


def product(scene: Scene) -> str:
    """Something to sell, perhaps with a brand."""
    name = scene.pick("noun")
    if scene.chance(0.35):
        name = f"{name} {invented(scene)}" if scene.chance(0.6) else f"{invented(scene)} {name}"
    return name[:1].upper() + name[1:]


def company(scene: Scene, bank: bool = False) -> Party:
    """A company: an invented name, a trade and a legal form; or a bank."""
    rng = scene.rng
    base = invented(scene) if scene.chance(0.5) else rng.choice(share(ROOTS, scene.split)) + rng.choice(_ENDINGS)
    patterns = ("{base} Bank", "Bank {base}") if bank else _COMPANIES
    name = rng.choice(patterns).format(base=base, trade=scene.pick("trade"), legal=scene.pick("legal"), last=last_name(scene))
    return Party(scene.word(name), address(scene), base)


def person(scene: Scene) -> Party:
    """A person at home."""
    name = f"{scene.pick('first')} {last_name(scene)}"
    return Party(scene.word(name), address(scene), name)


def address(scene: Scene) -> Printed:
    """Street and place, two lines."""
    locale, rng = scene.locale, scene.rng
    number = str(rng.randint(1, 180))
    street = _STREETS[locale.language].format(invented(scene)) if scene.chance(0.4) else scene.pick("street")
    if locale.number_first:
        street = f"{number}{',' if locale.language == 'fr' and rng.random() < 0.4 else ''} {street}"
    else:
        street = f"{street}{',' if locale.language in ('es', 'it') else ''} {number}"
    code = filled(locale.postcode, rng)
    place = locale.place.format(city=city(scene), code=code, state=rng.choice(_STATES))
    return Printed(f"{street}, {place}", (street, place))


def email(scene: Scene, party: Party) -> Printed:
    """An address at a domain that is reserved for examples."""
    name = "".join(sign for sign in party.short.casefold() if sign.isascii() and sign.isalnum())
    if " " in party.short:
        return scene.word(f"{name}@mail.example")
    return scene.word(f"{scene.rng.choice(('info', 'office', 'mail', 'contact'))}@{name}.example")
