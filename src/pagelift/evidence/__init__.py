"""Values as they are printed: numbers and dates by locale."""

from pagelift.evidence.dates import DateSpan, Order, find_dates, infer_order, parse_date, stated_order
from pagelift.evidence.numbers import CURRENCY_CODES, CURRENCY_SYMBOLS, Decimalmark, Number, infer_mark, parse_number

__all__ = [
    "CURRENCY_CODES",
    "CURRENCY_SYMBOLS",
    "DateSpan",
    "Decimalmark",
    "Number",
    "Order",
    "find_dates",
    "infer_mark",
    "infer_order",
    "parse_date",
    "parse_number",
    "stated_order",
]
