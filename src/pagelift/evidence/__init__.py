"""Values as they are printed: numbers and dates by locale, and where on the pages they stand."""

from pagelift.evidence.align import align
from pagelift.evidence.dates import DateSpan, Order, find_dates, find_open_ranges, infer_order, parse_date, stated_order
from pagelift.evidence.numbers import CURRENCY_CODES, CURRENCY_SYMBOLS, Decimalmark, Number, drop_footnote_marks, infer_mark, parse_number
from pagelift.evidence.places import Place

__all__ = [
    "CURRENCY_CODES",
    "CURRENCY_SYMBOLS",
    "DateSpan",
    "Decimalmark",
    "Number",
    "Order",
    "Place",
    "align",
    "drop_footnote_marks",
    "find_dates",
    "find_open_ranges",
    "infer_mark",
    "infer_order",
    "parse_date",
    "parse_number",
    "stated_order",
]
