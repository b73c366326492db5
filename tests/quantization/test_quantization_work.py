"""How long a job takes, from how fast it went so far."""

from __future__ import annotations

import pytest

from pagelift.commands.quantize import StageBar, duration
from pagelift.quantization.work import PRICES, Forecast, Work, priced, together


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_each_kind_goes_on_as_fast_as_it_went() -> None:
    clock = Clock()
    forecast = Forecast([("first", {"run": 100, "errors": 10}), ("second", {"run": 50, "gptq": 8})], clock)
    forecast.enter("first", {"run": 100, "errors": 10})
    assert forecast.job_left == 0
    clock.now += 20
    forecast.advance("run", 10)
    assert not forecast.is_founded
    clock.now += 3
    forecast.advance("errors", 1)
    assert forecast.is_founded
    assert forecast.stage_left == pytest.approx(90 * 2 + 9 * 3)
    assert forecast.job_left == pytest.approx(90 * 2 + 9 * 3 + 50 * 2 + 8 * PRICES["gptq"] * 23 / 11)


def test_what_was_done_before_says_nothing_of_the_pace() -> None:
    clock = Clock()
    forecast = Forecast(clock=clock)
    forecast.enter("only", {"run": 100})
    clock.now += 1
    forecast.skip({"run": 60})
    assert forecast.job_left == 0
    clock.now += 6
    forecast.advance("run", 3)
    assert forecast.job_left == pytest.approx(37 * 2)


def test_stages_that_are_left_out_are_over() -> None:
    clock = Clock()
    forecast = Forecast([("first", {"run": 10}), ("second", {"run": 1000}), ("third", {"run": 5})], clock)
    forecast.enter("first", {"run": 10})
    clock.now += 10
    forecast.advance("run", 10)
    assert forecast.job_left == pytest.approx(1005)
    forecast.enter("third", {"run": 6})
    assert forecast.stage_left == forecast.job_left == pytest.approx(6)


def test_work_adds_up() -> None:
    works: list[Work] = [{"run": 2}, {"run": 3, "nearest": 1}]
    assert together(works) == {"run": 5, "nearest": 1}
    assert priced(together(works)) == 5 + PRICES["nearest"]


def test_the_whole_job_is_told_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with StageBar(clock) as bar:
        bar.begin([("block scores", {"run": 100}), ("rounding", {"run": 3600})])
        bar.stage("block scores", {"run": 100})
        clock.now += 30
        bar.advance("run", 30)
        bar.advance("run", 10)
    told = " ".join(capsys.readouterr().err.split())
    assert told.count("block scores: about 1 min left, 1 h 1 min for the whole job, after 30 s") == 1


def test_a_log_is_told_every_five_minutes(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with StageBar(clock) as bar:
        bar.begin([("rounding", {"run": 36_000})])
        bar.stage("rounding", {"run": 36_000})
        for _ in range(60):
            clock.now += 60
            bar.advance("run", 60)
    assert " ".join(capsys.readouterr().err.split()).count("rounding: about") == 11  # after 1, 4, 10, 16, ... 58 minutes


def test_durations() -> None:
    assert [duration(seconds) for seconds in (4.4, 60, 3599, 7260)] == ["4 s", "1 min", "59 min", "2 h 1 min"]
