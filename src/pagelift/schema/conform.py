"""From a partial or faulty value to one that the schema admits, or an error: never to an invalid value."""

from __future__ import annotations

import json
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
    """`value` completed, ordered and cut down until `validator` accepts it; conforming the result again changes nothing.

    A value that is valid already loses nothing, even where that means that it cannot be completed.

    Raises UnfilledValue for required values that are not there and may not be null, ExtractionError when the schema
    has demands that leaving values out cannot meet.
    """
    lost: list[Dropped] = []
    given = as_json(value, "", lambda pointer, old, reason: lost.append(Dropped(pointer, old, reason)))
    completer = _Completer(schema, views, validator, leaves, everything)
    if validator.is_valid(given):
        return Conformed(completer.settle(given), tuple(lost))
    data, dropped = completer.complete(given)
    return Conformed(completer.settle(data), (*lost, *dropped))


@dataclass(frozen=True, slots=True)
class _Completer:
    schema: Json
    views: Views
    validator: Any
    leaves: Leaves
    everything: bool

    def complete(self, given: Json) -> tuple[Json, list[Dropped]]:
        """A valid value, and what was given up for it."""
        shaper, shaped = self._shaped(given)
        if isinstance(shaped, Missing) or shaper.unfilled:
            missing = [p or "the whole value" for p in shaper.unfilled or [""]]
            names = ", ".join(missing[:10]) + (f" and {len(missing) - 10} more" if len(missing) > 10 else "")
            raise UnfilledValue(f"no value for {names}, required and not allowed to be null; allow null there or make it optional")
        if self.validator.is_valid(shaped):
            return shaped, shaper.dropped
        repair = Repair(shaped, self.schema, shaper, self.validator)
        repair.run()
        return repair.data, shaper.dropped

    def settle(self, valid: Json) -> Json:
        """A valid value with what is missing added, unless that would cost content or come out differently the next time."""
        done = self._without_loss(valid)
        if isinstance(done, Missing) or _identical(done, valid) or not _identical(done, self._without_loss(done)):
            return valid
        return done

    def _without_loss(self, valid: Json) -> Json | Missing:
        try:
            data, dropped = self.complete(valid)
        except ExtractionError:
            return MISSING
        return MISSING if any(has_content(d.value) for d in dropped) else data

    def _shaped(self, given: Json) -> tuple[Shaper, Any]:
        """The shaped value, with missing optional objects written out unless the result would be too large."""
        if self.everything:
            shaper = Shaper(self.views, self.leaves)
            try:
                return shaper, shaper.shape(given, self.schema)
            except TooMuchToFill as error:
                _log.debug("leaving optional objects out: %s", error)
        shaper = Shaper(self.views, self.leaves, everything=False)
        return shaper, shaper.shape(given, self.schema)


def _identical(a: Json | Missing, b: Json | Missing) -> bool:
    """The same JSON text, order of keys included."""
    return not isinstance(a, Missing) and not isinstance(b, Missing) and json.dumps(a) == json.dumps(b)


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
