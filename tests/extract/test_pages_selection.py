"""Page selections as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagelift import ConfigError
from pagelift.extract import select_pages


@pytest.mark.parametrize(
    ("text", "count", "pages"),
    [
        (None, 3, [1, 2, 3]),
        ("2", 3, [2]),
        ("1-3,7", 9, [1, 2, 3, 7]),
        ("3,1,3-3", 3, [1, 3]),
        (" 2 - 3 , 1", 3, [1, 2, 3]),
        ("2-", 4, [2, 3, 4]),
        ("2-99", 4, [2, 3, 4]),
        ([3, 1], 3, [1, 3]),
    ],
)
def test_selections(text: str | list[int] | None, count: int, pages: list[int]) -> None:
    assert select_pages(text, count) == pages


@pytest.mark.parametrize("text", ["", ",", "0", "a", "3-1", "-2", "1--2", "1.5", "9", "9-", "1" * 30, [], [0], [-1], [5]])
def test_wrong_selections(text: str | list[int]) -> None:
    with pytest.raises(ConfigError):
        select_pages(text, 4)


@given(st.sets(st.integers(1, 30), min_size=1))
def test_any_set_of_pages_can_be_written(pages: set[int]) -> None:
    assert select_pages(",".join(map(str, pages)), 30) == sorted(pages)
