"""References: where `$ref`, `$dynamicRef` and `$recursiveRef` lead within one schema document. Nothing is ever fetched."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

import jsonschema_rs

from pagelift.core import InvalidSchema, Json, SchemaRefused
from pagelift.schema.keywords import join, subschemas

_DRAFTS: dict[str, tuple[int, type[Any]]] = {
    "draft-04": (4, jsonschema_rs.Draft4Validator),
    "draft-06": (6, jsonschema_rs.Draft6Validator),
    "draft-07": (7, jsonschema_rs.Draft7Validator),
    "draft/2019-09": (2019, jsonschema_rs.Draft201909Validator),
    "draft/2020-12": (2020, jsonschema_rs.Draft202012Validator),
}
META_SCHEMA = "\0meta-schema"
"""Stands for the target of a reference to a published meta-schema, which is read as "anything"."""


def draft_of(schema: Json) -> tuple[int, str]:
    """The draft (4, 6, 7, 2019 or 2020) and its meta-schema address; 2020-12 where `$schema` is missing or unknown."""
    declared = schema.get("$schema") if isinstance(schema, dict) else None
    if isinstance(declared, str):
        for part, (draft, _) in _DRAFTS.items():
            if f"json-schema.org/{part}/" in declared:
                return draft, _address(part, draft)
    return 2020, _address("draft/2020-12", 2020)


def _address(part: str, draft: int) -> str:
    return f"http://json-schema.org/{part}/schema#" if draft <= 7 else f"https://json-schema.org/{part}/schema"


def validator_class(draft: int) -> type[Any]:
    return next(cls for number, cls in _DRAFTS.values() if number == draft)


@dataclass(slots=True)
class References:
    """Looks references up in `document`, with `$id`, `id` (draft 4) and anchors taken into account."""

    document: Json
    draft: int
    _resources: dict[str, str] = field(default_factory=dict)
    _anchors: dict[tuple[str, str], str] = field(default_factory=dict)
    _targets: dict[str, tuple[Json, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._resources[""] = ""
        pending = [("", self.document, "")]
        while pending:
            pointer, schema, base = pending.pop()
            if not isinstance(schema, dict):
                continue
            base = self._register(pointer, schema, base)
            self._targets[pointer] = (schema, base)
            pending += [(join(pointer, *path), sub, base) for path, sub in subschemas(schema)]

    def _register(self, pointer: str, schema: dict[str, Json], base: str) -> str:
        own = self.base(schema, base)
        if own != base or pointer == "":
            self._resources.setdefault(own, pointer)
        for key in ("$anchor", "$dynamicAnchor"):
            if isinstance(schema.get(key), str):
                self._anchors.setdefault((own, schema[key]), pointer)
        identifier = schema.get("id" if self.draft == 4 else "$id")
        if self.draft <= 7 and isinstance(identifier, str) and identifier.startswith("#"):
            self._anchors.setdefault((own, identifier[1:]), pointer)
        return own

    def base(self, schema: dict[str, Json], base: str) -> str:
        """The base address for references inside `schema`, given the base around it."""
        identifier = schema.get("id" if self.draft == 4 else "$id")
        if not isinstance(identifier, str) or identifier.startswith("#") or (self.draft <= 7 and "$ref" in schema):
            return base
        return urldefrag(urljoin(base, identifier)).url

    def resolve(self, reference: str, base: str) -> str:
        """The JSON Pointer that `reference` leads to, or META_SCHEMA.

        Raises SchemaRefused for a document elsewhere, InvalidSchema for a place that does not exist.
        """
        address, fragment = (base, reference[1:]) if reference.startswith("#") else tuple(urldefrag(urljoin(base, reference)))
        if address not in self._resources:
            if "json-schema.org/draft" in address:
                return META_SCHEMA
            raise SchemaRefused(
                f"$ref {reference!r} leads to another document, and schemas are never fetched; copy its content into $defs of this schema"
            )
        resource = self._resources[address]
        fragment = unquote(fragment)
        pointer = resource + fragment
        if fragment and not fragment.startswith("/"):
            if (address, fragment) not in self._anchors:
                raise InvalidSchema(f"$ref {reference!r}: there is no anchor {fragment!r} in the schema")
            pointer = self._anchors[address, fragment]
        self.target(pointer)
        return pointer

    def target(self, pointer: str) -> tuple[Json, str]:
        """The schema at `pointer` and the base address around it. Raises InvalidSchema when there is none."""
        if pointer == META_SCHEMA:
            return {}, ""  # not `true`, which draft 4 does not know
        if pointer not in self._targets:
            value, base = self.document, self._targets[""][1] if "" in self._targets else ""
            at = ""
            for token in pointer.split("/")[1:]:
                key = token.replace("~1", "/").replace("~0", "~")
                if isinstance(value, dict) and key in value:
                    value = value[key]
                elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
                    value = value[int(key)]
                else:
                    raise InvalidSchema(f"$ref '#{pointer}' leads nowhere: {at or 'the schema'} has no {key!r}")
                at = f"{at}/{token}"
                base = self._targets[at][1] if at in self._targets else base
            if not isinstance(value, dict | bool):
                raise InvalidSchema(f"$ref '#{pointer}' leads to {value!r}, which is not a schema")
            self._targets[pointer] = (value, base)
        return self._targets[pointer]
