"""How large a quantized checkpoint is to be."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pagelift.backends.tensors import BITS
from pagelift.core.errors import ConfigError
from pagelift.weights.quant.formats import FORMATS, Allocation, Format, Sizes

GROUP_SIZE = 64
SLACK = 0.01
"""What a size may differ from its target by."""
LOWEST_BITS, HIGHEST_BITS = 2.1, 9.0


@dataclass(frozen=True, slots=True)
class Target:
    """base_bits: of most matrices. bits, cap: bits per weight of everything but the vision tower, which counts as 16 bits whatever it
    gets: aimed at, and never exceeded."""

    name: str
    base_bits: int
    bits: float
    cap: float

    def budget(self, sizes: Sizes) -> int:
        """Bytes aimed at."""
        return sizes.budget(self.bits)

    def limit(self, sizes: Sizes) -> int:
        """Bytes never exceeded."""
        return sizes.budget(self.cap)


PUBLISHED = {
    target.name.lower(): target
    for target in (
        Target("oQ3", 3, 3.5, 3.7),
        Target("oQ3.5", 3, 3.8, 4.0),
        Target("oQ4", 4, 4.6, 4.7),
        Target("oQ5", 5, 5.5, 5.7),
        Target("oQ6", 6, 6.5, 6.7),
        Target("oQ8", 8, 8.6, 8.7),
    )
}
"""The sizes of the published variants of lift."""


def parse_target(text: str) -> Target:
    """A published name such as oQ4, or bits per weight such as 4.25. Raises ConfigError."""
    known = PUBLISHED.get(text.lower())
    if known:
        return known
    if not re.fullmatch(r"\d+(\.\d+)?", text) or not LOWEST_BITS <= float(text) <= HIGHEST_BITS:
        names = ", ".join(target.name for target in PUBLISHED.values())
        raise ConfigError(f"target {text!r} is none of {names} and no number of bits per weight from {LOWEST_BITS} to {HIGHEST_BITS}")
    return target_of_bits(float(text), text)


def target_of_size(sizes: Sizes, nbytes: int) -> Target:
    """The target whose files have at most so many bytes. Raises ConfigError when the model cannot be made so small."""
    bits = sizes.bits_of(nbytes)
    if bits < LOWEST_BITS:
        least = sizes.budget(LOWEST_BITS) / 1e9
        raise ConfigError(f"{nbytes / 1e9:.3f} GB is {bits:.2f} bits per weight; this model needs {least:.3f} GB at least")
    bits = min(bits, HIGHEST_BITS)
    return Target(f"{nbytes / 1e9:g} GB", target_of_bits(bits, "").base_bits, bits * (1 - SLACK / 10), bits)


def target_of_bits(bits: float, name: str) -> Target:
    base = max((width for width in BITS if Format(width, GROUP_SIZE).bits_per_weight <= bits), default=BITS[0])
    return Target(name, base, bits, bits * (1 + SLACK))


def base_format(base_bits: int, in_features: int) -> Format | None:
    """The usual format of a matrix: groups of 64, smaller where those do not divide its rows."""
    fitting = [form for form in FORMATS if form.bits == base_bits and form.group_size <= GROUP_SIZE and form.fits(in_features)]
    return max(fitting, key=lambda form: form.group_size, default=None)


def base_allocation(sizes: Sizes, base_bits: int) -> dict[str, Format]:
    """Every matrix outside the vision tower in its usual format."""
    forms = {module.name: base_format(base_bits, module.in_features) for module in sizes.text_modules}
    return {name: form for name, form in forms.items() if form is not None}


def wider(form: Format, steps: int = 1) -> Format | None:
    """The format with the next width."""
    place = BITS.index(form.bits) + steps
    return Format(BITS[place], form.group_size) if place < len(BITS) else None


def check_size(sizes: Sizes, allocation: Allocation, target: Target) -> None:
    """Raises ConfigError when an allocation is above the target's limit."""
    size, limit = sizes.nbytes(allocation), target.limit(sizes)
    if size > limit:
        raise ConfigError(f"{target.name}: {size / 1e6:,.1f} MB is above the limit of {limit / 1e6:,.1f} MB; choose a larger target")
