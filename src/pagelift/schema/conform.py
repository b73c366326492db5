"""From a partial or faulty value to one that the schema admits, or an error: never to an invalid value."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from pagelift.core import ExtractionError, Json, UnfilledValue
from pagelift.schema.coercion import as_json
from pagelift.schema.repair import Repair
from pagelift.schema.shaping import MISSING, Dropped, Leaves, Missing, Shaper, TooMuchToFill
from pagelift.schema.view import Views

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Conformed:
    """data: valid against the effective schema. dropped: what was given but is not in the data as it was given."""

    data: Json
    dropped: tuple[Dropped, ...] = ()


def conform(value: object, schema: Json, views: Views, validator: Any, leaves: Leaves) -> Conformed:
    """`value` completed, ordered and cut down until `validator` accepts it.

    Raises UnfilledValue for required values that are not there and may not be null, ExtractionError when the schema
    has demands that leaving values out cannot meet.
    """
    shaper, shaped = _shaped(value, schema, Shaper(views, leaves), Shaper(views, leaves, everything=False))
    if isinstance(shaped, Missing) or shaper.unfilled:
        missing = shaper.unfilled or [""]
        names = ", ".join(p or "the whole value" for p in missing[:10]) + (f" and {len(missing) - 10} more" if len(missing) > 10 else "")
        raise UnfilledValue(f"no value for {names}, required and not allowed to be null; allow null there or make it optional")
    if validator.is_valid(shaped):
        return Conformed(shaped, tuple(shaper.dropped))
    repair = Repair(shaped, schema, shaper, validator)
    repair.run()
    if not validator.is_valid(repair.data):
        raise ExtractionError("the repaired value is still not valid")
    return Conformed(repair.data, tuple(shaper.dropped))


def _shaped(value: object, schema: Json, *shapers: Shaper) -> tuple[Shaper, Any]:
    """The first of the shapers whose result is not too large, and its result."""
    for shaper in shapers[:-1]:
        try:
            return shaper, shaper.shape(as_json(value, "", shaper.lose), schema)
        except TooMuchToFill as error:
            _log.debug("leaving optional objects out: %s", error)
    return shapers[-1], shapers[-1].shape(as_json(value, "", shapers[-1].lose), schema)


def empty_fault(schema: Json, views: Views, leaves: Leaves) -> str:
    """Why not even a result without any value can be written, "" when it can or when only real values are lacking."""
    shaper = Shaper(views, leaves, everything=False)
    try:
        shaped = shaper.shape(MISSING, schema)
    except TooMuchToFill as error:
        return str(error)
    if shaper.endless and not shaper.forbidden and (isinstance(shaped, Missing) or shaper.unfilled):
        return "the schema requires an object inside itself without end, which no finite value satisfies"
    return ""
