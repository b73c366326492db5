"""In which numbers matrix products are made."""

from __future__ import annotations

from functools import cache

import torch


@cache
def products(device: torch.device) -> torch.dtype:
    """bfloat16 where the machine has instructions for it; float32 elsewhere, since torch's emulation is tens of times slower.

    Older versions of torch do not tell what a CPU has; float32 is taken there.
    """
    if device.type != "cpu":
        return torch.bfloat16
    has = getattr(torch.cpu, "get_capabilities", dict)()
    return torch.bfloat16 if any(has.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16")) else torch.float32


def autocast(device: torch.device) -> torch.autocast:
    """Matrix products in `products`."""
    return torch.autocast(device.type, torch.bfloat16, enabled=products(device) is torch.bfloat16)
