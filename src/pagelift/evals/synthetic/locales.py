"""Countries: how numbers, amounts, dates, addresses and identifiers are printed there."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

_MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
}
_SHORT_MONTHS = {
    "en": "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec",
    "de": "Jan. Feb. März Apr. Mai Juni Juli Aug. Sep. Okt. Nov. Dez.",
    "fr": "janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc.",
    "es": "ene. feb. mar. abr. may. jun. jul. ago. sep. oct. nov. dic.",
    "it": "gen. feb. mar. apr. mag. giu. lug. ago. set. ott. nov. dic.",
    "nl": "jan. feb. mrt. apr. mei jun. jul. aug. sep. okt. nov. dec.",
}


class Money(NamedTuple):
    """A currency. symbol: as printed before or after an amount. before: whether it stands before it, with or without a space."""

    code: str
    symbol: str
    before: bool
    space: bool


@dataclass(frozen=True, slots=True)
class Locale:
    """One country and language.

    decimal, groups: signs of numbers, groups are the choices for thousands. dates: patterns with {d}, {dd}, {mm}, {mon},
    {month}, {yy}, {yyyy}. taxes: rates in percent. postcode, phone: patterns, # is a digit, @ a capital letter. place: of
    {city}, {code} and {state}. number_first: whether the house number stands before the street. vat: pattern. bank: IBAN
    country and number of characters after the check digits; letters first.
    """

    code: str
    language: str
    decimal: str
    groups: tuple[str, ...]
    money: Money
    dates: tuple[str, ...]
    taxes: tuple[float, ...]
    postcode: str
    place: str
    number_first: bool
    phone: tuple[str, ...]
    vat: str
    bank: tuple[str, int, int]


_EURO_AFTER = Money("EUR", "€", before=False, space=True)
_EURO_BEFORE = Money("EUR", "€", before=True, space=True)
LOCALES: tuple[Locale, ...] = (
    Locale(
        "en-US", "en", ".", (",", ",", ""), Money("USD", "$", before=True, space=False),
        ("{mm}/{dd}/{yyyy}", "{month} {d}, {yyyy}", "{mon} {d}, {yyyy}", "{mm}/{dd}/{yy}", "{yyyy}-{mm}-{dd}"),
        (6.25, 7.0, 8.5, 8.875), "#####", "{city}, {state} {code}", True, ("(###) 555-####", "###-555-####"), "##-#######", ("", 0, 0),
    ),
    Locale(
        "en-GB", "en", ".", (",", ",", ""), Money("GBP", "£", before=True, space=False),
        ("{dd}/{mm}/{yyyy}", "{d} {month} {yyyy}", "{dd} {mon} {yyyy}", "{dd}-{mm}-{yyyy}", "{yyyy}-{mm}-{dd}"),
        (20.0, 5.0), "@@# #@@", "{city} {code}", True, ("0### ### ####", "+44 ### ######"), "GB#########", ("GB", 4, 14),
    ),
    Locale(
        "de-DE", "de", ",", (".", ".", ""), _EURO_AFTER,
        ("{dd}.{mm}.{yyyy}", "{dd}.{mm}.{yyyy}", "{d}. {month} {yyyy}", "{dd}.{mm}.{yy}", "{yyyy}-{mm}-{dd}"),
        (19.0, 7.0), "#####", "{code} {city}", False, ("0### ######", "+49 ### #######"), "DE#########", ("DE", 0, 18),
    ),
    Locale(
        "de-CH", "de", ".", ("'", "'", ""), Money("CHF", "CHF", before=True, space=True),
        ("{dd}.{mm}.{yyyy}", "{d}. {month} {yyyy}", "{dd}.{mm}.{yy}"),
        (8.1, 2.6), "####", "{code} {city}", False, ("0## ### ## ##", "+41 ## ### ## ##"), "CHE-###.###.###", ("CH", 0, 17),
    ),
    Locale(
        "fr-FR", "fr", ",", (" ", " ", ""), _EURO_AFTER,
        ("{dd}/{mm}/{yyyy}", "{d} {month} {yyyy}", "{dd}/{mm}/{yy}", "{dd}-{mm}-{yyyy}"),
        (20.0, 10.0, 5.5), "#####", "{code} {city}", True, ("0# ## ## ## ##", "+33 # ## ## ## ##"), "FR###########", ("FR", 0, 23),
    ),
    Locale(
        "es-ES", "es", ",", (".", ".", ""), _EURO_AFTER,
        ("{dd}/{mm}/{yyyy}", "{d} de {month} de {yyyy}", "{dd}-{mm}-{yyyy}", "{dd}/{mm}/{yy}"),
        (21.0, 10.0), "#####", "{code} {city}", False, ("### ## ## ##", "+34 ### ### ###"), "B########", ("ES", 0, 20),
    ),
    Locale(
        "it-IT", "it", ",", (".", ".", ""), _EURO_AFTER,
        ("{dd}/{mm}/{yyyy}", "{d} {month} {yyyy}", "{dd}-{mm}-{yyyy}", "{dd}.{mm}.{yyyy}"),
        (22.0, 10.0), "#####", "{code} {city}", False, ("0## #######", "+39 0## ######"), "IT###########", ("IT", 1, 22),
    ),
    Locale(
        "nl-NL", "nl", ",", (".", ".", ""), _EURO_BEFORE,
        ("{dd}-{mm}-{yyyy}", "{d} {month} {yyyy}", "{dd}-{mm}-{yy}", "{dd}/{mm}/{yyyy}"),
        (21.0, 9.0), "#### @@", "{code} {city}", False, ("0## ### ####", "+31 ## #######"), "NL#########B##", ("NL", 4, 10),
    ),
)  # fmt: skip


def date_text(day: datetime.date, pattern: str, language: str) -> str:
    """A date as printed by a pattern of `Locale.dates`."""
    month = day.month - 1
    return pattern.format(
        d=day.day,
        dd=f"{day.day:02d}",
        mm=f"{day.month:02d}",
        mon=_SHORT_MONTHS[language].split()[month],
        month=_MONTHS[language].split()[month],
        yy=f"{day.year % 100:02d}",
        yyyy=day.year,
    )


def filled(pattern: str, rng: Random) -> str:
    """A pattern with a digit for every #, the first not 0 where it starts a number, and a capital letter for every @."""
    characters = []
    for index, sign in enumerate(pattern):
        if sign == "#":
            characters.append(str(rng.randint(0 if index else 1, 9)))
        elif sign == "@":
            characters.append(rng.choice("ABCDEFGHJKLMNPRSTUVWXYZ"))
        else:
            characters.append(sign)
    return "".join(characters)


def iban(locale: Locale, rng: Random) -> str:
    """An account number of the country with right check digits (ISO 7064 mod 97-10), without spaces; "" if it has none."""
    country, letters, length = locale.bank
    if not country:
        return ""
    account = filled("@" * letters + "#" * (length), rng)
    digits = "".join(str(int(sign, 36)) for sign in account + country + "00")
    return f"{country}{98 - int(digits) % 97:02d}{account}"
