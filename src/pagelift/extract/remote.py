"""The `remote` engine: the questions of the `vlm` engine, put to a server that speaks OpenAI's chat protocol.

It is used only when it is asked for by name: pages leave the machine, or at least the process.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pagelift.core import EngineError, InvalidOutput, Json, Proposal
from pagelift.extract.conduct import extract_by_asking
from pagelift.extract.prompts import extraction_prompt, part_notes, read_template
from pagelift.extract.questions import Question, Reply, SeenPage
from pagelift.extract.remote_protocol import CONSTRAINTS, chat_content, constraint_fields, reply_pieces, unwrapped
from pagelift.extract.settings import RemoteServer

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types.chat import ChatCompletion

    from pagelift.extract.engines import ExtractOptions, ReadablePage
    from pagelift.schema import Schema

log = logging.getLogger(__name__)

TOKEN_SIDE_PX = 32
"""A picture token of the Qwen3.5 family stands for so many pixels squared."""
CHARACTERS_PER_TOKEN = 3


class RemoteEngine:
    """Asks a model on an OpenAI-compatible server: pagelift's own, vLLM, mlx_vlm.server, llama.cpp and others.

    server: where it is. Raises EngineError without the package openai, ConfigError.
    """

    name = "remote"

    def __init__(self, server: RemoteServer) -> None:
        self._template, self._wording = read_template(Path(server.prompt) if server.prompt else None)
        self.server = server
        self._chat = Chat(server)

    def extract(self, pages: Iterable[ReadablePage], schema: Schema, options: ExtractOptions) -> Proposal:
        """Values for all properties. Raises EngineError when the server fails, InvalidOutput for an answer that is not JSON."""
        asker = RemoteAsker(self._chat, self._template, options.budget.answer_tokens)
        proposal = extract_by_asking(pages, schema, asker, options.budget)
        metadata = {"model": self._chat.model, "server": self._chat.place, "wording": self._wording}
        return Proposal(proposal.data, proposal.fields, proposal.warnings, metadata | dict(proposal.metadata))


class RemoteAsker:
    """Asks a server, several questions at the same time."""

    prompt_tokens = None

    def __init__(self, chat: Chat, template: str, answer_tokens: int) -> None:
        self._chat = chat
        self._template = template
        self._answer_tokens = answer_tokens

    @property
    def context(self) -> int | None:
        return self._chat.context

    @property
    def concurrency(self) -> int:
        return self._chat.server.concurrency

    def prompt_text(self, question: Question) -> str:
        notes = part_notes([page.number for page in question.pages], question.page_count, question.after)
        return extraction_prompt(question.schema.original, self._template, notes)

    def text_tokens(self, text: str) -> int:
        return len(text) // CHARACTERS_PER_TOKEN + 1

    def page_tokens(self, page: SeenPage) -> int:
        width_px, height_px = page.size_px
        return max(1, round(width_px / TOKEN_SIDE_PX) * round(height_px / TOKEN_SIDE_PX))

    def ask(self, question: Question) -> Reply:
        content = chat_content([page.picture() for page in question.pages], self.prompt_text(question))
        return self._chat.ask(content, question.schema, self._answer_tokens)


class Chat:
    """One model on one server, and what has been learned about both. Safe to use from several threads."""

    def __init__(self, server: RemoteServer) -> None:
        self.server = server
        self.place = _place(server.api_base)
        self._client = _client(server)
        self._lock = threading.Lock()
        self._listed: tuple[str, int | None] | None = None
        self._weakest: dict[str, str] = {}  # by schema, the constraint that the server took
        self._logprobs = True

    @property
    def model(self) -> str:
        return self._look_up()[0]

    @property
    def context(self) -> int | None:
        """Tokens of prompt and answer together, where the server says so (vLLM does)."""
        return self._look_up()[1]

    def ask(self, content: list[Json], schema: Schema, max_tokens: int) -> Reply:
        """One answer. Where the server refuses the schema as a constraint, weaker ones are tried; the answer is checked in any case."""
        start = time.perf_counter()
        completion, constraint, has_logprobs = self._complete(content, schema, max_tokens)
        choice = completion.choices[0] if completion.choices else None
        if choice is None or choice.finish_reason == "content_filter":
            raise EngineError(f"{self.place} gave no answer ({'content filter' if choice else 'no choices'})")
        written = choice.message.content or ""
        truncated = choice.finish_reason == "length"
        text, begin = unwrapped(written)
        if not text and not truncated:
            raise InvalidOutput(f"{self.place} gave an empty answer", written)
        pieces = reply_pieces(choice.logprobs, written, begin, len(text)) if has_logprobs else ()
        warnings = (
            []
            if constraint in ("json_schema", "structured_outputs", "guided_json") or self.server.constraint == constraint
            else [f"{self.place} takes no JSON Schema as a constraint; the answer was only checked afterwards"]
        )
        if not pieces:
            warnings.append(f"{self.place} gives no log-probabilities; confidences of 0.5 say nothing")
        return Reply(text, truncated, pieces, _counts(completion, constraint, time.perf_counter() - start), tuple(warnings))

    def _complete(self, content: list[Json], schema: Schema, max_tokens: int) -> tuple[ChatCompletion, str, bool]:
        """The server's answer, the constraint that it took, and whether it was asked for log-probabilities."""
        import openai

        refused: openai.APIStatusError | None = None
        for constraint in self._constraints(schema):
            for logprobs in (True, False) if self._logprobs else (False,):
                try:
                    found = self._create(content, max_tokens, constraint_fields(constraint, schema), logprobs)
                except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                    log.info("%s refuses constraint %s, logprobs %s: %s", self.place, constraint, logprobs, error)
                    refused = refused or error
                    if _is_too_long(error):
                        raise self._error(error) from error
                    continue
                except openai.APIError as error:
                    raise self._error(error) from error
                with self._lock:
                    self._weakest[schema.fingerprint] = constraint
                    self._logprobs = self._logprobs and logprobs
                return found, constraint, logprobs
        assert refused is not None
        raise self._error(refused) from refused

    def _create(self, content: list[Json], max_tokens: int, constraint: dict[str, Json], logprobs: bool) -> ChatCompletion:
        messages: Any = [{"role": "user", "content": content}]
        asked: dict[str, Any] = {"logprobs": True} if logprobs else {}
        completion: ChatCompletion = self._client.chat.completions.create(
            model=self.model, messages=messages, max_tokens=max_tokens, temperature=0.0, stream=False, **asked, **constraint
        )
        return completion

    def _constraints(self, schema: Schema) -> tuple[str, ...]:
        """The constraints to try, strongest first."""
        if self.server.constraint != "auto":
            return (self.server.constraint,)
        known = self._weakest.get(schema.fingerprint)
        return CONSTRAINTS[CONSTRAINTS.index(known) :] if known else CONSTRAINTS

    def _look_up(self) -> tuple[str, int | None]:
        with self._lock:
            if self._listed is None:
                self._listed = self._list()
            return self._listed

    def _list(self) -> tuple[str, int | None]:
        """Name and context of the model, by the server's list of models; a server without such a list needs the name."""
        import openai

        try:
            models = list(self._client.models.list().data)
        except (openai.APIConnectionError, openai.AuthenticationError, openai.PermissionDeniedError) as error:
            raise self._error(error) from error
        except openai.APIError as error:
            if self.server.model is None:
                raise EngineError(f"{self.place} does not list its models ({_told(error)}); name one with --model") from error
            models = []
        wanted = self.server.model or (models[0].id if models else None)
        if wanted is None:
            raise EngineError(f"{self.place} lists no model; load one there, or name one with --model")
        if models and wanted not in [model.id for model in models]:
            names = ", ".join(model.id for model in models[:10])
            log.info("%s lists the models %s, not %s; asking for it all the same", self.place, names, wanted)
        context = next((getattr(model, "max_model_len", None) for model in models if model.id == wanted), None)
        return wanted, context if isinstance(context, int) and context > 0 else None

    def _error(self, error: Exception) -> EngineError:
        """An error of the client in our words, with the remedy."""
        import openai

        if isinstance(error, openai.APITimeoutError):
            return EngineError(f"{self.place} did not answer within {self.server.timeout_s:g} s; give it more time with timeout_s")
        if isinstance(error, openai.APIConnectionError):
            return EngineError(f"{self.place} cannot be reached ({error.__cause__ or error}); is a server running there? See --api-base")
        if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
            return EngineError(f"{self.place} refuses the API key ({_told(error)}); give the right one with --api-key")
        if isinstance(error, openai.NotFoundError):
            return EngineError(f"{self.place} has no such model, or no chat at this address ({_told(error)}); see --model and --api-base")
        if _is_too_long(error):
            return EngineError(f"{self.place}: the pages are too many for the model's context ({_told(error)}); lower --max-prompt-tokens")
        return EngineError(f"{self.place} failed: {_told(error)}")


