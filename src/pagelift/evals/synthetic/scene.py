"""What one document has in common throughout: its country, wordings, styles of numbers and dates, and its random numbers."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from functools import cache
from random import Random

from pagelift.core import Json
from pagelift.evals.synthetic.locales import LOCALES, Locale, date_text, filled, iban
from pagelift.evals.synthetic.splits import Split
from pagelift.evals.synthetic.wording import Wording, wording

_SAME_LABEL = {"person_phone": "phone", "person_email": "email", "account_iban": "iban"}
_CAPITALS = "ABCDEFGHJKLMNPRSTUVWXYZ"


@dataclass(frozen=True, slots=True)
class Printed:
    """A value and how it is printed. data: as it belongs in the result. lines: the text, wrapped or not."""

    data: Json
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return " ".join(self.lines)


@dataclass(slots=True)
class Scene:
    """Random choices that hold for a whole document. label_case: how labels are printed. day: what dates are counted from."""

    rng: Random
    split: Split
    locale: Locale
    words: Wording
    date_pattern: str
    group: str
    money_style: str
    label_case: str
    day: datetime.date
    chosen: dict[str, str] = field(default_factory=dict)

    def label(self, concept: str) -> str:
        """The label of a concept, the same wherever the document has it."""
        concept = _SAME_LABEL.get(concept, concept)
        text = self.chosen.get(concept)
        if text is None:
            text = self.rng.choice(self.words.labels[concept])
            if not concept.startswith(("s_", "thanks")):
                text = _cased(text, self.label_case)
            self.chosen[concept] = text
        return text

    def pick(self, pool: str) -> str:
        return self.rng.choice(self.words.pools[pool])

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def word(self, text: str) -> Printed:
        return Printed(text, (text,))

    def date(self, days: int) -> Printed:
        """The date so many days after the document's day."""
        day = self.day + datetime.timedelta(days=days)
        return Printed(day.isoformat(), (date_text(day, self.date_pattern, self.locale.language),))

    def number(self, value: float, digits: int = 0) -> Printed:
        """A number with so many digits after the decimal sign; whole numbers as int."""
        return Printed(value if digits else int(value), (self._number(value, digits),))

    def cents(self, cents: int, currency: bool = False) -> Printed:
        """An amount of money, with the currency where the document's style has it."""
        text = self._number(cents / 100, 2)
        money = self.locale.money
        sign = money.symbol if self.money_style == "symbol" else money.code
        if currency and self.money_style != "plain":
            space = " " if money.space or self.money_style != "symbol" else ""
            before = money.before if self.money_style == "symbol" else self.money_style == "code"
            minus = "-" if cents < 0 else ""
            text = f"{minus}{sign}{space}{text.removeprefix('-')}" if before else f"{text}{space}{sign}"
        return Printed(cents / 100, (text,))

    def _number(self, value: float, digits: int) -> str:
        text = f"{value:,.{digits}f}"
        return text.replace(",", "\0").replace(".", self.locale.decimal).replace("\0", self.group)

    def code(self, prefixes: str = "") -> Printed:
        """A document number, perhaps with one of the prefixes, which are separated by spaces."""
        rng = self.rng
        year = str(self.day.year)
        forms = ("#####", "########", "@@-#####", f"{year}-####", f"{year}/#####", "@####", "###-####", "@@######", "######")
        text = filled(rng.choice(forms), rng)
        if prefixes and rng.random() < 0.4:
            text = (
                f"{rng.choice(prefixes.split())}{rng.choice(('-', '', '/'))}{filled(rng.choice(('#####', '#######', year + '-###')), rng)}"
            )
        return self.word(text)

    def iban(self) -> Printed | None:
        """An IBAN in groups of four or in one piece; None where the country has none."""
        text = iban(self.locale, self.rng)
        if not text:
            return None
        shown = text if self.rng.random() < 0.3 else " ".join(text[at : at + 4] for at in range(0, len(text), 4))
        return Printed(text, (shown,))

    def bic(self) -> Printed:
        country = self.locale.bank[0] or "US"
        return self.word("".join(self.rng.choices(_CAPITALS, k=4)) + country + filled(self.rng.choice(("@#", "@@XXX")), self.rng))

    def phone(self) -> Printed:
        return self.word(filled(self.rng.choice(self.locale.phone), self.rng))


def new_scene(rng: Random, split: Split, language: str | None = None) -> Scene:
    """Draw what holds for a document."""
    locale = rng.choice(_locales(language))
    day = datetime.date(2017, 1, 1) + datetime.timedelta(days=rng.randrange(3650))
    style = rng.choice(("symbol", "symbol", "symbol", "code", "code after", "plain"))
    case = rng.choice(("as is", "as is", "as is", "upper", "title" if locale.language == "en" else "as is"))
    return Scene(rng, split, locale, wording(locale.language, split), rng.choice(locale.dates), rng.choice(locale.groups), style, case, day)


@cache
def _locales(language: str | None) -> tuple[Locale, ...]:
    if language is None:
        return LOCALES
    return tuple(locale for locale in LOCALES if locale.language == language)


def _cased(text: str, case: str) -> str:
    if case == "upper" and len(text) <= 24:
        return text.upper()
    return " ".join(word[:1].upper() + word[1:] if word.islower() else word for word in text.split(" ")) if case == "title" else text
