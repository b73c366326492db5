"""The tokenizer of a checkpoint: `tokenizer.json`, the ids of special tokens, and the tokens that end an answer.

Ids are read from the files, never assumed. Text comes back byte by byte, because one character may be spread over several tokens.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as Engine

from pagelift.core.errors import WeightsError

END_OF_TURN = "<|im_end|>"


class Tokenizer:
    """Text to token ids and back.

    stop_tokens: the union of `eos_token_id` of generation_config.json, `eos_token` of tokenizer_config.json and <|im_end|>,
    because published files list only one of them and runtimes that obey them never stop.
    """

    def __init__(self, engine: Engine, config: dict[str, Any], stop_ids: Iterable[int] = ()) -> None:
        self.engine = engine
        self.config = config
        self._bytes: dict[int, bytes] = {}
        added = engine.get_added_tokens_decoder()
        self._added = {index: token.content.encode() for index, token in added.items()}
        self.special_ids = frozenset(index for index, token in added.items() if token.special)
        named = [self.find(text) for text in (END_OF_TURN, self.special_text("eos_token")) if text]
        self.stop_tokens = frozenset([*stop_ids, *(index for index in named if index is not None)])

    @classmethod
    def load(cls, folder: Path) -> Tokenizer:
        """Read the tokenizer files of a checkpoint folder. Raises WeightsError when one is missing, damaged or of another kind."""
        path = folder / "tokenizer.json"
        try:
            engine = Engine.from_str(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise WeightsError(f"{path} cannot be read: {error.strerror}; a checkpoint folder has a tokenizer.json") from error
        except Exception as error:  # the tokenizers package raises bare Exception on damaged files
            raise WeightsError(f"{path} is damaged: {error}") from error
        if "ByteLevel" not in repr(engine.decoder):
            raise WeightsError(f"{path} is not a byte-level tokenizer, the only kind that is supported")
        ids = read_json(folder, "generation_config.json").get("eos_token_id")
        stop_ids = [] if ids is None else ids if isinstance(ids, list) else [ids]
        if any(type(index) is not int or index < 0 for index in stop_ids):
            raise WeightsError(f"{folder / 'generation_config.json'}: eos_token_id must be a token id or a list of them; it is {ids!r}")
        return cls(engine, read_json(folder, "tokenizer_config.json"), stop_ids)

    @property
    def vocab_size(self) -> int:
        """Number of ids, added tokens included; a model's vocabulary may be padded beyond it."""
        return int(self.engine.get_vocab_size())

    def encode(self, text: str) -> list[int]:
        """Token ids; names of special tokens in the text become these tokens, and nothing is put before or after."""
        return list(self.engine.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: Iterable[int], skip_special: bool = True) -> str:
        """The text of token ids; bytes that are no UTF-8 become U+FFFD."""
        return b"".join(self.token_bytes(i) for i in ids if not (skip_special and i in self.special_ids)).decode(errors="replace")

    def token_bytes(self, index: int) -> bytes:
        """The bytes of one token; b"" for an id that has none."""
        if index not in self._bytes:
            text = self.engine.id_to_token(index) or ""
            self._bytes[index] = self._added[index] if index in self._added else bytes(BYTE_OF.get(c, ord("?")) for c in text)
        return self._bytes[index]

    def find(self, text: str) -> int | None:
        """The id of the token that is written `text`, or None."""
        index = self.engine.token_to_id(text)
        return None if index is None else int(index)

    def id(self, text: str) -> int:
        """The id of the token that is written `text`. Raises WeightsError when there is none."""
        index = self.find(text)
        if index is None:
            raise WeightsError(f"the tokenizer has no token {text}")
        return index

    def special_text(self, key: str) -> str | None:
        """A special token of tokenizer_config.json, such as `eos_token`, as text; files give a string or an object."""
        value = self.config.get(key)
        if isinstance(value, dict):
            value = value.get("content")
        return value if isinstance(value, str) else None


class TextStream:
    """Tokens to text as they come: a character is given out when its last byte is there. Special tokens are left out."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def put(self, ids: Sequence[int]) -> str:
        """Text that is complete after these tokens."""
        kept = (self._tokenizer.token_bytes(i) for i in ids if i not in self._tokenizer.special_ids)
        return self._decoder.decode(b"".join(kept))

    def finish(self) -> str:
        """What is left of a character that was cut off."""
        return self._decoder.decode(b"", final=True)


def read_json(folder: Path, name: str) -> dict[str, Any]:
    """An optional JSON object of a checkpoint folder, {} when there is no such file. Raises WeightsError when it is damaged."""
    path = folder / name
    if not path.is_file():
        return {}
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise WeightsError(f"{path} is damaged: {error}") from error
    if not isinstance(value, dict):
        raise WeightsError(f"{path} must hold an object, not {str(value)[:40]}")
    return value


def _byte_alphabet() -> dict[str, int]:
    """The characters that byte-level vocabularies write for the 256 bytes (GPT-2): printable ones as they are, others from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + k): byte for k, byte in enumerate(others)}


BYTE_OF = _byte_alphabet()
