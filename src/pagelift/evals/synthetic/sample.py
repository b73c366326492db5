"""One document with everything that is known about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import TYPE_CHECKING

from pagelift.core import ConfigError, Json, PageContent
from pagelift.evals.synthetic.kinds import KINDS, KindName
from pagelift.evals.synthetic.paint import Canvas, Place
from pagelift.evals.synthetic.scene import Printed, Scene, new_scene
from pagelift.evals.synthetic.schemas import Content, make_task
from pagelift.evals.synthetic.splits import SPLITS, Split
from pagelift.evals.synthetic.wording import LANGUAGES

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True, slots=True)
class Sample:
    """A document, what is asked of it, and the right answer.

    pages: words with exact boxes, and ruling lines. evidence: by JSON Pointer into `expected`, of every value that is printed; a
    null has none. loose: keys of values that are scored without regard to punctuation (`scoring.Scorer`). layout: <kind>/<family>.
    """

    id: str
    pdf: bytes = field(repr=False)
    pages: list[PageContent] = field(repr=False)
    schema: dict[str, Json]
    expected: dict[str, Json]
    evidence: dict[str, Place] = field(repr=False)
    loose: frozenset[str]
    kind: KindName
    language: str
    layout: str
    issuer: str

    def picture(self, dpi: float = 150, degrade: int | None = None, page: int = 1) -> Image:
        """An RGB picture of a page. degrade: seed of flaws as of a scan; None draws it clean. Raises ConfigError for no such page."""
        from pagelift.evals.synthetic.picture import degraded, drawn

        clean = drawn(self.pdf, page, dpi)
        return clean if degrade is None else degraded(clean, Random(f"{self.id}/{page}/{degrade}"))


def make_sample(
    seed: int, split: Split = "train", kind: KindName | None = None, language: str | None = None, everything: bool = False
) -> Sample:
    """The document of a seed: the same arguments give the same bytes everywhere.

    kind and language: drawn if not given. everything: its schema asks for all values outside of lists, as is best for training.
    Raises ConfigError for an unknown split, kind or language.
    """
    if split not in SPLITS or (kind is not None and kind not in KINDS) or (language is not None and language not in LANGUAGES):
        raise ConfigError(
            f"no documents of split {split!r}, kind {kind!r}, language {language!r}; "
            f"choose from {', '.join(SPLITS)}; {', '.join(KINDS)}; {', '.join(LANGUAGES)}"
        )
    rng = Random(f"{split}/{kind}/{language}/{seed}")
    name = rng.choice(tuple(KINDS)) if kind is None else kind
    recipe = KINDS[name]
    family = rng.choice([family for family in recipe.families if family.split == split])
    scene = new_scene(rng, split, language)
    sheet, issuer = recipe.draw(scene, family)
    canvas = sheet.canvas
    _mark_currency(canvas, scene)
    content = Content(canvas.values, canvas.places, recipe.absent, dict(recipe.absent_columns))
    task = make_task(content, rng, split, scene.locale.language == "de", _date_hint(scene), everything)
    task.schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": name.capitalize(), **task.schema}
    identity = f"{name}-{split}-{seed}" + (f"-{language}" if language else "")
    return Sample(
        identity,
        canvas.pdf(identity),
        canvas.contents(),
        task.schema,
        task.expected,
        task.evidence,
        frozenset(task.loose),
        name,
        scene.locale.language,
        f"{name}/{family.id}",
        issuer,
    )


def make_samples(seed: int = 0, split: Split = "train", kinds: Sequence[KindName] = (), language: str | None = None) -> Iterator[Sample]:
    """Documents without end, the kinds in turn. The first 10 million documents of one seed are in no other."""
    for index in count():
        kind = kinds[index % len(kinds)] if kinds else None
        yield make_sample(seed * 10_000_000 + index, split, kind, language)


def _date_hint(scene: Scene) -> str:
    """What to say about dates whose day and month could be mistaken for each other."""
    pattern = scene.date_pattern
    if "{mm}" not in pattern or pattern.startswith("{yyyy}") or not scene.chance(0.7):
        return ""
    order = "day" if pattern.startswith("{d") else "month"
    return f"; printed {order} first, written as yyyy-mm-dd"


def _mark_currency(canvas: Canvas, scene: Scene) -> None:
    """The currency is printed where the first amount has it."""
    money = scene.locale.money
    for tag in ("total", "opening", "closing", "new_price"):
        place = canvas.places.get(tag)
        for word in canvas.words[place.page - 1] if place else ():
            inside = place is not None and place.box.overlap_x(word.box) > 0 and place.box.overlap_y(word.box) > word.box.height / 2
            if inside and (money.symbol in word.text or money.code in word.text):
                canvas.page = place.page - 1 if place else 0
                canvas.mark("currency", Printed(money.code, (word.text,)), word.box)
                return
