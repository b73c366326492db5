"""Scalars of a true answer as text: what models are taught, measured on and calibrated with."""

from __future__ import annotations

import json

from pagelift.core import Json

MOST_DECIMALS = 6


def spelled(value: Json, printed: str) -> str:
    """A scalar as JSON; a number with as many decimals as it is printed with, as models copy it digit by digit."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        digits = "".join(filter(str.isdigit, printed))
        for decimals in range(MOST_DECIMALS + 1):
            text = f"{value:.{decimals}f}"
            if text.replace(".", "").lstrip("-") == digits and float(text) == value:
                return text
    return json.dumps(value, ensure_ascii=False)
