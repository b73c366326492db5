"""Activations and gates, computed in float32 and returned in the type of their operands.

On Metal each is compiled into one kernel. Elsewhere they run as they stand, because MLX compiles for a CPU with the system's
C++ compiler, which need not be there.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import mlx.core as mx

Elementwise = Callable[..., mx.array]


def fused(function: Elementwise) -> Elementwise:
    """One kernel for all shapes where that is possible without a compiler."""
    return mx.compile(function, shapeless=True) if mx.metal.is_available() else function


@fused
def silu(x: mx.array) -> mx.array:
    wide = x.astype(mx.float32)
    return (wide * mx.sigmoid(wide)).astype(x.dtype)


@fused
def silu_mul(gate: mx.array, x: mx.array) -> mx.array:
    wide = gate.astype(mx.float32)
    return (wide * mx.sigmoid(wide) * x).astype(gate.dtype)


@fused
def sigmoid_mul(gate: mx.array, x: mx.array) -> mx.array:
    return (mx.sigmoid(gate.astype(mx.float32)) * x).astype(x.dtype)


@fused
def gelu_tanh(x: mx.array) -> mx.array:
    wide = x.astype(mx.float32)
    return (0.5 * wide * (1 + mx.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide * wide * wide)))).astype(x.dtype)


@fused
def gelu_erf(x: mx.array) -> mx.array:
    wide = x.astype(mx.float32)
    return (0.5 * wide * (1 + mx.erf(wide * math.sqrt(0.5)))).astype(x.dtype)
