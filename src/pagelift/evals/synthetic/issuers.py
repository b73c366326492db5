"""Names of companies, people and places; the names of a split occur in no other."""

from __future__ import annotations

from dataclasses import dataclass

from pagelift.evals.synthetic.locales import filled
from pagelift.evals.synthetic.scene import Printed, Scene
from pagelift.evals.synthetic.splits import Split, share

ROOTS = (
    "Alder", "Bravo", "Castel", "Dorn", "Elm", "Falk", "Grun", "Hollen", "Isar", "Jasper", "Kestrel", "Linden", "Marlo", "Novar",
    "Orion", "Pell", "Quint", "Roven", "Salva", "Tavo", "Umbra", "Verdan", "Walden", "Xenos", "Yarrow", "Zephyr", "Arbor", "Briga",
    "Corvin", "Delta", "Estor", "Fjord", "Galan", "Harbor", "Ibex", "Juno", "Karst", "Lumen", "Mirador", "Nimbus", "Opal", "Prisma",
    "Quarz", "Rondel", "Sirius", "Tramont", "Ursa", "Valdor",
)  # fmt: skip
"""First parts of company names, shared out to the splits in turn."""
_ENDINGS = ("", "a", "is", "ex", "ton", "feld", "mar", "one", "via", "berg", "line", "cor")
_STATES = ("CA", "NY", "TX", "OH", "WA", "IL", "MA", "GA")


@dataclass(frozen=True, slots=True)
class Party:
    """Someone with an address. lines: street and place, one a line."""

    name: Printed
    address: Printed
    short: str


def company(scene: Scene) -> Party:
    """A company: an invented name, a trade and a legal form."""
    rng = scene.rng
    base = rng.choice(_roots(scene.split)) + rng.choice(_ENDINGS)
    pattern = rng.choice(("{base} {trade} {legal}", "{base} {legal}", "{base} & {last} {legal}", "{trade} {base} {legal}", "{base} {trade}"))
    name = pattern.format(base=base, trade=scene.pick("trade"), legal=scene.pick("legal"), last=scene.pick("last"))
    return Party(scene.word(name), address(scene), base)


def person(scene: Scene) -> Party:
    """A person at home."""
    name = f"{scene.pick('first')} {scene.pick('last')}"
    return Party(scene.word(name), address(scene), name)


def address(scene: Scene) -> Printed:
    """Street and place, two lines."""
    locale, rng = scene.locale, scene.rng
    number = str(rng.randint(1, 180))
    street = scene.pick("street")
    if locale.number_first:
        street = f"{number}{',' if locale.language == 'fr' and rng.random() < 0.4 else ''} {street}"
    else:
        street = f"{street}{',' if locale.language in ('es', 'it') else ''} {number}"
    code = filled(locale.postcode, rng)
    place = locale.place.format(city=scene.pick("city"), code=code, state=rng.choice(_STATES))
    return Printed(f"{street}, {place}", (street, place))


def email(scene: Scene, party: Party) -> Printed:
    """An address at a domain that is reserved for examples."""
    mailbox = scene.rng.choice(("info", "office", "mail", "contact"))
    name = "".join(sign for sign in party.short.casefold() if sign.isascii() and sign.isalnum())
    return scene.word(f"{mailbox}@{name}.example" if party.short.isascii() and " " not in party.short else f"{name}@mail.example")


def _roots(split: Split) -> tuple[str, ...]:
    return share(ROOTS, split)
