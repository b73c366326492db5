"""The chat template of a checkpoint: messages to the text that the model was trained on.

Templates come with downloaded files, so they run in Jinja's sandbox and cannot change what they are given. The names they may
use are those of Hugging Face's chat templates (https://huggingface.co/docs/transformers/chat_templating).
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from pagelift.core.errors import EngineError, WeightsError
from pagelift.weights.tokenizer import Tokenizer, read_json

Message = Mapping[str, Any]
"""role ("system", "user", "assistant") and content: a string, or parts {"type": "image"}, {"type": "video"}, {"type": "text", "text"}."""


class Generation(Extension):
    """`{% generation %} ... {% endgeneration %}` marks what the assistant says, which matters for training only."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node | list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class ChatTemplate:
    """A compiled template. Raises WeightsError when it is not one."""

    def __init__(self, source: str, special_tokens: Mapping[str, str]) -> None:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"]
        )
        environment.filters["tojson"] = _to_json
        environment.globals.update({"raise_exception": _raise, "strftime_now": _now})
        self._special_tokens = dict(special_tokens)
        try:
            self._template = environment.from_string(source)
        except (jinja2.TemplateError, RecursionError) as error:
            raise WeightsError(f"the chat template of the checkpoint is damaged: {error}") from error

    @classmethod
    def load(cls, folder: Path, tokenizer: Tokenizer) -> ChatTemplate:
        """From chat_template.jinja, chat_template.json or tokenizer_config.json, the first that there is. Raises WeightsError."""
        path = folder / "chat_template.jinja"
        source: Any = None
        if path.is_file():
            try:
                source = path.read_text(encoding="utf-8")
            except (OSError, ValueError) as error:
                raise WeightsError(f"{path} cannot be read: {error}") from error
        for name in ("chat_template.json", "tokenizer_config.json"):
            source = source or read_json(folder, name).get("chat_template")
        if isinstance(source, list):  # several by name
            source = next((t.get("template") for t in source if isinstance(t, dict) and t.get("name") == "default"), None)
        if not isinstance(source, str):
            raise WeightsError(f"{folder} has no chat template (chat_template.jinja); it is not a model to talk to")
        keys = ("bos_token", "eos_token", "pad_token", "unk_token")
        return cls(source, {key: text for key in keys if (text := tokenizer.special_text(key)) is not None})

    def render(self, messages: Sequence[Message], **variables: Any) -> str:
        """The prompt for an answer to `messages`. variables: what else the template asks for, such as `enable_thinking`.

        Raises EngineError when the template refuses the messages.
        """
        given = {"tools": None, "documents": None, **self._special_tokens, "add_generation_prompt": True, **variables}
        try:
            return self._template.render(messages=messages, **given)
        except Exception as error:  # a template is a program of others and may fail in any way
            raise EngineError(f"the chat template of the checkpoint failed: {type(error).__name__}: {error}") from error


def _to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None, **options: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **options)


def _raise(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _now(pattern: str) -> str:
    return datetime.datetime.now().strftime(pattern)
