"""Values as they are printed: numbers and dates by locale."""

from pagelift.evidence.dates import DateSpan, find_dates, infer_order, parse_date, stated_order
from pagelift.evidence.numbers import CURRENCY_CODES, CURRENCY_SYMBOLS, Number, infer_mark, parse_number

__all__ = [
    "CURRENCY_CODES",
    "CURRENCY_SYMBOLS",
    "DateSpan",
    "Number",
    "find_dates",
    "infer_mark",
    "infer_order",
    "parse_date",
    "parse_number",
    "stated_order",
]
