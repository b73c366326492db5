"""Which matrix gets how many bits without measuring its output: the same for all, at random, and the plan of oQ.

These are the controls that an allocation by measurement has to beat at the same bytes. None of them touches the vision tower.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random

from pagelift.backends.tensors import BITS, GROUP_SIZES
from pagelift.weights.quant.formats import Allocation, Format, Module, Sizes
from pagelift.weights.quant.targets import SLACK, Target, base_allocation, base_format, wider

FLOORS = {"in_proj_a": 5, "in_proj_b": 5, "v_proj": 6, "out_proj": 5, "o_proj": 5, "in_proj_z": 5, "down_proj": 5}
"""The fewest bits of some roles in the plan of oQ, in the order in which they get them."""
OUTER = ("lm_head", "text.embed_tokens")
OUTER_BITS = 8
HIGH, MIDDLE = 0.5, 0.2
"""Shares of the largest score from which a block's matrices get eight bits, or two more."""


def uniform(sizes: Sizes, budget: int) -> Allocation:
    """The widest format that all matrices can have in `budget` bytes; what is left goes to matrices at equal distances, one bit each."""
    allocation = _widest(sizes, budget)
    left = budget - sizes.nbytes(allocation)
    modules = [module for module in sizes.text_modules if module.name in allocation]
    steps = {m.name: m.nbytes(raised) - m.nbytes(allocation[m.name]) for m in modules if (raised := wider(allocation[m.name]))}
    share = left / max(1, sum(steps.values()))
    due = 0.0
    for later in (False, True):  # the second time, whatever still fits
        for module in modules if not later else sorted(modules, key=lambda module: -module.parameters):
            step = steps.get(module.name, 0)
            due += share * step
            raised = wider(allocation[module.name])
            if raised and 0 < step <= left and (later or due >= step / 2):
                allocation[module.name] = raised
                left -= steps.pop(module.name)
                due -= step
    return allocation


def random(sizes: Sizes, budget: int, seed: int = 0) -> Allocation:
    """Matrices drawn at random get one bit more, again and again, from one bit below `uniform` on, until `budget` bytes are used up."""
    rng = Random(seed)
    base = _widest(sizes, budget)
    allocation = {name: Format(BITS[max(0, BITS.index(form.bits) - 1)], form.group_size) for name, form in base.items()}
    size = sizes.nbytes(allocation)
    open_modules = [module for module in sizes.text_modules if module.name in allocation]
    while open_modules:
        module = rng.choice(open_modules)
        form = allocation[module.name]
        raised = wider(form)
        more = module.nbytes(raised) - module.nbytes(form) if raised else 0
        if raised is None or size + more > budget:
            open_modules.remove(module)
            continue
        allocation[module.name] = raised
        size += more
    return allocation


def oq(sizes: Sizes, scores: Mapping[int, float], target: Target) -> Allocation:
    """The plan of oQ. scores: of each decoder block, how much its output suffers from one step fewer bits.

    Base width everywhere; head and embeddings 8 bits if that stays within 1% of the target and below the cap; then floors by role, then
    blocks by their scores, each step only while the target is not exceeded; the vision tower stays as it is (the published
    description of oQ).
    """
    allocation = base_allocation(sizes, target.base_bits)
    size, budget = sizes.nbytes(allocation), target.budget(sizes)
    outer_limit = min(target.limit(sizes), sizes.budget(target.bits * (1 + SLACK)))
    for module, bits, outer in _fill_order(sizes, scores, target.base_bits):
        form = allocation.get(module.name)
        if form is None or form.bits > bits or (form.bits == bits and bits < BITS[-1]):
            continue
        raised = Format(bits, form.group_size if form.bits < bits else GROUP_SIZES[0])
        more = module.nbytes(raised) - module.nbytes(form)
        if size + more <= (outer_limit if outer else budget):
            allocation[module.name] = raised
            size += more
    return allocation


def _fill_order(sizes: Sizes, scores: Mapping[int, float], base_bits: int) -> Iterable[tuple[Module, int, bool]]:
    """Modules with the bits that each may get, in the order in which they ask; and whether they may go up to the cap."""
    by_name = sizes.by_name
    yield from ((by_name[name], OUTER_BITS, True) for name in OUTER if name in by_name)
    blocks = sorted(scores, key=lambda block: (-scores[block], block))
    inside = {block: [module for module in sizes.text_modules if module.block == block] for block in blocks}
    for role, floor in FLOORS.items():
        yield from ((module, floor, False) for block in blocks for module in inside[block] if module.role == role)
    most = max(scores.values(), default=0.0)
    for block in blocks:
        share = scores[block] / most if most else 0.0
        steps = len(BITS) if share >= HIGH else 2 if share >= MIDDLE else 1
        bits = BITS[min(BITS.index(base_bits) + steps, len(BITS) - 1)]
        yield from ((module, bits, False) for module in sorted(inside[block], key=lambda module: module.parameters))
    for block in blocks:  # what is still left, in the smallest steps; after eight bits come groups of 32
        for module in inside[block]:
            yield from ((module, bits, False) for bits in BITS)


def _widest(sizes: Sizes, budget: int) -> dict[str, Format]:
    """Every matrix in the widest usual format that fits, else the narrowest."""
    allocation = base_allocation(sizes, BITS[0])
    for bits in BITS[1:]:
        raised = {module.name: form for module in sizes.text_modules if (form := base_format(bits, module.in_features))}
        if sizes.nbytes(raised) > budget:
            break
        allocation = raised
    return allocation
