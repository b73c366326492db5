"""Grammars of recent schemas, so that the same schema is compiled once."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from pagelift.server.questions import ANY_OBJECT, Question, load_schema

if TYPE_CHECKING:
    from pagelift.runtime import LoadedModel

KEPT = 64


class Grammars:
    """Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._compiled: OrderedDict[str, Any] = OrderedDict()

    def start(self, question: Question, loaded: LoadedModel) -> Any:
        """The constraint at the start of an answer, None for free text. Raises SchemaError when no grammar can be made."""
        if question.shape == "text":
            return None
        schema = load_schema(question.schema if question.shape == "json_schema" else ANY_OBJECT)
        key = json.dumps([question.served.id, schema.fingerprint])
        with self._lock:
            grammar = self._compiled.get(key)
            if grammar is not None:
                self._compiled.move_to_end(key)
        if grammar is None:
            decoding: Any = import_module("pagelift.decoding")
            grammar = decoding.compile_grammar(schema, cast("Any", loaded).vocabulary)
            with self._lock:
                self._compiled[key] = grammar
                while len(self._compiled) > KEPT:
                    self._compiled.popitem(last=False)
        return grammar.constraint()
