"""Generated documents: always the same, true to their schemas and pages, and with splits that share nothing."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from pagelift import ConfigError
from pagelift.core import Box, PageContent, Word
from pagelift.documents import open_document
from pagelift.evals.synthetic import KINDS, SPLITS, KindName, Sample, Split, make_sample, make_samples
from pagelift.evals.synthetic.kinds import kind_named
from pagelift.evals.synthetic.locales import LOCALES, iban
from pagelift.evals.synthetic.metrics import text_width
from pagelift.evals.synthetic.paint import Canvas, Look, wrap
from pagelift.evals.synthetic.scene import Printed, new_scene
from pagelift.evals.synthetic.schemas import ENUMS
from pagelift.evals.synthetic.wording import LANGUAGES, concepts, wording
from pagelift.schema import Schema

PER_KIND = 12
ENUM_VALUES = {value for values in ENUMS.values() for value in values}


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    return [make_sample(seed, split, kind) for split in SPLITS for kind in KINDS for seed in range(PER_KIND)]


def leaves(value: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    """JSON Pointer and value of every scalar."""
    if isinstance(value, dict | list):
        for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(entry, f"{pointer}/{key}")
    else:
        yield pointer, value


def words_in(page: PageContent, box: Box) -> list[Word]:
    def inside(word: Word) -> bool:
        return box.x0 - 0.5 < word.box.x0 < box.x1 - 0.5 and box.top < word.box.center_y < box.bottom

    return sorted((word for word in page.words if inside(word)), key=lambda word: (round(word.box.bottom), word.box.x0))


def test_the_same_seed_gives_the_same_bytes() -> None:
    first, again = make_sample(5, "test"), make_sample(5, "test")
    assert (first.pdf, first.schema, first.expected, first.evidence) == (again.pdf, again.schema, again.expected, again.evidence)
    assert first.pages == again.pages
    assert len({make_sample(seed, "test").pdf for seed in range(8)}) == 8
    assert make_sample(5, "train").pdf != first.pdf


def test_bytes_are_the_same_on_every_machine() -> None:
    """A change of these digests is a change of every data set that is named by its seeds: let it be on purpose."""
    digests = {
        "invoice": "626aa7eda936",
        "order": "f6570e8c369d",
        "receipt": "260802b79670",
        "statement": "8ad78a0b3f71",
        "form": "abcc677bec3c",
        "letter": "35e9b3f65c04",
    }
    assert {kind: hashlib.sha256(make_sample(1, "train", kind).pdf).hexdigest()[:12] for kind in KINDS} == digests


def test_kinds_in_turn_and_languages_as_asked() -> None:
    stream = make_samples(3, "validation", kinds=("letter", "order"))
    assert [next(stream).kind for _ in range(4)] == ["letter", "order", "letter", "order"]
    assert {make_sample(seed, "train", language="it").language for seed in range(5)} == {"it"}


@pytest.mark.parametrize("wrong", [{"split": "dev"}, {"kind": "poem"}, {"language": "la"}])
def test_unknown_choices_are_errors(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="choose from"):
        make_sample(0, **wrong)
    with pytest.raises(ConfigError, match="no kind"):
        kind_named("poem")


def test_expected_values_are_valid(samples: list[Sample]) -> None:
    for sample in samples:
        schema = Schema.load(sample.schema)
        assert schema.errors(sample.expected) == [], sample.id
        strict = Schema.load(sample.schema, nulls="declared")
        assert [e for e in strict.errors(sample.expected) if "null" not in str(e)] == [], sample.id


def test_every_value_is_printed_where_the_evidence_says(samples: list[Sample]) -> None:
    for sample in samples:
        for pointer, place in sample.evidence.items():
            printed = " ".join(word.text for word in words_in(sample.pages[place.page - 1], place.box))
            assert printed == place.raw or printed.strip(".,;:") == place.raw, (sample.id, pointer, printed, place.raw)


def test_values_have_evidence_and_nulls_have_none(samples: list[Sample]) -> None:
    for sample in samples:
        scalars = dict(leaves(sample.expected))
        assert {pointer for pointer, value in scalars.items() if value is not None} == set(sample.evidence), sample.id
    nulls = sum(value is None for sample in samples for _, value in leaves(sample.expected))
    assert nulls > len(samples)


def test_printed_texts_mean_the_values(samples: list[Sample]) -> None:
    """Numbers have the digits of what is printed, dates its year and day, texts are what is printed."""
    for sample in samples:
        scalars = dict(leaves(sample.expected))
        for pointer, place in sample.evidence.items():
            value, raw = scalars[pointer], place.raw
            if isinstance(value, bool):
                assert raw == ("X" if value else "")
            elif isinstance(value, int | float):
                shown = {f"{abs(value):.{digits}f}".replace(".", "").lstrip("0") for digits in range(4)}
                assert re.sub(r"\D", "", raw).lstrip("0") in shown, (sample.id, pointer)
            elif re.fullmatch(r"\d{4}-\d\d-\d\d", value):
                year, _, day = value.split("-")
                numbers = [number.zfill(2) for number in re.findall(r"\d+", raw)]
                assert day in numbers, (sample.id, pointer)
                assert year in numbers or year[2:] in numbers, (sample.id, pointer)
            elif pointer.split("/")[-1] not in sample.loose and value not in ENUM_VALUES:
                assert value.replace(" ", "") == raw.replace(" ", ""), (sample.id, pointer)


def test_our_reader_finds_the_same_words(samples: list[Sample]) -> None:
    for sample in samples[::2]:
        with open_document(sample.pdf) as document:
            read = [page.content for page in document.pages()]
        assert [(p.width_pt, p.height_pt) for p in read] == [
            (pytest.approx(p.width_pt, abs=0.01), pytest.approx(p.height_pt, abs=0.01)) for p in sample.pages
        ]
        for made, page in zip(sample.pages, read, strict=True):
            assert Counter(word.text for word in made.words) == Counter(word.text for word in page.words), sample.id
            for word in made.words:
                near = min(distance(word, other) for other in page.words if other.text == word.text)
                assert near < 1, (sample.id, word)
            assert not page.hidden_words


def distance(first: Word, second: Word) -> float:
    """The largest difference between two boxes, in points."""
    return max(abs(a - b) for a, b in zip(first.box.as_list(4), second.box.as_list(4), strict=True))


def test_rules_are_where_our_reader_sees_them(samples: list[Sample]) -> None:
    sample = next(s for s in samples if s.layout == "order/docket")
    with open_document(sample.pdf) as document:
        read = document.page(1).content.rules
    assert read
    for rule in read:
        nearest = min(max(abs(a - b) for a, b in zip(rule.as_list(), made.as_list(), strict=True)) for made in sample.pages[0].rules)
        assert nearest < 1.5, rule


def test_words_stay_on_the_page_and_do_not_overlap(samples: list[Sample]) -> None:
    for sample in samples:
        for page in sample.pages:
            lines: dict[int, list[Word]] = {}
            for word in page.words:
                assert word.box.x0 > 2, (sample.id, word)
                assert word.box.x1 < page.width_pt - 2, (sample.id, word)
                assert 0 < word.box.top < word.box.bottom < page.height_pt, (sample.id, word)
                lines.setdefault(round(word.box.bottom * 2), []).append(word)
            for line in lines.values():
                line.sort(key=lambda word: word.box.x0)
                for left, right in pairwise(line):
                    assert left.box.x1 <= right.box.x0 + 0.3, (sample.id, left.text, right.text)


def test_splits_share_no_layout_issuer_or_wording() -> None:
    layouts, issuers = {}, {}
    for split in SPLITS:
        made = [make_sample(seed, split, kind) for kind in KINDS for seed in range(25)]
        layouts[split] = {sample.layout for sample in made}
        issuers[split] = {sample.issuer for sample in made}
    for one, other in (("train", "validation"), ("train", "test"), ("validation", "test")):
        assert not layouts[one] & layouts[other]
        assert not issuers[one] & issuers[other]
    families = [(kind, family.id) for kind, recipe in KINDS.items() for family in recipe.families]
    assert len(families) == len(set(families))
    for recipe in KINDS.values():
        assert {family.split for family in recipe.families} == set(SPLITS)


def test_mixed_layouts_are_not_those_that_are_held_out() -> None:
    for recipe in KINDS.values():
        mixed = [family for family in recipe.families if family.id.startswith("mixed")]
        assert len(mixed) >= 40
        for family in mixed:
            assert family.split == "train"
            for other in recipe.families:
                if other.split != "train":
                    names = [name for name in family.__slots__ if name not in ("id", "split")]
                    assert 2 * sum(getattr(family, name) == getattr(other, name) for name in names) <= len(names)


def plain(text: str) -> str:
    """A wording without case and punctuation, which layouts change."""
    return re.sub(r"[^\w#%{}]", "", text.casefold())


def test_no_wording_of_one_split_is_in_another() -> None:
    every: dict[Split, set[str]] = {split: set() for split in SPLITS}
    for language in LANGUAGES:
        texts = {}
        for split in SPLITS:
            words = wording(language, split)
            texts[split] = {plain(text) for group in (words.labels, words.pools) for entries in group.values() for text in entries}
            every[split] |= {plain(text) for entries in words.labels.values() for text in entries}
        for one, other in (("train", "validation"), ("train", "test"), ("validation", "test")):
            assert not texts[one] & texts[other], language
    assert not every["test"] & every["train"]
    for concept in concepts().values():
        assert len({text for texts_ in concept.descriptions.values() for text in texts_}) == sum(map(len, concept.descriptions.values()))
    described = {split: {plain(text) for concept in concepts().values() for text in concept.descriptions[split]} for split in SPLITS}
    assert not described["train"] & (described["validation"] | described["test"])


def test_train_has_several_wordings_of_every_concept() -> None:
    for language in LANGUAGES:
        for name, entries in wording(language, "train").labels.items():
            assert len(entries) == len(set(entries)) >= (2 if name.startswith("s_") or name == "thanks" else 3), (language, name)
    for concept in concepts().values():
        assert len(concept.descriptions["train"]) >= 4


def test_every_language_and_split_has_the_same_concepts_in_printable_letters() -> None:
    base = wording("en", "train")
    for language in LANGUAGES:
        for split in SPLITS:
            words = wording(language, split)
            assert (set(words.labels), set(words.pools)) == (set(base.labels), set(base.pools))
            for text in [text for group in (words.labels, words.pools) for entries in group.values() for text in entries]:
                assert text.strip()
                assert text_width(text.upper(), "Times-Bold", 10) > 0


def test_lines_and_totals_add_up() -> None:
    checked = 0
    for kind in ("invoice", "order"):
        for seed in range(150):
            values = printed_values(seed, kind)
            amounts = sum(cents(value) for tag, value in values.items() if re.fullmatch(r"items/\d+/amount", tag))
            net = amounts - cents(values.get("discount")) + cents(values.get("shipping"))
            assert cents(values["subtotal"]) == net
            assert cents(values["total"]) == net + cents(values["tax"])
            if "balance_due" in values:
                assert cents(values["balance_due"]) == cents(values["total"]) - cents(values["paid"])
                checked += 1
            for row in range(sum(tag.endswith("/amount") for tag in values)):
                cell = {name: values.get(f"items/{row}/{name}") for name in ("quantity", "unit_price", "line_discount", "amount")}
                factor = 1 - (cell["line_discount"].data if cell["line_discount"] else 0) / 100
                assert abs(cell["quantity"].data * cell["unit_price"].data * factor - cell["amount"].data) < 0.0051
    assert checked > 5


def test_receipts_and_statements_add_up() -> None:
    for seed in range(120):
        values = printed_values(seed, "receipt")
        amounts = sum(cents(value) for tag, value in values.items() if re.fullmatch(r"items/\d+/amount", tag))
        if "subtotal" in values:
            assert cents(values["total"]) == cents(values["subtotal"]) + cents(values["tax"])
        assert amounts in (cents(values["total"]), cents(values.get("subtotal")))
        if "change" in values:
            assert cents(values["change"]) == cents(values["cash"]) - cents(values["total"])
        values = printed_values(seed, "statement")
        moved = sum(
            cents(value) * (-1 if tag.endswith("/debit") else 1)
            for tag, value in values.items()
            if re.fullmatch(r"bookings/\d+/(booking_amount|debit|credit)", tag)
        )
        assert cents(values["closing"]) == cents(values["opening"]) + moved
        if "credits" in values:
            assert cents(values["credits"]) - cents(values["debits"]) == moved


def printed_values(seed: int, kind: KindName) -> dict[str, Printed]:
    """Everything that a document prints, by tag."""
    scene = new_scene(Random(seed), "train")
    recipe = KINDS[kind]
    sheet, _ = recipe.draw(scene, next(f for f in recipe.families if f.split == "train"))
    return sheet.canvas.values


def cents(value: Printed | None) -> int:
    return round(value.data * 100) if value else 0


def test_tables_run_over_pages_with_their_headings() -> None:
    long = [make_sample(seed, "train", "statement") for seed in range(40)]
    long = [sample for sample in long if len(sample.pages) > 1]
    assert long
    for sample in long:
        first, second = ({word.text for word in page.words if word.box.top < 500} for page in sample.pages[:2])
        assert len(first & second) >= 3


def test_schemas_vary() -> None:
    made = [make_sample(seed, "train") for seed in range(250)]
    texts = [json.dumps(sample.schema) for sample in made]
    for sign in (
        '"enum"',
        '"array"',
        '"required"',
        '"additionalProperties"',
        '"field_1"',
        '"boolean"',
        '"null"',
        '"invoiceNumber"',
        "nummer",
    ):
        assert any(sign in text for text in texts), sign
    assert any("description" not in text for text in texts)
    assert any(isinstance(v, dict) for sample in made for v in sample.expected.values())
    assert any(v == [] for sample in made for v in sample.expected.values())
    assert {sample.language for sample in made} == set(LANGUAGES)


def test_account_numbers_have_right_check_digits() -> None:
    rng = Random(1)
    for locale in LOCALES:
        text = iban(locale, rng)
        if text:
            moved = text[4:] + text[:4]
            assert int("".join(str(int(sign, 36)) for sign in moved)) % 97 == 1, locale.code


def test_wrapping_keeps_every_word() -> None:
    look = Look("Helvetica", 10)
    lines = wrap("a long line of words that does not fit", 60, look)
    assert " ".join(lines) == "a long line of words that does not fit"
    assert all(look.width(line) <= 60 for line in lines)
    assert wrap("unbreakable", 5, look) == ("unbreakable",)


def test_canvas_remembers_the_first_print_of_a_value() -> None:
    canvas = Canvas(200, 100)
    canvas.new_page()
    canvas.value("a", Printed("x (1)\\", ("x (1)\\",)), (20, 30), Look("Times-Roman", 10))
    canvas.value("a", Printed("x (1)\\", ("x (1)\\",)), (20, 60), Look("Times-Roman", 10))
    assert canvas.places["a"].box.bottom < 40
    with open_document(canvas.pdf("(title")) as document:
        assert [word.text for word in document.page(1).content.words] == ["x", "(1)\\"] * 2


def test_pictures_are_seeded_and_have_the_size_of_the_page() -> None:
    sample = make_sample(2, "test", "receipt")
    clean, scan = sample.picture(72), sample.picture(72, degrade=1)
    assert clean.size == scan.size == (-(-sample.pages[0].width_pt // 1), -(-sample.pages[0].height_pt // 1))
    assert scan.tobytes() == sample.picture(72, degrade=1).tobytes()
    assert scan.tobytes() != sample.picture(72, degrade=2).tobytes() != clean.tobytes()
    with pytest.raises(ConfigError, match="page 9"):
        sample.picture(72, page=9)


def test_what_is_asked_for_as_absent_is_not_on_the_page() -> None:
    """Kinds of values that can be told from their form alone."""
    forms = {"email": re.compile(r"\S+@\S+"), "iban": re.compile(r"\b(GB|DE|CH|FR|ES|IT|NL)\d\d( ?[A-Z0-9]{4}){3}")}
    absent = 0
    for seed in range(200):
        sample = make_sample(seed, "train", "invoice")
        text = "\n".join(" ".join(word.text for word in page.words) for page in sample.pages)
        for key, form in forms.items():
            if key in sample.expected and sample.expected[key] is None:
                assert not form.search(text), (sample.id, key)
                absent += 1
    assert absent > 5
