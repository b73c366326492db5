"""Plans: windows of pages, groups of fields, and what is left of an answer that was cut off."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extract.reader import FakePage, Reader
from extract.test_long_work import SCHEMA
from pagelift import ConfigError, EngineError
from pagelift.core import Box, Budget, Field, PageContent
from pagelift.extract.evidence_tree import Rows, grow, unfold
from pagelift.extract.fields import empty_pointers, field_groups, missing, restrict, weight
from pagelift.extract.merge import Border, drop_repeated, likeness, merge
from pagelift.extract.plan import make_plan, page_windows
from pagelift.extract.questions import Question, SeenPage
from pagelift.schema import Schema

LEAF = st.sampled_from(
    [{"type": "string"}, {"type": ["integer", "null"]}, {"enum": ["a", "b"]}, {"type": "array", "items": {"type": "number"}}]
)
NAMES = st.sampled_from(["a", "b", "c", "d", "e/~", "f"])


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    properties = st.dictionaries(NAMES, inner, min_size=1, max_size=5)
    return properties.map(lambda p: {"type": "object", "properties": p, "required": sorted(p)[:1]})


SCHEMAS = objects(st.recursive(LEAF, objects, max_leaves=20))


@given(SCHEMAS, st.integers(1, 12))
def test_groups_ask_for_everything_once(original: Any, most: int) -> None:
    schema = Schema.load(original)
    groups = field_groups(schema, most)
    parts = [restrict(schema, group) for group in groups]
    asked = [pointer for part in parts for pointer, _ in empty_pointers(part.root)]
    assert asked == [pointer for pointer, _ in empty_pointers(schema.root)]
    for group, part in zip(groups, parts, strict=True):
        assert weight(part.root) <= most or len(group) == 1 or group == ((),)
    empty: Any = {}
    for part in parts:
        empty = unfold(merge(grow(empty, {}), grow(part.conform({}).data, {}), Border(frozenset())))[0]
    assert schema.is_valid(schema.conform(empty).data)


@pytest.mark.parametrize(
    "more",
    [
        {"if": {"required": ["a"]}, "then": {"required": ["b"]}},
        {"additionalProperties": {"type": "string"}},
        {"minProperties": 2},
        {"type": ["object", "null"]},
    ],
)
def test_properties_that_depend_on_each_other_stay_together(more: Any) -> None:
    schema = Schema.load({"type": "object", "properties": {name: {"type": "string"} for name in "abcdef"}, **more})
    assert field_groups(schema, 2) == [((),)]
    assert restrict(schema, ((),)) is schema
    assert missing(schema, {"a": "x"}, ["b"]) == ((),)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.integers(1, 20), st.integers(0, 3))
def test_windows_cover_all_pages_within_the_limit(sizes: list[int], limit: int, overlap: int) -> None:
    windows = page_windows(sizes, limit, overlap)
    assert all(window == tuple(range(window[0], window[-1] + 1)) for window in windows)
    assert sorted({k for window in windows for k in window}) == list(range(len(sizes)))
    for window in windows:
        assert sum(sizes[k] for k in window) <= limit or len(window) == 1
    for before, after in itertools.pairwise(windows):
        assert before[0] < after[0] <= before[-1] + 1
        assert before[-1] < after[-1]
        shared = before[-1] + 1 - after[0]
        assert shared <= overlap
        if shared < overlap and after[0] > before[0] + 1:  # one more page would leave no room for the next
            assert sum(sizes[after[0] - 1 : before[-1] + 2]) > limit


@given(st.integers(1, 30), st.integers(1, 400), st.integers(1, 3000), st.none() | st.integers(11, 5000), st.none() | st.integers(1, 400))
def test_plans_are_told_and_their_numbers_hold(
    pages: int, prompt_tokens: int, answer_tokens: int, context: int | None, well: int | None
) -> None:
    seen = [SeenPage(FakePage(number, PageContent(number, 600, 800))) for number in range(1, pages + 1)]
    budget = Budget(prompt_tokens=prompt_tokens, answer_tokens=answer_tokens, fields=4)
    told = make_plan(seen, SCHEMA, Reader(None, context=context, prompt_tokens=well), budget).to_dict()  # type: ignore[arg-type]
    assert told["questions"] == len(told["windows"]) * len(told["groups"])
    assert told["prompt_tokens_limit"] <= min(prompt_tokens, well or prompt_tokens)
    assert context is None or told["prompt_tokens_limit"] < max(context, 2)
    assert [path for group in told["groups"] for path in group] == ["/number", "/date", "/rows", "/customer", "/total"]
    assert {number for window in told["windows"] for number in window} == set(range(1, pages + 1))


class Measured(Reader):
    """A reader whose prompt is the schema; every character of it takes a token."""

    def prompt_text(self, question: Question) -> str:
        return json.dumps(question.schema.original)

    def text_tokens(self, text: str) -> int:
        return len(text)


def test_a_wide_schema_is_divided_further_where_its_prompt_would_fill_the_context() -> None:
    schema = Schema.load({"type": "object", "properties": {f"field_{k}": {"type": "string"} for k in range(100)}})
    pages = [SeenPage(FakePage(1, PageContent(1, 600, 800)))]
    reader: Any = Measured(None)  # type: ignore[arg-type]
    whole = make_plan(pages, schema, reader, Budget())
    tight = make_plan(pages, schema, reader, Budget(prompt_tokens=whole.tokens[0] - 1))
    assert len(whole.groups) == 1
    assert len(tight.groups) > 1
    assert sorted(path for group in tight.groups for path in group) == sorted((name,) for name in schema.original["properties"])


def test_a_schema_that_fills_the_context_is_told() -> None:
    pages = [SeenPage(FakePage(1, PageContent(1, 600, 800)))]
    with pytest.raises(EngineError, match=r"10 tokens without any page.* smaller schema"):
        make_plan(pages, SCHEMA, Reader(None, context=10), Budget())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong", [{"prompt_tokens": 0}, {"answer_tokens": 1.5}, {"fields": -1}, {"overlap_pages": -1}, {"follow_ups": True}]
)
def test_budgets_out_of_range_are_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Budget(**wrong)


def value(content: Any, status: Any = "found", page: int | None = 1, confidence: float = 0.9) -> Field:
    return Field("", content, status, str(content), page, Box(page or 0, 0, 10, 10) if page else None, (), confidence)


NULL = Field("", None, "absent", confidence=0.8)


@pytest.mark.parametrize(
    ("first", "second", "kept", "told"),
    [
        (value("a"), NULL, "a", False),
        (NULL, value("a", page=2), "a", False),
        (value("a", "unverified", None), value("b", page=2, confidence=0.1), "b", True),
        (value("a", confidence=0.6), value("b", page=2, confidence=0.7), "b", True),
        (value("a", confidence=0.7), value("b", page=2, confidence=0.6), "a", True),
        (value(1), value(True, "unverified", None), 1, True),
        (value(5), value(5, page=2), 5, False),
        (NULL, Field("", None, "not_attempted"), None, False),
    ],
)
def test_which_of_two_values_is_kept(first: Field, second: Field, kept: Any, told: bool) -> None:
    border = Border(frozenset())
    merged = merge({"v": first}, {"v": second}, border)
    data, fields = unfold(merged)
    assert data == {"v": kept}
    assert type(data["v"]) is type(kept)
    assert bool(border.warnings) == told
    if kept is None:
        assert fields["/v"].status == "not_attempted"


def test_what_was_read_in_two_shapes_is_told() -> None:
    border = Border(frozenset())
    assert unfold(merge({"v": value("a")}, {"v": Rows([value("b")])}, border))[0] == {"v": "a"}
    assert "two shapes" in border.warnings[0]
    assert unfold(merge({"v": NULL}, {"v": Rows([value("b")])}, border))[0] == {"v": ["b"]}


@pytest.mark.parametrize(
    ("said", "joints", "kept"),
    [
        ("abcbcd", [3], "abcd"),
        ("abcabcd", [3], "abcd"),
        ("abccdde", [3, 5], "abcde"),
        ("abab", [3], "abab"),  # rows that look alike, not a repetition: it would have to begin with the a before
        ("abcb", [3], "abcb"),
        ("aa", [], "aa"),
    ],
)
def test_only_what_a_continuation_begins_with_can_be_a_repetition(said: str, joints: list[int], kept: str) -> None:
    rows = Rows([value(sign) for sign in said])
    drop_repeated(rows, joints)
    assert unfold(rows)[0] == list(kept)


def test_rows_without_places_are_the_same_when_their_values_are() -> None:
    rows = [{"a": value(name, "unverified", None), "b": value(k, "unverified", None)} for k, name in enumerate("xyz")]
    merged = merge(Rows([*rows[:2]]), Rows([*rows[1:]]), Border(frozenset({1})))
    assert unfold(merged)[0] == [{"a": "x", "b": 0}, {"a": "y", "b": 1}, {"a": "z", "b": 2}]
    apart = merge(Rows([*rows[:2]]), Rows([*rows[1:]]), Border(frozenset()))
    assert len(unfold(apart)[0]) == 4
    assert likeness({"a": value("x")}, {"a": value("x", page=2)}) < 0
