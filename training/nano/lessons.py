"""The lessons in their order, from a field or two among a few lines to whole documents, and the examples of each."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from random import Random

import numpy as np
from tokenizers import Tokenizer

from nano.blanks import with_blanks
from nano.codes import with_codes
from nano.coined import Lexicon, lexicon, with_coined_words
from nano.crops import Crop, cropped, whole
from nano.examples import MERGE, NOWHERE, Example, encode
from nano.strangers import letter_tokens, with_strangers
from pagelift.evals.synthetic import Sample, Split, make_sample
from pagelift.extract.words_prompt import LINES
from pagelift.models import load_config
from pagelift.models.pictures import PictureProcessor
from pagelift.models.positions import prompt_positions

FEW = Crop(fields=2, rows=0, around=0)
SOME = Crop(fields=5, rows=0, around=1)
ROWS = Crop(fields=3, rows=2, around=1)
MANY = Crop(fields=8, rows=4, around=2)
WHOLE = None


@dataclass(frozen=True, slots=True)
class Lesson:
    """mix: what it is made of, with weights; WHOLE is the document. tokens: longer examples are left out.

    pictures: share of whole documents that are shown with their pictures. crops: at most so many of one document. passed: share of the
    values of `check` right (every token, given those before) at which the next lesson begins.
    """

    name: str
    mix: tuple[tuple[Crop | None, float], ...]
    check: Crop | None
    tokens: int
    passed: float
    pictures: float = 0.0
    crops: int = 4


LESSONS = (
    Lesson("a field or two", ((FEW, 1.0),), FEW, 256, 0.4),
    Lesson("some fields", ((FEW, 0.3), (SOME, 0.7)), SOME, 512, 0.5),
    Lesson("rows", ((FEW, 0.1), (SOME, 0.3), (ROWS, 0.3), (MANY, 0.3)), MANY, 768, 0.45),
    Lesson("pages", ((SOME, 0.1), (MANY, 0.3), (WHOLE, 0.6)), WHOLE, 1280, 0.5, 0.5),
    Lesson("documents", ((MANY, 0.35), (WHOLE, 0.65)), WHOLE, 6144, 1.01, 0.25),
)
LOT = 96
"""So many documents are made at a time, sorted by length and put into batches."""
CODED = 0.3
"""Of the questions, so many get keys that say nothing."""
COINED = 0.3
"""Of the examples, so many get coined words."""
DPI = 60.0
"""Of pictures, before they are made smaller yet."""
CANDIDATES = 3
"""Of so many documents the one with the most rows is taken, half of the time."""
_CHECK_SEED = 500_000_000


def make_lot(lesson: Lesson, number: int, folder: Path, size: int = LOT) -> list[Example]:
    """The examples of a lot; the same number gives the same ones. folder: of the run."""
    return _examples(lesson, number * LOT, size, folder, "train")


def check_lot(lesson: Lesson, folder: Path, size: int, split: Split) -> list[Example]:
    """What a lesson is judged by: one example of each document, none of which is in any lot."""
    return _examples(dataclasses.replace(lesson, mix=((lesson.check, 1.0),), crops=1), _CHECK_SEED, size, folder, split)


def _examples(lesson: Lesson, seed: int, size: int, folder: Path, split: Split) -> list[Example]:
    tokenizer, processor, letters, words = _files(folder)
    rng = Random(f"{split}/{lesson.name}/{seed}")
    examples = []
    taught = split == "train" and seed < _CHECK_SEED
    for index in range(size):
        sample = _document(seed + index, rng) if taught else make_sample(seed + index, split)
        crops = rng.choices([crop for crop, _ in lesson.mix], [weight for _, weight in lesson.mix], k=lesson.crops)
        for crop in crops[:1] if WHOLE in crops else crops:
            question = whole(sample) if crop is WHOLE else cropped(sample, crop, rng)
            if question is None:
                continue
            pictures = []
            if crop is WHOLE and rng.random() < lesson.pictures:
                pictures = [processor.picture(sample.picture(DPI, page=page.number)) for page in sample.pages]
            elif taught:
                question = with_blanks(question, rng)
            if taught and rng.random() < CODED:
                question = with_codes(question, rng)
            if taught:
                question = question._replace(first_line=rng.choice((0, rng.randrange(LINES))))
            examples.append(encode(question, tokenizer, pictures))
    if taught:
        examples = [with_coined_words(example, words, rng) if rng.random() < COINED else example for example in examples]
        examples = [with_strangers(example, letters, rng) for example in examples]
    return [example for example in examples if len(example) <= lesson.tokens]


def _document(seed: int, rng: Random) -> Sample:
    """A document of the train split; every other one is that with the most rows of some, since most rows stand in long tables, which are
    rare: how a list goes on and where it ends has to be learned from what is there, not from how long lists are."""
    everything, seeds = rng.random() < 0.7, range(CANDIDATES * seed, CANDIDATES * (seed + 1))
    made = (make_sample(one, "train", everything=everything) for one in (seeds if rng.random() < 0.5 else seeds[:1]))
    return max(made, key=lambda sample: sum(len(value) for value in sample.expected.values() if isinstance(value, list)))


@cache
def _files(folder: Path) -> tuple[Tokenizer, PictureProcessor, frozenset[int], Lexicon]:
    vision = load_config(folder).vision
    assert vision is not None
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    return tokenizer, PictureProcessor.load(folder, vision), letter_tokens(tokenizer), lexicon(tokenizer)


def lots(
    lesson: Lesson, first: int, folder: Path, tokens: int, pool: ProcessPoolExecutor | None = None, ahead: int = 0
) -> Iterator[tuple[int, list[Example]]]:
    """Examples without end, from a lot on: how many lots at a time, as many as hold so many tokens, and what is in them.

    pool: processes that make so many lots ahead of time; None makes them here.
    """
    taken, examples = 0, list[Example]()
    for lot in _made(lesson, first, folder, pool, ahead):
        taken, examples = taken + 1, examples + lot
        if sum(map(len, examples)) >= tokens:
            yield taken, examples
            taken, examples = 0, []


def _made(lesson: Lesson, first: int, folder: Path, pool: ProcessPoolExecutor | None, ahead: int) -> Iterator[list[Example]]:
    if pool is None:
        yield from (make_lot(lesson, number, folder) for number in count(first))
        return
    waiting: deque[Future[list[Example]]] = deque()
    try:
        for number in count(first):
            waiting.append(pool.submit(make_lot, lesson, number, folder))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def batches(examples: list[Example], tokens: int, rng: Random | None = None) -> Iterator[list[Example]]:
    """Examples with pictures of one size and about one length together, at most so many tokens with padding; shuffled by rng."""
    made: list[list[Example]] = []
    for example in sorted(examples, key=lambda one: ([(grid.rows, grid.columns) for grid in one.grids], len(one))):
        if made and made[-1][0].grids == example.grids and (len(made[-1]) + 1) * len(example) <= tokens:
            made[-1].append(example)
        else:
            made.append([example])
    if rng:
        rng.shuffle(made)
    yield from made


def padded(examples: list[Example], pad: int, image: int) -> dict[str, np.ndarray]:
    """tokens, chosen, sources, outline, lines, beside of several examples as (B, T), padded at the end; positions (3, T), which they share.

    image: the token of pictures. With pictures: patches (all of them, features) and grids (pictures, 3).
    """
    length = max(map(len, examples))
    made = {"tokens": np.full((len(examples), length), pad, np.int64), "chosen": np.zeros((len(examples), length), bool)}
    made |= {name: np.full((len(examples), length), NOWHERE, np.int64) for name in ("sources", "outline", "lines", "beside")}
    for name, array in made.items():
        for row, example in enumerate(examples):
            array[row, : len(example)] = getattr(example, name)
    made["positions"], _ = prompt_positions(made["tokens"][0], [(image, grid) for grid in examples[0].grids], MERGE)
    if examples[0].pictures:
        pictures = [picture for example in examples for picture in example.pictures]
        made["patches"] = np.concatenate([picture.patches() for picture in pictures])
        made["grids"] = np.array([[1, picture.grid.rows, picture.grid.columns] for picture in pictures], np.int64)
    return made
