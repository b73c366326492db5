"""The gated delta rule on MLX: in chunks of plain operations everywhere, by mlx-lm's kernel on Metal where it is installed.

Both have the form S = decay * S; S = S + k outer (beta * (v - S^T k)); y = S^T q. (Yang et al., Gated Delta Networks, 2024;
chunks as in Yang et al., Parallelizing Linear Transformers with the Delta Rule, 2024.)
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import mlx.core as mx
import numpy as np

from pagelift.backends.protocol import DeltaNet

log = logging.getLogger(__name__)

CHUNK = 64
"""Tokens that are computed at once; longer chunks mean fewer steps in sequence and more work in each."""

Kernel: TypeAlias = Callable[[mx.array, mx.array, mx.array, mx.array, mx.array, mx.array], tuple[mx.array, mx.array]]
"""q, k (1, L, key_heads, key_dim), v (1, L, value_heads, value_dim), decay, beta (1, L, value_heads), state (1, value_heads,
value_dim, key_dim) to y (1, L, value_heads, value_dim) and the new state."""


@dataclass(frozen=True, slots=True)
class Updates:
    """What the rule writes, per token: k (L, key_heads, dim), v (L, value_heads, dim); log_decay, beta (L, value_heads); float32."""

    k: mx.array
    v: mx.array
    log_decay: mx.array
    beta: mx.array

    def __getitem__(self, rows: slice) -> Updates:
        return Updates(self.k[rows], self.v[rows], self.log_decay[rows], self.beta[rows])


def delta_inputs(qkv: mx.array, a: mx.array, b: mx.array, net: DeltaNet) -> tuple[mx.array, Updates]:
    """Split and prepare the inputs of the rule: q (T, key_heads, key_dim) normalised and scaled, and the updates."""
    rows, keys = qkv.shape[0], net.key_heads * net.key_dim
    qkv, a, b = (x.astype(mx.float32) for x in (qkv, a, b))
    q, k = (qkv[:, i * keys : (i + 1) * keys].reshape(rows, net.key_heads, net.key_dim) for i in range(2))
    scale = net.key_dim**-0.5
    # x / sqrt(sum(x^2) + e) is an RMS norm with e / n, over sqrt(n).
    q, k = (mx.fast.rms_norm(x, None, 1e-6 / net.key_dim) * scale for x in (q, k))
    v = qkv[:, 2 * keys :].reshape(rows, net.value_heads, net.value_dim)
    log_decay = -mx.exp(net.a_log) * mx.logaddexp(a + net.dt_bias, 0.0)
    return q * scale, Updates(k, v, log_decay, mx.sigmoid(b))


def run_delta_rule(q: mx.array, updates: Updates, state: mx.array) -> tuple[mx.array, mx.array]:
    """The rule over L tokens. q: (L, key_heads, key_dim); state: (value_heads, value_dim, key_dim).

    Returns y (L, value_heads, value_dim) and the state after the last token, which does not depend on q.
    """
    kernel = metal_kernel()
    if kernel is None or mx.default_device() != mx.Device(mx.gpu) or q.shape[-1] % 32:
        return delta_rule_in_chunks(q, updates, state)
    return delta_rule_by_kernel(kernel, q, updates, state)


@cache
def metal_kernel() -> Kernel | None:
    """mlx-lm's kernel, or None without Metal or mlx-lm."""
    if not mx.metal.is_available():
        return None
    try:
        from mlx_lm.models.gated_delta import gated_delta_kernel
    except ImportError:
        log.warning("linear attention runs in plain operations, which is slower; for the kernel of mlx-lm: pip install 'pagelift[mlx]'")
        return None
    kernel: Kernel = gated_delta_kernel
    return kernel


def delta_rule_by_kernel(kernel: Kernel, q: mx.array, updates: Updates, state: mx.array) -> tuple[mx.array, mx.array]:
    """`run_delta_rule` by a kernel that takes a batch of sequences."""
    operands = (q, updates.k, updates.v, mx.exp(updates.log_decay), updates.beta, state)
    y, state = kernel(*(x[None] for x in operands))
    return y[0], state[0]


def delta_rule_in_chunks(q: mx.array, updates: Updates, state: mx.array) -> tuple[mx.array, mx.array]:
    """`run_delta_rule` in chunks of CHUNK tokens and one of the rest."""
    length, heads = updates.beta.shape
    repeats = heads // q.shape[1]
    whole = length - length % CHUNK
    results = []
    for part, size in ((slice(0, whole), CHUNK), (slice(whole, length), length - whole)):
        if part.start < part.stop:
            u = updates[part]
            rows = (mx.repeat(q[part], repeats, axis=1), mx.repeat(u.k, repeats, axis=1), u.v, u.log_decay, u.beta)
            q_chunks, *chunks = (x.reshape(-1, size, *x.shape[1:]).swapaxes(1, 2) for x in rows)
            y, state = _chunks(q_chunks, Updates(*chunks), state)
            results.append(y.swapaxes(1, 2).reshape(-1, heads, y.shape[-1]))
    return (results[0] if len(results) == 1 else mx.concatenate(results)), state


def _chunks(q: mx.array, updates: Updates, state: mx.array) -> tuple[mx.array, mx.array]:
    """Chunks of one size. q, and k and v of the updates: (chunks, heads, size, dim); their decays and betas: (chunks, heads, size).

    Within a chunk, what the tokens write solves (I + A) written = beta * (v - decay * S^T k) with A strictly lower triangular;
    I + A is inverted for all chunks at once, and only the passing on of S goes from chunk to chunk.
    """
    k, size = updates.k, q.shape[2]
    total = mx.cumsum(updates.log_decay, axis=-1)  # log of the decay from the chunk's start
    causal = mx.array(np.tri(size, dtype=bool))
    decay = mx.exp(mx.where(causal, total[..., :, None] - total[..., None, :], -mx.inf))  # (chunks, heads, size, size)
    kt = k.swapaxes(2, 3)
    beta = updates.beta[..., None]
    inverse = unit_lower_inverse(beta * (k @ kt) * decay)
    since_start = mx.exp(total)[..., None]
    own = inverse @ (beta * updates.v)  # what the tokens would write if S were zero
    reads = inverse @ (beta * since_start * k)
    scores, q = (q @ kt) * decay, q * since_start
    k = k * mx.exp(total[..., -1:] - total)[..., None]
    end = since_start[:, :, -1:]
    ys = []
    for chunk in range(q.shape[0]):
        st = state.swapaxes(1, 2)
        written = own[chunk] - reads[chunk] @ st  # (heads, size, value_dim)
        ys.append(q[chunk] @ st + scores[chunk] @ written)
        state = end[chunk] * state + written.swapaxes(1, 2) @ k[chunk]
    return mx.stack(ys), state


def unit_lower_inverse(a: mx.array) -> mx.array:
    """The inverse of I + the strictly lower triangle of a (..., n, n).

    Blocks on the diagonal are joined in pairs, inv([[P, 0], [B, Q]]) = [[inv P, 0], [-inv Q B inv P, inv Q]], all pairs of a
    size at once; unlike a product of powers of A this is as stable as substitution.
    """
    n = a.shape[-1]
    inverse, size = mx.eye(n), 1
    while size < n:
        block = np.arange(n) // size
        below = (block[:, None] == block + 1) & (block % 2 == 0)
        inverse = inverse - inverse @ mx.where(mx.array(below), a, 0.0) @ inverse
        size *= 2
    return inverse
