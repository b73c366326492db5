"""Regular expressions of the JSON numbers within bounds. Digits stay as printed: trailing zeros count as nothing.

Each bound becomes an expression of its own; a number has to match all of them and the shape, which limits the count of digits
so that no answer can run on inside a number. There is no exponent and no minus zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal

MAX_WHOLE = 24
"""Digits before the point, unless a bound is larger."""
MAX_FRACTION = 16
"""Digits after the point."""
MAX_BOUND = Decimal(10) ** 400
_MAX_ENDINGS = 200

_ANY_FRACTION = r"(\.[0-9]+)?"
_ANY = r"[0-9]+(\.[0-9]+)?"
_NOT_ZERO = r"(0\.0*[1-9][0-9]*|[1-9][0-9]*(\.[0-9]+)?)"


@dataclass(frozen=True, slots=True)
class NumberRange:
    """Bounds of a number; None where there is none. low_open, high_open: the bound itself is outside."""

    low: Decimal | None = None
    high: Decimal | None = None
    low_open: bool = False
    high_open: bool = False

    @property
    def empty(self) -> bool:
        if self.low is None or self.high is None:
            return False
        return self.low > self.high or (self.low == self.high and (self.low_open or self.high_open))


def number_patterns(bounds: NumberRange, whole: bool, step: Decimal | None = None) -> list[str] | None:
    """Expressions that a JSON number must all match, in full, to lie within `bounds`; None when no number does.

    whole: integers only. step: the number must be a multiple of it, as far as that shows in the last digits (10, 0.01, 0.25);
    other steps are left out and have to be checked afterwards (`shows_in_digits`).
    """
    bounds = _whole(bounds) if whole else bounds
    if bounds.empty:
        return None
    width = max([MAX_WHOLE, *(len(_digits(b)[0]) + 1 for b in (bounds.low, bounds.high) if b is not None and abs(b) < MAX_BOUND)])
    integer = rf"(0|[1-9][0-9]{{0,{width - 1}}})"
    fraction = "" if whole else rf"(\.[0-9]{{1,{MAX_FRACTION}}})?"
    negative = rf"[1-9][0-9]{{0,{width - 1}}}{fraction}" + (
        "" if whole else rf"|0\.0{{0,{MAX_FRACTION - 1}}}[1-9][0-9]{{0,{MAX_FRACTION}}}"
    )
    patterns = [rf"{integer}{fraction}|-({negative})"]
    if bounds.low is not None and bounds.low > -MAX_BOUND:
        patterns.append(_at_least(bounds.low, bounds.low_open))
    if bounds.high is not None and bounds.high < MAX_BOUND:
        patterns.append(_at_most(bounds.high, bounds.high_open))
    if step is not None and shows_in_digits(step):
        patterns.append(_multiples(step))
    return patterns


def _whole(bounds: NumberRange) -> NumberRange:
    """The same integers, with closed integer bounds."""
    low, high = bounds.low, bounds.high
    if low is not None and abs(low) < MAX_BOUND:
        low = Decimal(math.floor(low) + 1 if bounds.low_open else math.ceil(low))
    if high is not None and abs(high) < MAX_BOUND:
        high = Decimal(math.ceil(high) - 1 if bounds.high_open else math.floor(high))
    return replace(bounds, low=low, high=high, low_open=False, high_open=False)


def _digits(value: Decimal) -> tuple[str, str]:
    """The digits of |value| before and after the point, no zeros at the end of the fraction."""
    whole, _, fraction = format(abs(value), "f").partition(".")
    return whole.lstrip("0") or "0", fraction.rstrip("0")


def _at_least(bound: Decimal, is_open: bool) -> str:
    if bound > 0:
        return _from(bound, is_open)
    if bound == 0:
        return _NOT_ZERO if is_open else _ANY
    return rf"{_ANY}|-({_up_to(bound, is_open)})"


def _at_most(bound: Decimal, is_open: bool) -> str:
    if bound < 0:
        return f"-({_from(bound, is_open)})"
    if bound == 0:
        return f"-{_ANY}" if is_open else rf"-{_ANY}|0(\.0+)?"
    return rf"-{_ANY}|{_up_to(bound, is_open)}"


def _from(bound: Decimal, is_open: bool) -> str:
    """Numbers without a sign that are at least |bound|, which is not zero."""
    whole, fraction = _digits(bound)
    ways = [rf"[1-9][0-9]{{{len(whole)},}}{_ANY_FRACTION}"]
    for i, digit in enumerate(whole):
        if digit < "9":
            ways.append(rf"{whole[:i]}[{int(digit) + 1}-9][0-9]{{{len(whole) - i - 1}}}{_ANY_FRACTION}")
    if not fraction:
        ways.append(whole + (r"\.[0-9]*[1-9][0-9]*" if is_open else _ANY_FRACTION))
        return "|".join(ways)
    ways += [rf"{whole}\.{fraction[:i]}[{int(d) + 1}-9][0-9]*" for i, d in enumerate(fraction) if d < "9"]
    ways.append(rf"{whole}\.{fraction}" + ("[0-9]*[1-9][0-9]*" if is_open else "[0-9]*"))
    return "|".join(ways)


def _up_to(bound: Decimal, is_open: bool) -> str:
    """Numbers without a sign that are at most |bound|, which is not zero."""
    whole, fraction = _digits(bound)
    ways = [rf"(0|[1-9][0-9]{{0,{len(whole) - 2}}}){_ANY_FRACTION}"] if len(whole) > 1 else []
    for i, digit in enumerate(whole):
        least = 1 if i == 0 and len(whole) > 1 else 0
        if int(digit) > least:
            ways.append(rf"{whole[:i]}[{least}-{int(digit) - 1}][0-9]{{{len(whole) - i - 1}}}{_ANY_FRACTION}")
    if not fraction:
        return "|".join(ways if is_open else [*ways, rf"{whole}(\.0+)?"])
    ways.append(whole)
    ways += [rf"{whole}\.{fraction[:i]}[0-{int(d) - 1}][0-9]*" for i, d in enumerate(fraction) if d > "0"]
    ways += [rf"{whole}\.{fraction[:i]}" for i in range(1, len(fraction))]
    return "|".join(ways if is_open else [*ways, rf"{whole}\.{fraction}0*"])


def shows_in_digits(step: Decimal) -> bool:
    """Whether multiples of `step` can be told by their last digits."""
    return step > 0 and step < MAX_BOUND and step.adjusted() > -MAX_FRACTION and len(_endings(step)) > 0


def _endings(step: Decimal) -> list[str]:
    """The last digits of the multiples of `step` without its trailing zeros and its point; [""] when any digits will do."""
    unit = int(step.normalize().scaleb(-_exponent(step)))
    for count in range(7):
        if 10**count % unit == 0:
            return [str(r).zfill(count) if count else "" for r in range(0, 10**count, unit)] if 10**count // unit <= _MAX_ENDINGS else []
    return []


def _exponent(step: Decimal) -> int:
    exponent = step.normalize().as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


def _multiples(step: Decimal) -> str:
    exponent = _exponent(step)
    places = max(0, -exponent)
    ways = []
    for digits in _endings(step):
        ending = digits + "0" * max(0, exponent)
        whole, fixed = (ending[:-places], ending[-places:]) if places else (ending, "")
        free = places - len(fixed)
        ways.append(_whole_ending(whole) + _fraction(free, fixed.rstrip("0")))
    return f"-?({'|'.join(ways)})"


def _whole_ending(ending: str) -> str:
    return f"([0-9]*{ending}|{ending.lstrip('0') or '0'})" if ending else "[0-9]+"


def _fraction(free: int, fixed: str) -> str:
    """A fraction of `free` arbitrary digits, then `fixed`, then zeros."""
    if fixed:
        return rf"\.[0-9]{{{free}}}{fixed}0*"
    return rf"(\.[0-9]{{1,{free}}}0*)?" if free else r"(\.0+)?"
