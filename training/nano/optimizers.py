"""Muon for the matrices of the layers, AdamW for everything else.

Muon: Jordan et al. 2024, https://kellerjordan.github.io/posts/muon: momentum, then the nearest orthogonal matrix by five steps of a
Newton-Schulz iteration. Matrices of one size are stepped together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from nano.precision import products

MUON_RATE, ADAM_RATE = 0.012, 1.5e-3
MOMENTUM = 0.95
DECAY = 0.05
_QUINTIC = (3.4445, -4.7750, 2.0315)


class Optimizers:
    """Both, with one learning rate factor. parameters: by name; those of layers that are matrices go to Muon."""

    def __init__(self, parameters: Iterable[tuple[str, nn.Parameter]]) -> None:
        sizes: dict[tuple[bool, torch.Size], list[nn.Parameter]] = defaultdict(list)
        others = []
        for name, parameter in parameters:
            if parameter.ndim == 2 and ("layers." in name or "blocks." in name) and min(parameter.shape) >= 16:
                sizes["visual" in name, parameter.shape].append(parameter)
            else:
                others.append(parameter)
        self.matrices = list(sizes.values())
        self.momenta = [torch.zeros(len(group), *group[0].shape, device=group[0].device) for group in self.matrices]
        self.others = others
        self.adam = torch.optim.AdamW(others, lr=ADAM_RATE, betas=(0.9, 0.98), weight_decay=0.0)

    def step(self, factor: float) -> None:
        """One step at a share of the learning rates; gradients are cleared."""
        nn.utils.clip_grad_norm_(self.others, 1.0)
        for group in self.adam.param_groups:
            group["lr"] = ADAM_RATE * factor
        self.adam.step()
        self.adam.zero_grad(set_to_none=True)
        for group, momentum in zip(self.matrices, self.momenta, strict=True):
            if any(parameter.grad is not None for parameter in group):  # none of the vision tower's without pictures
                _muon_step(group, momentum, MUON_RATE * factor)

    def state(self) -> dict[str, Any]:
        return {"adam": self.adam.state_dict(), "momenta": self.momenta}

    def load(self, state: Mapping[str, Any]) -> None:
        self.adam.load_state_dict(state["adam"])
        for momentum, saved in zip(self.momenta, state["momenta"], strict=True):
            momentum.copy_(saved)


@torch.no_grad()
def _muon_step(group: list[nn.Parameter], momentum: Tensor, rate: float) -> None:
    gradient = torch.stack([p.grad if p.grad is not None else torch.zeros_like(p) for p in group])
    momentum.lerp_(gradient, 1 - MOMENTUM)
    rows, columns = gradient.shape[1:]
    step = orthogonal(gradient.lerp(momentum, MOMENTUM)) * max(1.0, rows / columns) ** 0.5
    for parameter, change in zip(group, step, strict=True):
        parameter.mul_(1 - rate * DECAY).add_(change, alpha=-rate)
        parameter.grad = None


def orthogonal(matrices: Tensor) -> Tensor:
    """About the nearest orthogonal matrix of each, (N, rows, columns); singular values end up near 1."""
    x = matrices.to(products(matrices.device))
    flat = x.shape[1] > x.shape[2]
    x = x.transpose(1, 2) if flat else x
    x = x / (x.float().norm(dim=(1, 2), keepdim=True).to(x.dtype) + 1e-7)
    a, b, c = _QUINTIC
    for _ in range(5):
        square = x @ x.transpose(1, 2)
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return (x.transpose(1, 2) if flat else x).float()
