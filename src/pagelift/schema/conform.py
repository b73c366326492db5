"""From a partial or faulty value to one that the schema admits, or an error: never to an invalid value."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from pagelift.core import ExtractionError, Json, UnfilledValue
from pagelift.schema.coercion import as_json
from pagelift.schema.repair import Repair
from pagelift.schema.shaping import MISSING, Dropped, Leaves, Missing, Shaper, TooMuchToFill, has_content
from pagelift.schema.view import Views

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Conformed:
    """data: valid against the effective schema. dropped: what was given but is not in the data as it was given."""

    data: Json
    dropped: tuple[Dropped, ...] = ()


def conform(value: object, schema: Json, views: Views, validator: Any, leaves: Leaves, everything: bool = True) -> Conformed:
    """`value` completed, ordered and cut down until `validator` accepts it.

    Raises UnfilledValue for required values that are not there and may not be null, ExtractionError when the schema
    has demands that leaving values out cannot meet.
    """
    lost: list[Dropped] = []
    given = as_json(value, "", lambda pointer, old, reason: lost.append(Dropped(pointer, old, reason)))
    try:
        shapers = [Shaper(views, leaves, everything=e) for e in ((True, False) if everything else (False,))]
        data, dropped = _complete(given, schema, shapers, validator)
    except ExtractionError:
        if not validator.is_valid(given):
            raise
        data, dropped = given, []
    if any(has_content(d.value) for d in dropped) and validator.is_valid(given):
        data, dropped = given, []  # a valid value is never cut down for the sake of completeness
    return Conformed(data, (*lost, *dropped))


def _complete(given: Json, schema: Json, shapers: list[Shaper], validator: Any) -> tuple[Json, list[Dropped]]:
    shaper, shaped = _shaped(given, schema, shapers)
    if isinstance(shaped, Missing) or shaper.unfilled:
        missing = [p or "the whole value" for p in shaper.unfilled or [""]]
        names = ", ".join(missing[:10]) + (f" and {len(missing) - 10} more" if len(missing) > 10 else "")
        raise UnfilledValue(f"no value for {names}, required and not allowed to be null; allow null there or make it optional")
    if validator.is_valid(shaped):
        return shaped, shaper.dropped
    repair = Repair(shaped, schema, shaper, validator)
    repair.run()
    return repair.data, shaper.dropped


def _shaped(given: Json, schema: Json, shapers: list[Shaper]) -> tuple[Shaper, Any]:
    """The first of the shapers whose result is not too large, and its result."""
    for shaper in shapers[:-1]:
        try:
            return shaper, shaper.shape(given, schema)
        except TooMuchToFill as error:
            _log.debug("leaving optional objects out: %s", error)
    return shapers[-1], shapers[-1].shape(given, schema)


def writes_everything(schema: Json, views: Views, leaves: Leaves) -> bool:
    """Whether an empty result with all optional objects written out stays within the limits."""
    try:
        Shaper(views, leaves).shape(MISSING, schema)
    except TooMuchToFill:
        return False
    return True


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
