"""The schema that results are checked against: the user's, with local references only and null let in where it is allowed.

Null is added where a value stands (a property, an entry, the root), never inside `not`, `if`, `contains` and
`propertyNames`, where a wider schema would mean a narrower result. A definition that is used in both places is written twice.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from urllib.parse import quote

from pagelift.core import Json
from pagelift.schema import keywords as kw
from pagelift.schema.patterns import ecma_pattern
from pagelift.schema.references import META_SCHEMA, References


@dataclass(slots=True)
class Rewriter:
    """Writes the effective schema. allow_null: null is let in for scalars."""

    references: References
    allow_null: bool
    _names: dict[tuple[str, bool], str] = field(default_factory=dict)
    _used: set[str] = field(default_factory=set)
    _pending: list[tuple[str, bool, str]] = field(default_factory=list)
    _types: dict[int, frozenset[str]] = field(default_factory=dict)

    def rewrite(self, schema_address: str) -> dict[str, Json]:
        """The whole document with `$schema` set to `schema_address`."""
        root = self.references.document
        body = self._position(root, "", self.allow_null)
        body = body if isinstance(body, dict) else {}
        out: dict[str, Json] = {"$schema": schema_address, **body}
        definitions: dict[str, Json] = {}
        while self._pending:
            pointer, wide, name = self._pending.pop(0)
            schema, base = self.references.target(pointer)
            definitions[name] = self._write(schema, base, wide)
        if definitions:
            out[self._definitions_key()] = definitions
        return out

    def _definitions_key(self) -> str:
        return "definitions" if self.references.draft <= 7 else "$defs"

    def _position(self, schema: Json, base: str, wide: bool) -> Json:
        out = self._write(schema, base, wide)
        if wide and self.wants_null(schema, base):
            return with_null(out)
        return out

    def _write(self, schema: Json, base: str, wide: bool) -> Json:
        if not isinstance(schema, dict):
            return schema
        base = self.references.base(schema, base)
        out: dict[str, Json] = {}
        alone = self.references.draft <= 7 and "$ref" in schema
        for key, value in schema.items():
            if key in kw.IDENTIFIERS or key in kw.DEFINITIONS or key in kw.NULLABLE or not kw.in_draft(key, self.references.draft):
                continue
            if alone and key != "$ref" and key not in kw.ANNOTATIONS:
                continue
            self._keyword(out, key, value, base, wide)
        if "oneOf" in schema and "oneOf" not in out and not alone:
            wide_options = self._one_of(schema["oneOf"], base)
            if set(out) & {"anyOf", "not"}:
                out["allOf"] = [*out.get("allOf", ()), wide_options]
            else:
                out |= wide_options
        if any(schema.get(key) is True for key in kw.NULLABLE):
            return with_null(out)
        return out

    def _keyword(self, out: dict[str, Json], key: str, value: Json, base: str, wide: bool) -> None:
        if key == "pattern":
            out[key] = ecma_pattern(value)
        elif key in kw.REFERENCES:
            reference = {"$ref": self._define(self.references.resolve(value, base), wide)}
            if "$ref" in out:
                out.setdefault("allOf", []).append(reference)
            else:
                out |= reference
        elif key in kw.VALUE_MAPS:
            rename = ecma_pattern if key == "patternProperties" else str
            out[key] = {rename(name): self._position(sub, base, wide) for name, sub in value.items()}
        elif key in kw.VALUE_LISTS and isinstance(value, list):
            out[key] = [self._position(sub, base, wide) for sub in value]
        elif key in kw.VALUE_SCHEMAS:
            out[key] = self._position(value, base, wide)
        elif key in kw.SAME_LISTS and not (key == "oneOf" and wide and self.relaxes(value, base)):
            options = [self._write(sub, base, wide) for sub in value]
            out[key] = options if key == "oneOf" else [*out.get(key, []), *unique(options)]
        elif key in kw.SAME_SCHEMAS:
            out[key] = self._write(value, base, wide)
        elif key in kw.SAME_MAPS:
            out[key] = {name: self._write(sub, base, wide) for name, sub in value.items()}
        elif key in kw.TEST_SCHEMAS:
            out[key] = self._write(value, base, False)
        elif key != "oneOf":
            out[key] = value

    def _one_of(self, options: list[Json], base: str) -> Json:
        """With nulls inside, two options can both match, so: one widened option matches, and not two of the original ones."""
        types = [self.types(option, base) for option in options]
        wide: dict[str, Json] = {"anyOf": [self._write(option, base, True) for option in options]}
        if any(a & b for a, b in itertools.combinations(types, 2)):
            original = [self._write(option, base, False) for option in options]
            wide["not"] = {"allOf": [{"anyOf": original}, {"not": {"oneOf": original}}]}
        return wide

    def relaxes(self, options: list[Json], base: str) -> bool:
        """Whether options of a oneOf hold places where null is let in, so that two of them could match the same value."""
        return any(self.types(option, base) & {"object", "array"} for option in options)

    def _define(self, pointer: str, wide: bool) -> str:
        if pointer == "" and wide == self.allow_null and not (wide and self.wants_null(self.references.document, "")):
            return "#"
        key = (pointer, wide and self.allow_null)
        if key not in self._names:
            tokens = [t.replace("~1", "/").replace("~0", "~") for t in pointer.split("/")[1:]]
            name = "meta-schema" if pointer == META_SCHEMA else tokens[-1] if tokens else "root"
            if self.allow_null and not wide:
                name += ".as-given"
            while name in self._used:
                name += "_"
            self._used.add(name)
            self._names[key] = name
            self._pending.append((pointer, wide, name))
        return f"#/{self._definitions_key()}/{_fragment(kw.escape(self._names[key]))}"

    def wants_null(self, schema: Json, base: str) -> bool:
        """Whether null must be added for a value with this schema: it may be a scalar, null is not in, and not forbidden."""
        types = self.types(schema, base)
        return bool(types & kw.SCALAR_TYPES) and "null" not in types and not self._forbids_null(schema, base, set())

    def _forbids_null(self, schema: Json, base: str, seen: set[int]) -> bool:
        if not isinstance(schema, dict) or id(schema) in seen:
            return False
        seen.add(id(schema))
        if any(schema.get(key) is False for key in kw.NULLABLE):
            return True
        base = self.references.base(schema, base)
        inner = [(sub, base) for sub in schema.get("allOf", ())]
        inner += [self.references.target(self.references.resolve(schema[key], base)) for key in kw.REFERENCES if key in schema]
        return any(self._forbids_null(sub, sub_base, seen) for sub, sub_base in inner)

    def types(self, schema: Json, base: str) -> frozenset[str]:
        """The JSON types that `schema` may admit; never too few, so a type that is not listed is certainly refused."""
        if not isinstance(schema, dict):
            return kw.ALL_TYPES if schema else frozenset()
        if id(schema) in self._types:
            return self._types[id(schema)]
        self._types[id(schema)] = kw.ALL_TYPES  # what a reference back to here finds while this is being worked out
        inner = self.references.base(schema, base)
        admitted = kw.ALL_TYPES
        for key in kw.REFERENCES:
            if key in schema:
                admitted &= self.types(*self.references.target(self.references.resolve(schema[key], inner)))
        if not (self.references.draft <= 7 and "$ref" in schema):
            admitted &= _own_types(schema, self.references.draft)
            for sub in schema.get("allOf", ()):
                admitted &= self.types(sub, inner)
            for key in ("anyOf", "oneOf"):
                if key in schema:
                    admitted &= frozenset().union(*(self.types(sub, inner) for sub in schema[key]))
        if any(schema.get(key) is True for key in kw.NULLABLE):
            admitted |= {"null"}
        self._types[id(schema)] = admitted
        return admitted


def _own_types(schema: dict[str, Json], draft: int) -> frozenset[str]:
    admitted = kw.ALL_TYPES
    if "type" in schema:
        admitted = frozenset(kw.type_list(schema["type"]))
        admitted |= {"integer"} if "number" in admitted else frozenset()
    if "enum" in schema:
        admitted &= frozenset(map(kw.type_of, schema["enum"]))
    if "const" in schema and draft >= 6:
        admitted &= {kw.type_of(schema["const"])}
    return admitted


def _fragment(token: str) -> str:
    """A reference token for use in a URI fragment."""
    return quote(token, safe="~!$&'()*+,;=:@-._")


def with_null(schema: Json) -> Json:
    """`schema` or null, written as short as possible; titles and descriptions stay on the outside."""
    if not isinstance(schema, dict):
        return schema or {"type": "null"}
    notes = {k: v for k, v in schema.items() if k in kw.ANNOTATIONS}
    rest = {k: v for k, v in schema.items() if k not in kw.ANNOTATIONS}
    if "type" in rest and set(rest) <= set(kw.SCALAR_KEYWORDS):
        out = {**schema, "type": [*(t for t in kw.type_list(rest["type"]) if t != "null"), "null"]}
        if "const" in rest:
            out["enum"] = [out.pop("const")] if "enum" not in rest or rest["const"] in rest["enum"] else []
        if "enum" in out and None not in out["enum"]:
            out["enum"] = [*out["enum"], None]
        return out
    if set(rest) == {"anyOf"}:
        return {**notes, "anyOf": [*rest["anyOf"], {"type": "null"}]}
    return {**notes, "anyOf": [rest, {"type": "null"}]}


def unique(schemas: list[Json]) -> list[Json]:
    """Without repeated schemas, which cost time and change nothing in allOf and anyOf."""
    return list({json.dumps(schema): schema for schema in schemas}.values())  # by text, since 1 == True in Python
