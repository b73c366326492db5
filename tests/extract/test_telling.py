"""Values of an answer while it is being written."""

from __future__ import annotations

from typing import cast

from pagelift.core import Json
from pagelift.extract.questions import Question, SeenPage
from pagelift.extract.telling import Teller, Told
from pagelift.schema import Schema

ANY = Schema.load({"type": "object"})


def teller(question: Question | None = None) -> tuple[Teller, list[Told]]:
    """One that tells a list."""
    told: list[Told] = []
    return Teller(told.append, question or Question(ANY, ())), told


def news(told: list[Told]) -> list[tuple[str, Json]]:
    """What was told since it was last asked."""
    found = [(one.pointer, one.value) for one in told]
    told.clear()
    return found


def test_values_come_as_soon_as_they_are_complete() -> None:
    one, told = teller()
    found = []
    for piece in ['{"a/b": "x', 'y", "rows": [', "1", "2, {", "}], ", '"e": [ ]', "}"]:
        one.put(piece)
        found.append(news(told))
    assert found == [[], [("/a~1b", "xy")], [], [("/rows/0", 12)], [("/rows/1", {})], [("/e", [])], []]


def test_text_that_is_no_json_gives_nothing_more() -> None:
    one, told = teller()
    one.put('{"a": 1, "b": oops, "c": 2}')
    assert news(told) == [("/a", 1)]
    one.put('"d": 3}')
    assert news(told) == []


def test_what_changed_afterwards_is_told_again_in_its_place() -> None:
    one, told = teller()
    one.put('{"a": 1, "b": [{"c": "x"}, {"c": "y"}], "d": 1}')
    news(told)
    one.settle('{"a": 1, "b": [{"c": "x"}, {"c": "z"}], "d": 1.0, "e": true}')
    assert news(told) == [("/b/1/c", "z"), ("/d", 1.0), ("/e", True)]
    one.settle('{"a": true, "b": [{"c": "x"}, {"c": "z"}], "d": 1.0, "e": true}')
    assert news(told) == [("/a", True)]


def test_a_list_that_is_continued_is_counted_on() -> None:
    one, told = teller(Question(ANY, (), after={"/a/rows": [5]}, offsets={"/a/rows": 40}))
    one.put('{"a": {"rows": [{"x": 1}, [2]], "more": [3]}, "rows": [4]}')
    assert news(told) == [("/a/rows/40/x", 1), ("/a/rows/41/0", 2), ("/a/more/0", 3), ("/rows/0", 4)]
    one, told = teller(Question(ANY, (), offsets={"": 2}))
    one.put("[[1], 2]")
    assert news(told) == [("/2/0", 1), ("/3", 2)]


def test_values_of_a_part_of_a_document_come_with_its_pages() -> None:
    class Numbered:
        def __init__(self, number: int) -> None:
            self.number = number

    pages = tuple(SeenPage(cast("SeenPage", Numbered(number))) for number in (3, 4, 5))  # type: ignore[arg-type]
    one, told = teller(Question(ANY, pages, page_count=9))
    one.put('{"a": 1}')
    assert told == [Told("/a", 1, (3, 5))]
