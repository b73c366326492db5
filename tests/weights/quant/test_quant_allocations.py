"""Sizes, targets and allocations on the golden checkpoint and on the shapes of the 9B."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagelift.core.errors import ConfigError
from pagelift.weights import load_checkpoint
from pagelift.weights.quant import allocations
from pagelift.weights.quant.formats import DENSE_BYTES, Allocation, Format, Module, Sizes
from pagelift.weights.quant.plain import write_plain
from pagelift.weights.quant.targets import PUBLISHED, Target, base_format, parse_target, target_of_size
from pagelift.weights.summary import summarise

ROOT = Path(__file__).parents[3]
DOCUMENT = ROOT / "tests" / "golden" / "document"


def sizes_of_9b() -> Sizes:
    """By the list of tensors that the benchmarks make."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        from shapes import SHAPES, Linear, tensors
    finally:
        sys.path.pop(0)
    modules, small = [], 0
    vision = 0
    for tensor in tensors(SHAPES["9b"]):
        name = tensor.name.replace("language_model.model.", "text.").replace("language_model.", "")
        if isinstance(tensor, Linear):
            modules.append(Module(name, tensor.out_features, tensor.in_features))
            continue
        count = 1
        for side in tensor.shape:
            count *= side
        if name.startswith("vision"):
            vision += count * DENSE_BYTES
        else:
            small += count
    parameters = small + sum(module.parameters for module in modules)
    return Sizes(tuple(modules), small * DENSE_BYTES + vision, small * DENSE_BYTES, parameters)


LARGE = sizes_of_9b()
SCORES = st.lists(st.floats(0, 1), min_size=32, max_size=32).map(lambda values: dict(enumerate(values)))


@settings(max_examples=5)
@pytest.mark.parametrize("name", ["oQ3", "oq3.5", "oQ4", "oQ5", "oQ6", "oQ8", "4.25", "2.8", "7"])
@given(scores=SCORES)
def test_plan_of_oq_meets_its_target(name: str, scores: dict[int, float]) -> None:
    target = parse_target(name)
    plan = allocations.oq(LARGE, scores, target)
    assert LARGE.text_bits(plan) == pytest.approx(target.bits, rel=0.01)
    assert LARGE.text_bits(plan) <= target.cap
    assert all(form.bits >= target.base_bits for form in plan.values())


def test_oq_protects_the_blocks_that_suffer() -> None:
    scores = dict.fromkeys(range(32), 0.01) | {5: 1.0, 9: 0.3}
    plan = allocations.oq(LARGE, scores, parse_target("oQ3.5"))

    def bits(block: int) -> float:
        modules = [module for module in LARGE.modules if module.block == block]
        return sum(plan[m.name].bits * m.parameters for m in modules) / sum(m.parameters for m in modules)

    assert bits(5) > bits(9) > bits(20)
    assert plan["text.layers.3.self_attn.v_proj"].bits >= 6


@settings(max_examples=10)
@given(st.floats(2.6, 8.4), st.integers(0, 5))
def test_controls_use_up_their_bytes_and_no_more(bits: float, seed: int) -> None:
    budget = LARGE.budget(bits)
    for allocation in (allocations.uniform(LARGE, budget), allocations.random(LARGE, budget, seed)):
        assert 0.985 * bits < LARGE.bits_of(LARGE.nbytes(allocation)) <= bits + 1e-6
    assert allocations.random(LARGE, budget, seed) == allocations.random(LARGE, budget, seed)


def test_uniform_has_two_neighbouring_widths_at_most() -> None:
    widths = sorted({form.bits for form in allocations.uniform(LARGE, LARGE.budget(4.6)).values()})
    assert widths in ([4], [4, 5])


def test_sizes_are_those_of_the_files(tmp_path: Path) -> None:
    checkpoint = load_checkpoint(DOCUMENT)
    sizes = Sizes.of(checkpoint)
    cycle = [Format(2, 32), Format(3, 64), Format(5, 32), Format(8, 64), None]
    chosen = {module.name: cycle[k % 5] for k, module in enumerate(sizes.modules)}
    allocation: Allocation = {
        name: form for name, form in chosen.items() if form is not None and form.fits(sizes.by_name[name].in_features)
    }
    write_plain(checkpoint, tmp_path, allocation, tied=False)
    packed = load_checkpoint(tmp_path)
    assert sum(tensor.array.nbytes for tensor in packed.tensors.values()) == sizes.nbytes(allocation)
    text = sum(tensor.array.nbytes for name, tensor in packed.tensors.items() if not name.startswith("vision."))
    assert sizes.text_bits(allocation) == 8 * text / sizes.text_parameters
    with pytest.raises(ConfigError, match="quantized already"):
        Sizes.of(packed)


def test_rows_that_do_not_divide_stay_as_they_are() -> None:
    assert base_format(4, 4304) is None
    assert base_format(4, 96) == Format(4, 32)
    assert base_format(4, 4096) == Format(4, 64)


def test_targets_by_name_number_and_size() -> None:
    assert parse_target("OQ4") is PUBLISHED["oq4"]
    assert parse_target("4.25") == Target("4.25", 3, 4.25, 4.25 * 1.01)
    target = target_of_size(LARGE, 5_500_000_000)
    assert target.limit(LARGE) <= 5_500_000_000
    assert target.budget(LARGE) > 0.99 * 5_500_000_000
    for wrong in ("four", "1.5", "oQ2", "-4"):
        with pytest.raises(ConfigError, match="target"):
            parse_target(wrong)
    with pytest.raises(ConfigError, match=r"needs .* GB at least"):
        target_of_size(LARGE, 1_000_000_000)


def test_summary_of_a_written_checkpoint(tmp_path: Path) -> None:
    checkpoint = load_checkpoint(DOCUMENT)
    sizes = Sizes.of(checkpoint)
    allocation = allocations.uniform(sizes, sizes.budget(5.0))
    write_plain(checkpoint, tmp_path, allocation, tied=False)
    from pagelift.models import load_config

    summary = summarise(tmp_path, load_config(tmp_path).quantization)
    assert summary.layout == "mlx"
    assert summary.size == sizes.nbytes(allocation)