def _client(server: RemoteServer) -> OpenAI:
    try:
        from openai import Omit, OpenAI
    except ImportError as error:
        raise EngineError("engine remote needs the package openai; install it with: pip install 'pagelift[remote]'") from error
    accounts: Any = {"OpenAI-Organization": Omit(), "OpenAI-Project": Omit()}  # or it sends what the environment says of another service
    return OpenAI(
        api_key=server.api_key or "none",
        base_url=server.api_base,
        timeout=server.timeout_s,
        max_retries=server.retries,
        default_headers=accounts,
    )


def _place(api_base: str) -> str:
    """The address without user name and password, for messages and metadata."""
    parts = urlsplit(api_base)
    return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"


def _is_too_long(error: Exception) -> bool:
    text = str(error).lower()
    return any(
        words in text
        for words in ("context length", "maximum context", "context size", "max_model_len", "too many tokens", "prompt is too long")
    )


def _told(error: Exception) -> str:
    """The server's own words, shortened."""
    body = getattr(error, "body", None)
    message = body.get("message") if isinstance(body, dict) else None
    text = " ".join(str(message or error).split())
    return text if len(text) <= 300 else text[:297] + "..."


def _counts(completion: ChatCompletion, constraint: str, seconds: float) -> dict[str, Json]:
    counts: dict[str, Json] = {"constraint": constraint, "request_s": round(seconds, 4)}
    if completion.usage is not None:
        counts |= {"prompt_tokens": completion.usage.prompt_tokens, "output_tokens": completion.usage.completion_tokens}
        details = completion.usage.prompt_tokens_details
        if details is not None and details.cached_tokens:
            counts["cached_tokens"] = details.cached_tokens
    return counts
