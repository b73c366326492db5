"""Documents with the right answer given to the model, token by token: what calibration and comparison of checkpoints look at.

The prompt is the one that the engine `vlm` makes of the document; the answer is the true values in the style that its grammar writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pagelift.core import Json
from pagelift.documents import open_document
from pagelift.evals.cases import Case
from pagelift.evals.spelling import Piece, PieceKind, Printed, Shown, answer_pieces
from pagelift.evals.synthetic import Sample
from pagelift.evidence.align import align
from pagelift.extract.engines import ReadablePage
from pagelift.extract.local import question_text
from pagelift.extract.prompts import read_template
from pagelift.extract.questions import Question, SeenPage
from pagelift.extract.words_prompt import wants_words
from pagelift.models.config import load_config
from pagelift.models.pictures import PictureProcessor
from pagelift.models.positions import text_positions
from pagelift.models.prompt import PlacedPicture, Prompt, PromptBuilder, user_turn
from pagelift.schema import Schema
from pagelift.weights import ChatTemplate, Tokenizer


@dataclass(frozen=True, slots=True)
class Forced:
    """tokens: (T,) prompt and answer. positions: (3, T). answer: index of the first token of the answer, whose last one ends the turn.
    values: (T,) whether a token belongs to a scalar of the answer or is a mark of a line, and is no punctuation of the JSON around it."""

    id: str
    tokens: npt.NDArray[np.int64]
    positions: npt.NDArray[np.int64]
    pictures: tuple[PlacedPicture, ...]
    answer: int
    values: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def asked(self) -> npt.NDArray[np.int64]:
        """The rows whose next token belongs to a value: those whose predictions are compared."""
        return np.flatnonzero(self.values) - 1


class Forcer:
    """Makes `Forced` documents for the checkpoint in a folder. Raises WeightsError, ConfigError."""

    def __init__(self, folder: Path) -> None:
        self.config = load_config(folder)
        self._tokenizer = Tokenizer.load(folder)
        template = ChatTemplate.load(folder, self._tokenizer)
        self._processor = PictureProcessor.load(folder, self.config.vision) if self.config.vision else None
        self._prompts = PromptBuilder(self.config, self._tokenizer, template, self._processor)
        self._template = None if wants_words(folder) else read_template()[0]

    def sample(self, sample: Sample) -> Forced:
        """A generated document, read as any other; numbers keep the digits that are printed."""
        with open_document(sample.pdf, ocr="never") as document:
            return self._forced(sample.id, tuple(document.pages()), Schema.load(sample.schema), sample.expected, sample.evidence)

    def case(self, case: Case) -> Forced:
        """A document of a folder."""
        schema = Schema.load(case.schema)
        with open_document(case.document) as document:
            return self._forced(case.id, tuple(document.pages()), schema, schema.conform(case.truth()).data)

    def document(self, path: Path, schema: Schema, answer: Json) -> Forced:
        """A document of a user. answer: what is taken for right."""
        with open_document(path) as document:
            return self._forced(path.stem, tuple(document.pages()), schema, schema.conform(answer).data)

    def text(self, identity: str, tokens: Sequence[int]) -> Forced:
        """Plain text without a question; no token is a value."""
        ids = np.array(tokens, np.int64)
        return Forced(identity, ids, text_positions(0, len(ids)), (), len(ids), np.zeros(len(ids), bool))

    def encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text)

    def _forced(
        self, identity: str, pages: Sequence[ReadablePage], schema: Schema, answer: Json, places: Mapping[str, Shown] | None = None
    ) -> Forced:
        """places: of the values, None where they are not known."""
        seen = tuple(SeenPage(page) for page in pages)
        text = question_text(Question(schema, seen), self._template)
        pictures = [page.picture() for page in seen] if self._processor else []
        prompt = self._prompts.build(user_turn(text, len(pictures)), pictures)
        marked = [page.content for page in seen] if self._template is None else None
        if places is None:
            places = align(answer, [page.index for page in seen]) if marked else {}
        tokens, values = self._answer(list(answer_pieces(answer, Printed.at(places, marked))))
        return _joined(identity, prompt, tokens, values)

    def _answer(self, pieces: Sequence[Piece]) -> tuple[list[int], list[bool]]:
        """Tokens of an answer and the end of the turn, and which of them overlap a scalar or a mark."""
        encoded = self._tokenizer.engine.encode("".join(piece.text for piece in pieces), add_special_tokens=False)
        inside: list[bool] = []
        for piece in pieces:
            inside += [piece.kind in (PieceKind.SCALAR, PieceKind.MARK)] * len(piece.text)
        values = [any(inside[begin:end]) for begin, end in encoded.offsets]
        end = self._tokenizer.find("<|im_end|>")
        stop = min(self._tokenizer.stop_tokens) if end is None else end
        return [*encoded.ids, stop], [*values, False]


def _joined(identity: str, prompt: Prompt, tokens: Sequence[int], values: Sequence[bool]) -> Forced:
    positions = np.concatenate([prompt.positions, text_positions(prompt.next_position, len(tokens))], axis=1)
    ids = np.concatenate([prompt.tokens, np.array(tokens, np.int64)])
    mask = np.concatenate([np.zeros(len(prompt), bool), np.array(values, bool)])
    return Forced(identity, ids, positions, prompt.pictures, len(prompt), mask)
