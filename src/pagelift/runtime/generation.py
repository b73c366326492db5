"""An answer that is being generated, as its reader sees it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from pagelift.decoding import Token
from pagelift.runtime.sequences import FinishReason
from pagelift.runtime.service import Service, Ticket
from pagelift.weights import TextStream, Tokenizer


@dataclass(frozen=True, slots=True)
class Piece:
    """A generated token and the text that it completes; the last piece may have text left over and no token."""

    text: str
    token: Token | None


class Generation:
    """An answer being generated; an iterator of pieces.

    The model works whether or not somebody reads; `text`, `tokens` and `finish_reason` are what has been read. An answer that
    nobody will read is to be closed: by `close`, as a context manager, or by dropping the last reference to it.
    """

    def __init__(self, service: Service, ticket: Ticket, tokenizer: Tokenizer) -> None:
        self._service = service
        self._ticket = ticket
        self._stream = TextStream(tokenizer)
        self._parts: list[str] = []
        self._tokens: list[Token] = []
        self._finish_reason: FinishReason | None = None
        self._first_token_s = self._seconds = 0.0

    def __iter__(self) -> Iterator[Piece]:
        return self._run()  # not kept: a cycle of references would hide that nobody reads any more

    def __enter__(self) -> Generation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    @property
    def text(self) -> str:
        """The answer so far."""
        return "".join(self._parts)

    @property
    def tokens(self) -> tuple[Token, ...]:
        """The tokens of the answer so far, without the one that ended it."""
        return tuple(self._tokens)

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why the answer ended, None before that."""
        return self._finish_reason

    @property
    def metadata(self) -> dict[str, int | float]:
        """Counts and times in seconds. queue_s: before it was its turn; the parts of generate_s are shares by rows of steps with others."""
        sequence, counts = self._ticket.sequence, self._ticket.sequence.counts
        return {
            "prompt_tokens": len(sequence.prompt),
            "cached_tokens": counts.cached_tokens,
            "output_tokens": len(self._tokens),
            "forced_tokens": sum(token.forced for token in self._tokens),
            "drafted": counts.drafted,
            "accepted": counts.accepted,
            "passes": counts.passes,
            "prefill_passes": counts.prefill_passes,
            "pictures": counts.pictures,
            "queue_s": round(max(self._ticket.admitted - self._ticket.submitted, 0.0), 4),
            "encode_s": round(counts.encode_s, 4),
            "prefill_s": round(counts.prefill_s, 4),
            "decode_s": round(counts.decode_s, 4),
            "grammar_s": round(counts.grammar_s, 4),
            "draft_s": round(counts.draft_s, 4),
            "settle_s": round(counts.settle_s, 4),
            "first_token_s": round(self._first_token_s, 4),
            "generate_s": round(self._seconds, 4),
            "cache_bytes": counts.cache_bytes or sequence.cache.nbytes,
        }

    def cancel(self) -> None:
        """Generate no further tokens; reading ends here."""
        if self._finish_reason is None:
            self._finish_reason = "cancelled"
            self._service.cancel(self._ticket)

    def close(self) -> None:
        """Cancel what is not finished."""
        self.cancel()

    def _run(self) -> Iterator[Piece]:
        while self._finish_reason is None:
            try:
                news = self._ticket.take(len(self._tokens))
            except Exception:
                self._finish_reason = "error"
                raise
            self._seconds = (self._ticket.ended or time.perf_counter()) - self._ticket.submitted
            self._first_token_s = self._first_token_s or self._seconds
            for token in news:
                if self._finish_reason is not None:
                    break
                self._tokens.append(token)
                yield self._piece(self._stream.put([token.id]), token)
            if not news and self._finish_reason is None:
                self._finish_reason = self._ticket.sequence.finish_reason
        rest = self._stream.finish()
        if rest:
            yield self._piece(rest, None)

    def _piece(self, text: str, token: Token | None) -> Piece:
        self._parts.append(text)
        return Piece(text, token)
