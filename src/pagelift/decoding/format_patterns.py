"""Regular expressions of string formats, written so that what matches is valid: dates by the calendar, times by the clock.

They are the forms that documents need, not every form that a standard knows. Formats that are missing here are left to the
compiler of llguidance, or to the validator at the end.
"""

from __future__ import annotations

_YEAR = "[0-9]{4}"
_LEAP = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"
_DATE = f"({_YEAR}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))|{_LEAP}-02-29)"
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
_LABEL = "[a-zA-Z0-9]([a-zA-Z0-9-]{0,40}[a-zA-Z0-9])?"
_BYTE = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_PATH = r"([a-zA-Z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})"
_HOST = rf"//{_LABEL}(\.{_LABEL}){{0,6}}(:[0-9]{{1,4}})?(/{_PATH}{{0,300}})?"
_URI = rf"[a-zA-Z][a-zA-Z0-9+.-]{{0,20}}:({_HOST}|[a-zA-Z0-9]{_PATH}{{0,300}})(\?{_PATH}{{0,300}})?(#{_PATH}{{0,100}})?"
_CLOCK = "T([0-9]{1,4}H([0-9]{1,4}M([0-9]{1,4}S)?)?|[0-9]{1,4}M([0-9]{1,4}S)?|[0-9]{1,4}S)"
_DAYS = "([0-9]{1,4}Y([0-9]{1,4}M([0-9]{1,4}D)?)?|[0-9]{1,4}M([0-9]{1,4}D)?|[0-9]{1,4}D)"
_MAIL = r"[a-zA-Z0-9!#$&'*+/=?^_{|}~-]{1,30}(\.[a-zA-Z0-9!#$&'*+/=?^_{|}~-]{1,30}){0,3}"

FORMAT_PATTERNS: dict[str, str] = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f"{_DATE}T{_TIME}",
    "duration": f"P({_DAYS}({_CLOCK})?|{_CLOCK}|[0-9]{{1,4}}W)",
    "email": rf"{_MAIL}@{_LABEL}(\.{_LABEL}){{1,4}}",
    "hostname": rf"{_LABEL}(\.{_LABEL}){{0,4}}",
    "ipv4": rf"{_BYTE}(\.{_BYTE}){{3}}",
    "uuid": "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
    "uri": _URI,
}
