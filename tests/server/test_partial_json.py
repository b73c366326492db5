"""Values of an answer while it is being written."""

from __future__ import annotations

from pagelift.server.partial import PartialJson


def test_values_come_as_soon_as_they_are_complete() -> None:
    partial = PartialJson()
    pieces = ['{"a/b": "x', 'y", "rows": [', "1", "2, {", "}], ", '"e": [ ]', "}"]
    assert [partial.put(piece) for piece in pieces] == [[], [("/a~1b", "xy")], [], [("/rows/0", 12)], [("/rows/1", {})], [("/e", [])], []]


def test_text_that_is_no_json_gives_nothing_more() -> None:
    partial = PartialJson()
    assert partial.put('{"a": 1, "b": oops, "c": 2}') == [("/a", 1)]
    assert partial.put('"d": 3}') == []
