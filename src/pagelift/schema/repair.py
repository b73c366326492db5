"""Meets the demands that go beyond one value's shape (oneOf, not, if, uniqueItems, counts, dependencies) by leaving values out.

Every step must lower the number of complaints of the validator, so the repair ends. Small losses are tried before large ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import jsonschema_rs

from pagelift.core import ExtractionError, Json
from pagelift.schema import keywords as kw
from pagelift.schema.coercion import type_name
from pagelift.schema.shaping import MISSING, Missing, Shaper, entry_schema, has_content
from pagelift.schema.view import admitted_types

Path: TypeAlias = tuple[str | int, ...]
Step: TypeAlias = list[tuple[Path, Any]]
"""Values to put at paths, in order; MISSING takes the key or entry away."""

MAX_TRIES = 200
"""Single values that are tried one by one before a larger part is given up."""


MAX_OPTIONS = 20
"""Options of one anyOf whose complaints are looked at."""


@dataclass(slots=True)
class Repair:
    """Changes `data` until the validator accepts it. Losses are recorded with the shaper."""

    data: Json
    schema: Json
    shaper: Shaper
    validator: Any

    def run(self) -> None:
        """Raises ExtractionError, naming keyword and place, when no step helps any more."""
        errors = list(self.validator.iter_errors(self.data))
        while errors:
            errors.sort(key=lambda e: -len(e.instance_path))
            for error in errors:
                left = self._try_all(error, len(errors))
                if left is not None:
                    errors = left
                    break
            else:
                where = kw.join("", *errors[0].instance_path) or "the whole value"
                raise ExtractionError(
                    f"no valid result: {failed_keyword(errors[0])} at {where} cannot be met by leaving values out: {errors[0].message}"
                )

    def _try_all(self, error: Any, count: int) -> list[Any] | None:
        """The complaints that are left after the first step that lowers their number, None when no step does."""
        path: Path = tuple(error.instance_path)
        for step in self._steps(error, path):
            data = self.data
            for place, value in step:
                data = replaced(data, place, value)
            if isinstance(data, Missing):
                continue
            left = list(self.validator.iter_errors(data))
            if len(left) < count:
                self._record(step, f"{failed_keyword(error)}: {error.message}"[:300])
                self.data = data
                return left
        return None

    def _record(self, step: Step, reason: str) -> None:
        data = self.data
        for place, value in step:
            old = lookup(data, place)
            for path, lost in _losses(old, value, place):
                self.shaper.lose(kw.join("", *path), lost, reason)
            data = replaced(data, place, value)

    def _steps(self, error: Any, path: Path) -> Iterator[Step]:
        yield from self._keyword_steps(error, path)
        yield from self._branch_steps(error)
        while True:
            yield from self._local_steps(path)
            if not path:
                return
            yield [(path, MISSING)]
            path = path[:-1]

    def _branch_steps(self, error: Any) -> Iterator[Step]:
        """For anyOf and oneOf: meet all complaints of one option at once, the option with the fewest complaints first."""
        options = [list(branch) for branch in error.kind.as_dict().get("context", ())]
        for complaints in sorted(options, key=len)[:MAX_OPTIONS]:
            steps = [next(self._keyword_steps(c, tuple(c.instance_path)), [(tuple(c.instance_path), None)]) for c in complaints]
            # later entries first, so that taking one away does not move the others
            yield sorted((change for step in steps for change in step), key=lambda change: str(change[0]), reverse=True)

    def _keyword_steps(self, error: Any, path: Path) -> Iterator[Step]:
        """What the failed keyword itself suggests."""
        value = lookup(self.data, path)
        detail = error.kind.as_dict()
        if isinstance(value, dict):
            named = detail.get("error")
            if named is not None and named.instance in value:
                yield [((*path, named.instance), MISSING)]
            unexpected = [n for n in detail.get("unexpected", ()) if n in value]
            if unexpected:
                yield [((*path, n), MISSING) for n in unexpected]
            name = detail.get("property")
            if isinstance(name, str) and name not in value:
                yield [((*path, name), self._empty((*path, name)))]
                yield [((*path, name), None)]
            limit = detail.get("limit")
            if failed_keyword(error) == "maxProperties" and isinstance(limit, int | float):
                order = [n for n in reversed(value) if not has_content(value[n])] + [n for n in reversed(value) if has_content(value[n])]
                optional = [n for n in order if n not in self._required(path)]
                yield [((*path, n), MISSING) for n in optional[: len(value) - int(limit)]]
        elif isinstance(value, list):
            twice = [i for i, entry in enumerate(value) if any(_equal(entry, other) for other in value[:i])]
            if twice:
                yield [((*path, i), MISSING) for i in reversed(twice)]
            yield [((*path, i), MISSING) for i in reversed(range(len(value))) if not has_content(value[i])]

    def _local_steps(self, path: Path) -> Iterator[Step]:
        """Losses inside the value at `path`, small ones first, up to giving it up as a whole."""
        value = lookup(self.data, path)
        if isinstance(value, dict):
            required = self._required(path)
            hollow = [n for n in value if n not in required and not has_content(value[n])]
            yield [((*path, n), MISSING) for n in hollow]
            yield from ([((*path, n), MISSING)] for n in hollow[:MAX_TRIES])
            yield from ([((*path, n), MISSING) for n in hollow if n != keep] for keep in hollow[:MAX_TRIES])
        yield from self._other_ways(path, value, value)
        if isinstance(value, dict | list):
            places = list(leaves(value, path))
            yield from ([(place, None)] for place in places[:MAX_TRIES])
            if isinstance(value, dict):
                yield from ([((*path, n), MISSING)] for n in list(value)[:MAX_TRIES])
            else:
                yield from ([((*path, i), MISSING)] for i in range(min(len(value), MAX_TRIES)))
            yield [(place, None) for place in places]
        yield from self._other_ways(path, value, MISSING)
        yield [(path, None)]
        empty = self._empty(path)
        if not isinstance(empty, Missing):
            yield [(path, empty)]
        yield [(path, [])]
        yield [(path, {})]

    def _other_ways(self, path: Path, value: Json, given: Any) -> Iterator[Step]:
        """`given` (the value at `path`, or MISSING) read as each of the alternatives that the schema has for it."""
        if not isinstance(value, dict | list):
            return
        view = self.shaper.views.flat(self.schema_at(path))
        ways = self.shaper.views.alternatives(view)
        for way in ways[:MAX_TRIES] if len(ways) > 1 else ():
            fitted = self._quietly(given, way)
            if isinstance(fitted, Missing):
                continue
            yield [(path, fitted)]
            if isinstance(fitted, dict):
                yield [(path, {n: v for n, v in fitted.items() if n in way.get("required", ()) or has_content(v)})]

    def _empty(self, path: Path) -> Any:
        return self._quietly(MISSING, self.schema_at(path))

    def _quietly(self, value: Any, schema: Json) -> Any:
        """Shape without leaving a trace; MISSING when something required cannot be filled."""
        before = len(self.shaper.dropped), len(self.shaper.unfilled)
        fitted = self.shaper.shape(value, schema)
        failed = len(self.shaper.unfilled) > before[1]
        del self.shaper.dropped[before[0] :], self.shaper.unfilled[before[1] :]
        return MISSING if failed else fitted

    def _required(self, path: Path) -> set[str]:
        way = self._way(self.schema_at(path), lookup(self.data, path))
        return set(way.get("required", ()))

    def schema_at(self, path: Path) -> Json:
        """The schema of the value at `path`, by the alternatives that fit the data around it best."""
        schema, value = self.schema, self.data
        for token in path:
            way = self._way(schema, value)
            schema = self.shaper.member(way, token) if isinstance(token, str) else entry_schema(way, token)
            value = lookup(value, (token,))
        return schema

    def _way(self, schema: Json, value: Json) -> dict[str, Json]:
        ways = self.shaper.views.alternatives(self.shaper.views.flat(schema))
        fitting = [way for way in ways if type_name(value) in (admitted_types(way) or kw.ALL_TYPES)]
        return self.shaper.best(fitting, value) if fitting else {}


def failed_keyword(error: Any) -> str:
    """The keyword of a complaint, "false" for a schema that is `false`."""
    if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.FalseSchema):
        return "false"
    return next((token for token in reversed(error.schema_path) if isinstance(token, str)), "false")


def _equal(a: Json, b: Json) -> bool:
    return type_name(a) == type_name(b) and bool(a == b)


def lookup(data: Any, path: Path) -> Any:
    """The value at `path`, MISSING when there is none."""
    for token in path:
        inside = token in data if isinstance(data, dict) else isinstance(data, list) and isinstance(token, int) and token < len(data)
        if not inside:
            return MISSING
        data = data[token]
    return data


def replaced(data: Any, path: Path, value: Any) -> Any:
    """`data` with another value at `path`, or without that key or entry for MISSING; `data` itself is not changed."""
    if not path:
        return value
    token, rest = path[0], path[1:]
    if isinstance(data, dict) and isinstance(token, str):
        inner = replaced(data.get(token, MISSING), rest, value)
        if isinstance(inner, Missing):
            return {k: v for k, v in data.items() if k != token}
        return {**data, token: inner}
    if isinstance(data, list) and isinstance(token, int) and token < len(data):
        inner = replaced(data[token], rest, value)
        return [*data[:token], *([] if isinstance(inner, Missing) else [inner]), *data[token + 1 :]]
    return data


def leaves(value: Json, path: Path = ()) -> Iterator[Path]:
    """The paths of all values that are neither null nor containers."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, (*path, name))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from leaves(inner, (*path, i))
    elif value is not None:
        yield path


def _losses(old: Any, new: Any, path: Path) -> Iterator[tuple[Path, Json]]:
    """What of `old` is not in `new` any more."""
    if isinstance(old, Missing) or not has_content(old):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for name, inner in old.items():
            yield from _losses(inner, new.get(name, MISSING), (*path, name))
    elif isinstance(old, list) and isinstance(new, list) and len(new) >= len(old):
        for i, inner in enumerate(old):
            yield from _losses(inner, new[i], (*path, i))
    elif old != new:
        yield path, old
