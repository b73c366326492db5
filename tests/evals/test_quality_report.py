"""Tables, plot and page section of `pagelift bench` from rows that were measured before."""

from typing import Any

import numpy as np
import pytest

from pagelift import ConfigError
from pagelift.evals.bootstrap import Shares
from pagelift.evals.plots import Panel, Point, draw_panels, linear_scale, log_scale
from pagelift.evals.quality_report import markdown, plot, put_section
from pagelift.evals.standings import ByDocument


def row(target: str, method: str, kl: float, size: int) -> dict[str, Any]:
    shares = Shares(np.array([kl, 3 * kl]), np.array([1.0, 3.0]))
    right = Shares(np.array([1.0, 2.0]), np.array([2.0, 2.0]))
    found = {
        "bytes": size, "bits_per_weight": 4.5, "peak_bytes": 2e8, "prefill_tokens_per_s": 100.0, "decode_tokens_per_s": 9.0,
        "answer_tokens_per_s": None, "passes_per_token": 0.3, "value_tokens": 4, "kl_mean": kl, "kl_interval": [kl, kl], "kl_p99": kl,
        "top1": 0.9, "perplexity_ratio": 1.01, "field_accuracy": 0.75, "document_accuracy": 0.5, "false_fills": 1, "null_fields": 8,
        "flips": {"right_to_wrong": 2, "wrong_to_right": 1}, "count": 2, "by_document": ByDocument(shares, right, right).to_dict(),
    }  # fmt: skip
    name = target if method == "bf16" else f"{target} {method}"
    return {
        "variant": name,
        "target": target,
        "method": method,
        "backends": ["cpu", "cpu-exact"],
        "materials": {"test split": found, "dev": found},
    }


ROWS = [row("bf16", "bf16", 0.0, 100_000_000), row("oQ4", "oq", 0.02, 40_000_000), row("oQ4", "best", 0.005, 39_000_000)]


def test_every_variant_is_in_every_table() -> None:
    text = markdown("nano", ROWS, "nano.png")
    lines = text.splitlines()
    assert sum(line.startswith("| oQ4 best |") for line in lines) == 3  # sizes, and quality on two materials
    assert "| oQ4 best | 39.0 | 4.50 | 200 | 100.0 | 9.0 | - | 0.300 |" in lines
    assert "| oQ4 oq | 0.02 | 0.02 to 0.02 | 0.02 | 90.00% | x1.0100 | 75.00% | 50.0% | 1 of 8 | 2 | 1 |" in lines
    assert "| oQ4 | 0.25 | -0.015 [-0.015, -0.015] | +0.00 [+0.00, +0.00] | 0.975 |" in lines
    assert "![Quality against bytes of nano](nano.png)" in lines


def test_the_reference_alone_has_no_comparison() -> None:
    text = markdown("nano", ROWS[:1])
    assert "beside" not in text
    assert "| bf16 | 0 |" in text
    assert plot(ROWS[:1]).size == plot(ROWS).size


def test_a_section_is_replaced_and_the_rest_of_the_page_stays() -> None:
    page = put_section("# Title\n\ntext\n", "nano", "one")
    assert page.startswith("# Title\n\ntext\n\n<!-- begin: pagelift bench nano -->\n\none\n")
    page += "\nafter\n"
    again = put_section(put_section(page, "other", r"two \1"), "nano", "three")
    assert "one" not in again
    assert "three" in again
    assert r"two \1" in again
    assert "\nafter\n" in again
    assert put_section(again, "nano", "three") == again
    with pytest.raises(ConfigError, match="only one of the lines"):
        put_section(page.replace("<!-- end: pagelift bench nano -->", ""), "nano", "x")


@pytest.mark.parametrize("values", [[1.0, 2.0], [0.0, 0.0], [5e9, 5e9 + 1], [1e-7, 1e5]])
def test_scales_hold_their_values(values: list[float]) -> None:
    scale = linear_scale(values, 100, 10)
    assert all(10 <= scale(value) <= 100 for value in [*values, *scale.ticks])
    assert 2 <= len(scale.ticks) <= 7
    if min(values) > 0:
        log = log_scale(values, 100, 10)
        assert all(10 <= log(value) <= 100 for value in [*values, *log.ticks])
        assert log.ticks


def test_points_are_drawn_where_they_are() -> None:
    dark = np.asarray(draw_panels([Panel("t", [Point(1, 1, "a", "s"), Point(2, 2, "b", "s", (1.5, 3))])]).convert("L")) < 128
    assert dark.any()
    nothing = np.asarray(draw_panels([Panel("t", [Point(1, 0, "a", "s")], log=True)]).convert("L")) < 128
    assert 0 < nothing.sum() < dark.sum()
