"""What the errors of each matrix cost at the model's output.

A matrix of some role in some quarter of the depth costs coefficient * error, where the error is that of its own output under the
format (tr(D H D^T)), and the coefficient says what such an error does to the predictions of answers. In the version where all
matrices have the usual width, one group at a time gets another one; how far the predictions then are from those of that version,
not from the original's, is what the group's own change does. (Differences of two divergences from the original would contain the
product of this change and all other errors, which is larger and has either sign.) Errors of rounding twice add up. Only that width is
measured; the errors of all formats are known from the weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pagelift.backends.tensors import BITS
from pagelift.quantization.lockstep import Findings
from pagelift.weights.quant.formats import Allocation, Format, Module, Sizes
from pagelift.weights.quant.knapsack import Option, solve
from pagelift.weights.quant.targets import base_allocation, base_format

QUARTERS = 4
VISION_BITS, VISION_MEASURED = 8, 4
VISION_LEAST = 4
"""Documents for quantization may not show all that pictures are needed for, least of all to models that read words too."""
LOWERED_FROM = 4
"""From this width on a group loses a step to be measured; below it gains one, because two bits are another regime."""
SMALLEST = 1e-12

Costs = dict[str, dict[Format, float]]


@dataclass(frozen=True, slots=True)
class Group:
    """Matrices of one role in one quarter of the depth."""

    role: str
    name: str
    modules: tuple[Module, ...]


def groups_of(sizes: Sizes, vision: bool = True) -> tuple[Group, ...]:
    """All groups of a model; in the vision tower, roles alone. vision: whether the tower's matrices are among them."""
    blocks = 1 + max((module.block for module in sizes.modules if module.block is not None), default=0)
    found: dict[tuple[str, str], list[Module]] = {}
    for module in sizes.modules if vision else sizes.text_modules:
        role = ("" if module.is_text else "vision.") + module.role
        quarter = "" if module.block is None else f" {1 + module.block * QUARTERS // blocks}/{QUARTERS}"
        found.setdefault((role, role + quarter), []).append(module)
    return tuple(Group(role, name, tuple(modules)) for (role, name), modules in found.items())


def operating_point(sizes: Sizes, base_bits: int, vision: bool = True) -> dict[str, Format]:
    """The version that groups are measured from: the usual width everywhere, eight bits in the vision tower if that is packed at all."""
    tower = [module for module in sizes.modules if vision and not module.is_text]
    packed = {module.name: form for module in tower if (form := base_format(VISION_BITS, module.in_features))}
    return packed | base_allocation(sizes, base_bits)


def moved(group: Group, base: Allocation) -> Allocation:
    """The operating point with another width for one group."""
    other = dict(base)
    for module in group.modules:
        form = base.get(module.name)
        if form is not None:
            other[module.name] = Format(_moved_bits(form.bits, module.is_text), form.group_size)
    return other


def _moved_bits(bits: int, text: bool) -> int:
    if not text:
        return VISION_MEASURED
    return BITS[BITS.index(bits) + (-1 if bits >= LOWERED_FROM else 1)]


def coefficients(groups: Sequence[Group], base: Allocation, findings: Findings) -> dict[str, float]:
    """What a unit of error costs, by group. findings: of `base` and then of each group's `moved`, compared with `base`, and all errors."""
    means, result = findings.means()[1:], {}
    for group, change in zip(groups, means, strict=True):
        other = moved(group, base)
        errors = [findings.errors[m.name][forms[m.name]] for m in group.modules if m.name in base for forms in (base, other)]
        result[group.name] = float(change) / max(sum(errors), SMALLEST)
    return result


def costs(groups: Sequence[Group], factors: Mapping[str, float], errors: Mapping[str, Mapping[Format, float]]) -> Costs:
    """The predicted divergence that each format of each matrix adds."""
    return {m.name: {form: factors[g.name] * error for form, error in errors[m.name].items()} for g in groups for m in g.modules}


def cheapest(sizes: Sizes, prices: Costs, budget: int) -> Allocation:
    """The allocation with the least predicted divergence within `budget` bytes; exact (`weights.quant.knapsack`). Raises ConfigError.

    Matrices without prices stay in 16 bits. Those of the vision tower get `VISION_LEAST` bits at least.
    """
    modules = [module for module in sizes.modules if module.name in prices]
    forms = [sorted(form for form in prices[m.name] if m.is_text or form.bits >= VISION_LEAST) for m in modules]
    items = [
        [Option(module.nbytes(form), prices[module.name][form]) for form in choice] for module, choice in zip(modules, forms, strict=True)
    ]
    chosen = solve(items, budget - sizes.nbytes({}) + sum(module.nbytes(None) for module in modules))
    return {module.name: choice[place] for module, choice, place in zip(modules, forms, chosen, strict=True)}
