"""Numbers within bounds, as regular expressions."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagelift.decoding.number_patterns import NumberRange, number_patterns, shows_in_digits

DECIMALS = st.decimals(min_value=-2000, max_value=2000, places=3, allow_nan=False) | st.integers(-200, 200).map(Decimal)
PRINTED = st.tuples(DECIMALS, st.integers(0, 3)).map(lambda p: printed(*p))


def printed(value: Decimal, zeros: int) -> str:
    text = format(value.normalize(), "f")
    if text in ("-0", ""):
        text = "0"
    return text + ("" if not zeros else ("0" if "." in text else ".") + "0" * zeros)


def matches(patterns: list[str] | None, text: str) -> bool:
    return patterns is not None and all(re.fullmatch(p, text) for p in patterns)


@given(PRINTED, st.none() | DECIMALS, st.none() | DECIMALS, st.booleans(), st.booleans())
def test_exactly_the_numbers_between_the_bounds(text: str, low: Decimal | None, high: Decimal | None, a: bool, b: bool) -> None:
    value = Decimal(text)
    inside = (low is None or value > low or (value == low and not a)) and (high is None or value < high or (value == high and not b))
    assert matches(number_patterns(NumberRange(low, high, a, b), whole=False), text) == inside


@given(st.integers(-3000, 3000), st.none() | DECIMALS, st.none() | DECIMALS, st.booleans(), st.booleans())
def test_integers_between_the_bounds(value: int, low: Decimal | None, high: Decimal | None, a: bool, b: bool) -> None:
    inside = (low is None or value > low or (value == low and not a)) and (high is None or value < high or (value == high and not b))
    assert matches(number_patterns(NumberRange(low, high, a, b), whole=True), str(value)) == inside


@given(PRINTED, st.sampled_from("1 2 5 10 25 100 20 0.01 0.25 0.5 0.05 2.5 0.125 40 0.2 12.5 0.001".split()))
def test_multiples_by_their_last_digits(text: str, step: str) -> None:
    assert shows_in_digits(Decimal(step))
    assert matches(number_patterns(NumberRange(), whole=False, step=Decimal(step)), text) == (Decimal(text) % Decimal(step) == 0)


@pytest.mark.parametrize("step", ["3", "7", "0.3", "1e-300", "0", "1e999"])
def test_steps_that_do_not_show(step: str) -> None:
    assert not shows_in_digits(Decimal(step))


@pytest.mark.parametrize("text", ["-0", "-0.00", "007", "1.", ".5", "1e5", "+1", "9" * 25, "0." + "1" * 17, ""])
def test_what_is_no_number_here(text: str) -> None:
    assert not matches(number_patterns(NumberRange(), whole=False), text)


@pytest.mark.parametrize("text", ["27.80", "0.00", "-12.50", "1234567890123456.10", "-0.05"])
def test_printed_digits_stay(text: str) -> None:
    assert matches(number_patterns(NumberRange(), whole=False), text)


def test_bounds_that_leave_nothing() -> None:
    assert number_patterns(NumberRange(Decimal("1.2"), Decimal("1.8")), whole=True) is None
    assert number_patterns(NumberRange(Decimal(2), Decimal(2), low_open=True), whole=False) is None


def test_bounds_of_any_size() -> None:
    wide = number_patterns(NumberRange(Decimal("-1.7e308"), Decimal("1e5000")), whole=False)
    assert matches(wide, "27.80")
    large = number_patterns(NumberRange(Decimal("1e30"), None), whole=False)
    assert matches(large, "1" + "0" * 30)
    assert not matches(large, "27.80")
