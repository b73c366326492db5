"""What requests cost each other: constrained answers one after the other and together, and the first token beside another answer.

    python benchmarks/server_together.py CHECKPOINT [--requests 8] [--tokens 40] [--words 150]

Prints one JSON object. throughput: tokens a second together by one after the other. first_token: the time to the first token that the
model chose, beside a request that decodes, by (the time alone + one step); what the grammar forces comes at once and does not count.
identical: whether each answer is the same together as alone.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from openai import APIError, OpenAI
from server_process import served

LONG = {"type": "string", "minLength": 5000}  # so that the limit of tokens ends the answer, not the model
SCHEMA = {"type": "object", "properties": {"text": LONG}, "required": ["text"], "additionalProperties": False}
SHAPE = {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}


class Asker:
    """Sends questions of so many words to one server; `tokens` for an answer."""

    def __init__(self, url: str, words: int, tokens: int) -> None:
        self._client = OpenAI(base_url=f"{url}/v1", api_key="none", timeout=600, max_retries=0)
        self._words = words
        self.tokens = tokens

    def ask(self, number: int) -> tuple[str, int]:
        """Answer and number of its tokens. Numbers of three digits give prompts of the same length."""
        answer = self._client.chat.completions.create(**self._asked(number))
        return answer.choices[0].message.content or "", answer.usage.completion_tokens if answer.usage else 0

    def first_token_s(self, number: int) -> float:
        start = time.perf_counter()
        text = ""
        for chunk in self._client.chat.completions.create(**self._asked(number, stream=True, max_tokens=self.tokens)):
            text += (chunk.choices[0].delta.content or "") if chunk.choices else ""
            if len(text.partition(":")[2].strip()) > 1:  # more than the quote that begins the text
                return time.perf_counter() - start
        raise SystemExit("a stream without text")

    def stream(self, number: int, tokens: int) -> Any:
        return self._client.chat.completions.create(**self._asked(number, stream=True, max_tokens=tokens))

    def _asked(self, number: int, **more: Any) -> dict[str, Any]:
        text = " ".join(f"{number}-{k}" for k in range(self._words // 4))  # a number and a hyphen are tokens of their own
        given = {"model": "auto", "messages": [{"role": "user", "content": text}], "response_format": SHAPE, "max_tokens": self.tokens}
        return given | {"temperature": 1.0, "seed": number} | more


def main() -> int:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("--requests", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=40)
    parser.add_argument("--words", type=int, default=150)
    options = parser.parse_args()
    with served(["--model", options.checkpoint]) as server:
        asker = Asker(server.url, options.words, options.tokens)
        asker.ask(999)  # weights are in memory, the grammar is compiled
        report = {"checkpoint": options.checkpoint, "requests": options.requests, "tokens": options.tokens, "words": options.words}
        report |= throughput(asker, options.requests)
        report |= first_token(asker)
    sys.stdout.write(json.dumps(report, indent=2) + "\n")
    return 0


def throughput(asker: Asker, requests: int) -> dict[str, Any]:
    """Questions one after the other, and as many others together, so that no prompt is in the cache; then the first ones together."""
    start = time.perf_counter()
    alone = [asker.ask(k) for k in range(200, 200 + requests)]
    alone_s = time.perf_counter() - start
    start = time.perf_counter()
    _together(asker, range(100, 100 + requests))
    together_s = time.perf_counter() - start
    again = _together(asker, range(200, 200 + requests))
    written = sum(count for _, count in alone)
    return {
        "one_after_the_other_tps": round(written / alone_s, 2),
        "together_tps": round(written / together_s, 2),
        "throughput": round(alone_s / together_s, 2),
        "identical": again == [text for text, _ in alone],
    }


def _together(asker: Asker, numbers: range) -> list[str]:
    found: dict[int, str] = {}
    threads = [threading.Thread(target=lambda k=k: found.update({k: asker.ask(k)[0]})) for k in numbers]  # type: ignore[misc]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[k] for k in numbers]


def first_token(asker: Asker) -> dict[str, float]:
    """Medians of three."""
    alone = statistics.median(asker.first_token_s(300 + k) for k in range(3))
    stream, beside, steps = asker.stream(500, 2000), [], []
    last = time.perf_counter()
    pieces = iter(stream)
    for _ in range(12):
        next(pieces)
        steps.append(time.perf_counter() - last)
        last = time.perf_counter()
    threading.Thread(target=_read, args=(pieces,), daemon=True).start()
    for k in range(3):
        beside.append(asker.first_token_s(400 + k))
    stream.close()
    step, found = statistics.median(steps[4:]), statistics.median(beside)
    return {
        "first_token_alone_s": round(alone, 3),
        "step_s": round(step, 3),
        "first_token_beside_s": round(found, 3),
        "first_token": round(found / (alone + step), 2),
    }


def _read(pieces: Iterator[Any]) -> None:
    """Until the stream is closed."""
    with contextlib.suppress(APIError):
        for _ in pieces:
            pass


if __name__ == "__main__":
    sys.exit(main())
