"""What a chat client asks, whichever of the two APIs it came by: checked, and free of the words of either."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pagelift.runtime import Sampling
from pagelift.schema import Schema
from pagelift.server.attachments import Attachment
from pagelift.server.catalog import Served
from pagelift.server.errors import ApiError

Shape = Literal["text", "json_object", "json_schema"]
ANY_OBJECT = {"type": "object"}


@dataclass(frozen=True, slots=True)
class Question:
    """One request for `count` answers.

    messages: for the chat template; a part {"type": "document", "index": i} stands for the pages of attachment i. schema: as given.
    params: what the API in use calls the parameters, for errors.
    """

    served: Served
    messages: tuple[dict[str, Any], ...]
    attachments: tuple[Attachment, ...]
    sampling: Sampling
    shape: Shape = "text"
    schema: Any = None
    stop: tuple[str, ...] = ()
    count: int = 1
    logprobs: bool = False
    variables: Mapping[str, Any] = field(default_factory=dict)
    shape_param: str = "response_format"

    def check(self) -> None:
        """Raises ApiError 400 for what the model cannot do, SchemaError for a schema that cannot be honoured."""
        if self.served.loaded is None:
            self._check_extraction()
        if self.shape == "json_schema":
            load_schema(self.schema)

    def _check_extraction(self) -> None:
        """An engine that only extracts needs a document and a schema, and has no tokens. Its answer is the same at every temperature."""
        name = self.served.id
        if not self.attachments:
            raise _cannot(f"model {name} reads documents: send one in the messages, as image_url (data URI) or as a file", "messages")
        if self.shape != "json_schema":
            raise _cannot(f"model {name} extracts by a schema: give {self.shape_param} with type json_schema", self.shape_param)
        for wrong, param, why in (
            (self.logprobs, "logprobs", "it has no tokens"),
            (bool(self.stop), "stop", "its answer is one JSON value"),
            (bool(self.variables), "chat_template_kwargs", "it has no chat template"),
        ):
            if wrong:
                raise _cannot(f"model {name} does not support {param}: {why}", param)


def load_schema(document: Any) -> Schema:
    """A schema out of a request, never a name or path; the answer will conform to it as it is given. Raises SchemaError."""
    return Schema.load(document, nulls="declared")


def _cannot(message: str, param: str) -> ApiError:
    return ApiError(400, message, param, "unsupported_value")
